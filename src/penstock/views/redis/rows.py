"""Rows of views as Redis keeps them, and what changes of many frames add up to.

A row of a view with a key is a hash under `PREFIX:VIEW:KEY`: a field for each column that is not NULL, as text, and
its identity. KEY is the values of the key as JSON, with commas between. A row of a bag is a field of the hash
`PREFIX:VIEW`, the row as JSON, with the number of times that it is there.
"""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from hashlib import blake2b
from typing import Any

import pyarrow as pa

from penstock.errors import ViewError
from penstock.schema import Array, Map, Scalar, Schema, Struct, Type
from penstock.views.nested import from_json, to_json
from penstock.views.step import Change, View

ROW = "_penstock"
"""The field of the identity."""
WHOLE = ("BOOLEAN", "TINYINT", "SMALLINT", "INT", "BIGINT")
Op = list[bytes]
Fields = Mapping[bytes, bytes]


def json_rows(schema: Schema, rows: pa.StructArray) -> list[list[Any] | None]:
    """The values of each row as JSON has them; None where there is no row."""
    columns = [to_json(c.type, array) for c, array in zip(schema.columns, rows.flatten(), strict=True)]
    values = zip(*columns, strict=True)
    return [list(row) if there else None for there, row in zip(rows.is_valid().to_pylist(), values, strict=True)]


def text_of(value: Any) -> bytes:
    """As it stands in a field: texts as they are, everything else as JSON."""
    return value.encode(errors="surrogateescape") if isinstance(value, str) else _json(value).encode()


def _json(value: Any) -> str:
    return json.dumps(value, separators=(",", ":"))


def ops_of(view: View, changes: Iterable[tuple[int, Change]]) -> Iterator[Op]:
    """What is to be done, each key or row of a bag once."""
    return _keyed(view, changes) if view.key else _bagged(view, changes)


def _keyed(view: View, changes: Iterable[tuple[int, Change]]) -> Iterator[Op]:
    at = [view.schema.names.index(name) for name in view.key]
    net: dict[str, tuple[list[Any] | None, list[Any] | None]] = {}
    for frame, change in changes:
        rows = zip(json_rows(view.schema, change.old), json_rows(view.schema, change.new), strict=True)
        for old, new in rows:
            row = old if old is not None else new
            if row is None:
                raise refusal(view, f"frame {frame} has a deletion that does not say which row leaves")
            key = ",".join(_json(row[each]) for each in at)
            if old is not None and new is not None and any(old[each] != new[each] for each in at):
                raise refusal(view, f"frame {frame} replaces a row by one with another key")
            first, last = net.get(key, (old, old))
            if last != old:
                raise refusal(view, f"frame {frame} changes a row under key {key} that is not there so")
            net[key] = first, new
    for key, (old, new) in net.items():
        if old is not None or new is not None:
            yield [b"K", view.name.encode(), key.encode(), _identity(old), _identity(new), *_fields(view, new)]


def _fields(view: View, row: list[Any] | None) -> list[bytes]:
    pairs = zip(view.schema.names, row or [], strict=False)
    found = [each for name, value in pairs if value is not None for each in (name.encode(), text_of(value))]
    return [str(len(found)).encode(), *found]


def _identity(row: list[Any] | None) -> bytes:
    return b"" if row is None else blake2b(_json(row).encode(), digest_size=16).hexdigest().encode()


def _bagged(view: View, changes: Iterable[tuple[int, Change]]) -> Iterator[Op]:
    net: dict[str, list[int]] = {}
    for _, change in changes:
        for rows, weight in ((change.new, 1), (change.old, -1)):
            for row in json_rows(view.schema, rows):
                if row is not None:
                    found = net.setdefault(_json(dict(zip(view.schema.names, row, strict=True))), [0, 0])
                    found[0] += weight
                    found[1] = min(found[1], found[0])
    for text, (count, least) in net.items():
        if count or least:
            yield [b"B", view.name.encode(), text.encode(), str(count).encode(), str(-least).encode()]


def refusal(view: View, what: str) -> ViewError:
    return ViewError(
        f'view "{view.name}": {what}',
        hint="What Redis holds or the change topic is damaged. Delete the store's keys: it fills itself anew.",
    )


# And back


def struct_of(view: View, rows: Sequence[Mapping[str, Any]]) -> pa.StructArray:
    """Rows of JSON values as Arrow has them."""
    columns = view.schema.columns
    arrays = [from_json(column.type, [row.get(column.name) for row in rows]) for column in columns]
    return pa.StructArray.from_arrays(arrays, names=list(view.schema.names))


def json_row(view: View, fields: Fields) -> dict[str, Any]:
    """The fields of a hash as JSON values."""
    found = {}
    for column in view.schema.columns:
        data = fields.get(column.name.encode())
        if data is not None:
            text = data.decode(errors="surrogateescape")
            found[column.name] = json.loads(text) if _is_json(column.type) else text
    return found


def _is_json(type_: Type) -> bool:
    """Whether values of the type stand in a field as JSON. Fractions are read from texts: infinities and NaN are
    texts in JSON.
    """
    return isinstance(type_, Array | Map | Struct) or (isinstance(type_, Scalar) and type_.name in WHOLE)
