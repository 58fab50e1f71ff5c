"""Output: records that were read, as JSON lines, CSV or a table.

`_deleted`, `_headers` and `_replaces` are shown in JSON and tables where a record has them. Bytes of raw
topics and headers are shown as text where they are UTF-8, else in base64 under another name. What is written
can be appended.
"""

import base64
import csv
import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, TextIO

from penstock.cli.console import aligned
from penstock.errors import CommandError
from penstock.log import Entry, Place, Topic
from penstock.log.hidden import MARKS, STAMPS, type_of
from penstock.log.protocol import AnyEntry
from penstock.schema import Decimal, Scalar
from penstock.text import csv_text, writer

Row = Mapping[str, Any]
"""A record: its columns and hidden columns by name, as Python values."""
Fields = dict[str, Any]
"""The same as JSON values."""
NUMBERS = ("TINYINT", "SMALLINT", "INT", "BIGINT", "FLOAT", "DOUBLE")


def names_of(
    topic: Topic, *, hidden: bool, marks: Sequence[str] = MARKS, stamps: Sequence[str] = STAMPS
) -> tuple[str, ...]:
    """What is shown of a topic where no columns were chosen."""
    return (tuple(stamps) if hidden else ()) + topic.schema.names + tuple(marks)


def fields_of(topic: Topic, names: Sequence[str], *, optional: Sequence[str] = ()) -> Callable[[Row], Fields]:
    """The function that makes JSON fields of a row, `optional` ones only where they say something."""
    printers = [(name, _printer(topic, name), name in optional) for name in names]

    def fields(row: Row) -> Fields:
        found: Fields = {}
        for name, show, may_go in printers:
            value = row[name]
            if value or not may_go:
                found |= show(value)
        return found

    return fields


def row_of(entry: AnyEntry) -> Row:
    """The record with its hidden columns."""
    value = entry.value if isinstance(entry.value, Mapping) else None
    row = value or {"key": entry.key, "value": entry.value, "time": entry.time}
    stamps = {"_partition": entry.partition, "_offset": entry.offset, "_appended_at": entry.appended_at}
    place = {"_place": int(entry.place)} if isinstance(entry, Entry) else {}
    marks = (entry.deleted, list(entry.headers.items()), entry.replaces)
    return stamps | place | dict(row) | dict(zip(MARKS, marks, strict=True))


def json_line(fields: Fields) -> str:
    return json.dumps(fields, ensure_ascii=False) + "\n"


def write_csv(rows: Iterable[Fields], names: Sequence[str], out: TextIO) -> None:
    table = csv.writer(out, lineterminator="\n")
    table.writerow(names)
    for fields in rows:
        if coded := next((name for name in fields if name.endswith("_base64") and name not in names), None):
            raise CommandError(
                f'"{coded.removesuffix("_base64")}" of a record is not text',
                detail="CSV has no place for other bytes.",
                hint="Use --format json, which shows them in base64, or arrow.",
            )
        table.writerow([csv_text(fields.get(name)) for name in names])


def table_lines(rows: Sequence[Fields], topic: Topic, names: Sequence[str]) -> Iterator[str]:
    """The rows under a header of all fields that any of them has."""
    present = {name for fields in rows for name in fields} or {*names} - {*MARKS}
    header = [each for name in names for each in (name, f"{name}_base64") if each in present]
    numbers = [at for at, name in enumerate(header) if _is_number(topic, name)]
    cells = [[cell_text(fields[name]) if name in fields else "" for name in header] for fields in rows]
    return aligned([header, *cells], right=numbers)


def cell_text(value: Any) -> str:
    """A value in a table, for the eye."""
    return "NULL" if value is None else csv_text(value)


def _printer(topic: Topic, name: str) -> Callable[[Any], Fields]:
    if name == "_headers":
        return _headers
    if topic.raw and name in ("key", "value"):
        return lambda value: _bytes(name, value)
    write = _place if name == "_place" else writer(type_of(topic, name))
    return lambda value: {name: write(value)}


def _place(value: int) -> str:
    place = Place.of(value)
    return f"{place.frame}:{place.index}"


def _headers(value: Iterable[tuple[str, bytes]] | None) -> Fields:
    found: Fields = {}
    for name, data in value or ():
        for where, text in _bytes("", data).items():
            found.setdefault(f"_headers{where}", {})[name] = text
    return found


def _bytes(name: str, value: bytes | None) -> Fields:
    if value is None:
        return {name: None}
    try:
        return {name: value.decode()}
    except UnicodeDecodeError:
        return {f"{name}_base64": base64.b64encode(value).decode()}


def _is_number(topic: Topic, name: str) -> bool:
    if name.endswith("_base64") or name == "_place":
        return False
    type_ = type_of(topic, name)
    return isinstance(type_, Decimal) or (isinstance(type_, Scalar) and type_.name in NUMBERS)
