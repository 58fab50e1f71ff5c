"""Folders: rows parted by the values of columns, and the folders that are named after the values.

Names are those that Spark and Hive give: `day=2024-01-31/minute=12%3A05`, characters that mean something in paths as
percent and two digits, NULL as `__HIVE_DEFAULT_PARTITION__`; so is the empty string, for which a folder has no name.
"""

import os
import re
from collections.abc import Iterator, Sequence

import numpy as np
import pyarrow as pa

from penstock.errors import ViewError
from penstock.schema import Decimal, Scalar, Type
from penstock.views.scalars import encoded_scalars
from penstock.views.step import View

NULL = "__HIVE_DEFAULT_PARTITION__"
SPECIAL = re.compile(r"""[\x00-\x1f\x7f"#%'*/:=?\\{\[\]^]""")
LONGEST = 255
FEW = 1 << 16
"""Numbers up to here NumPy sorts in one go over them."""


def parted(view: View, rows: pa.Table) -> Iterator[tuple[str, pa.Table]]:
    """The rows of each folder, without the columns that its name tells, in the order in which they came."""
    rest = rows.drop_columns(list(view.partition_by))
    if not view.partition_by or not len(rows):
        yield from [("", rest)] if len(rows) else []
        return
    numbers, folders = _numbered(view, rows)
    if len(folders) == 1:
        yield folders[0], rest
        return
    order = np.argsort(numbers.astype(np.uint16) if len(folders) <= FEW else numbers, kind="stable")
    sorted_rows, ends = rest.take(pa.array(order)), np.bincount(numbers, minlength=len(folders)).cumsum()
    for at, folder in enumerate(folders):
        start = int(ends[at - 1]) if at else 0
        yield folder, sorted_rows.slice(start, int(ends[at]) - start)


def _numbered(view: View, rows: pa.Table) -> tuple[np.ndarray[tuple[int], np.dtype[np.int64]], list[str]]:
    """For each row the number of its folder, and the folders by number."""
    numbers, folders = np.zeros(len(rows), np.int64), [""]
    for name in view.partition_by:
        found = rows.column(name).combine_chunks().dictionary_encode("encode")
        values = folder_names(name, view.schema.column(name).type, found.dictionary)
        both = numbers * len(values) + found.indices.to_numpy()
        met = pa.array(both).dictionary_encode()
        numbers = met.indices.to_numpy()
        pairs = (divmod(each, len(values)) for each in met.dictionary.to_pylist())
        folders = [f"{folders[old]}/{values[new]}".removeprefix("/") for old, new in pairs]
    return numbers, folders


def folder_names(column: str, type_: Type, values: pa.Array) -> list[str]:
    """What the folders of a column's values are called."""
    names = [f"{_escaped(column)}={_escaped(text) if text else NULL}" for text in _texts(type_, values)]
    for name in names:
        if len(os.fsencode(name)) > LONGEST:
            raise ViewError(
                f'a value of column "{column}" is too long to be the name of a folder',
                detail=f"It begins with {name[len(column) + 1 :][:40]}; with the column's name, {LONGEST} bytes fit.",
                hint="Leave the column out of partition_by, then: penstock reset PIPELINE",
            )
    return names


def _texts(type_: Type, values: pa.Array) -> Sequence[str | None]:
    assert isinstance(type_, Scalar | Decimal)  # others are refused when the view is planned
    if type_ == Scalar("BOOLEAN"):
        return [None if value is None else str(value).lower() for value in values.to_pylist()]
    return [None if value is None else _text(value) for value in encoded_scalars(type_, values)]


def _text(value: object) -> str:
    return value.decode(errors="surrogateescape") if isinstance(value, bytes) else str(value)


def _escaped(text: str) -> str:
    return SPECIAL.sub(lambda found: f"%{ord(found[0]):02X}", text)
