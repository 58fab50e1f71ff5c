"""Checks: what records must hold whatever they were made from: rows, Arrow tables, staged files.

NOT NULL columns and fields have values, and times lie in the years 1 to 9999: others could not be read back as
Python values. Who must keep what was computed, whatever it is, does without the second: `far_times`.
"""

from collections.abc import Mapping
from datetime import UTC, date, datetime
from functools import lru_cache
from typing import assert_never

import pyarrow as pa
import pyarrow.compute as pc

from penstock.errors import SchemaError
from penstock.log.topic import Topic
from penstock.schema import Array, Column, Decimal, Map, Scalar, Struct, Type, arrow_type, type_text

REFUSED = "The whole append was refused; nothing was written."
FIRST, LAST = datetime(1, 1, 1, tzinfo=UTC), datetime(9999, 12, 31, 23, 59, 59, 999999, tzinfo=UTC)
Bounds = Mapping[str, tuple[pa.Scalar, pa.Scalar]]
BOUNDS: Bounds = {
    name: (pa.scalar(first, arrow_type(Scalar(name))), pa.scalar(last, arrow_type(Scalar(name))))
    for name, first, last in (
        ("DATE", date.min, date.max),
        ("TIMESTAMP", FIRST, LAST),
        ("TIMESTAMP_NTZ", FIRST.replace(tzinfo=None), LAST.replace(tzinfo=None)),
    )
}


def check(topic: Topic, batch: pa.RecordBatch, *, far_times: bool = False) -> None:
    """Raises for the first column that holds what it must not."""
    _check_nulls(topic, batch)
    bounds = {} if far_times else BOUNDS
    for column in topic.schema.columns:
        _check_inside(topic, column.name, column.type, batch.column(column.name), bounds)
    if "_replaces" in batch.schema.names:
        row = Struct(tuple(Column(column.name, column.type) for column in topic.schema.columns))
        _check_inside(topic, "_replaces", row, batch.column("_replaces"), bounds)


def _check_nulls(topic: Topic, batch: pa.RecordBatch) -> None:
    """NOT NULL columns hold values in every record; in deletions, the key's columns do."""
    deleted = batch.column("_deleted") if "_deleted" in batch.schema.names else None
    for column in topic.schema.columns:
        array = batch.column(column.name)
        if column.nullable or not array.null_count:
            continue
        missing = array.is_null()
        if deleted is not None and column.name not in topic.key:
            missing = pc.and_not(missing, deleted)
        if missing.true_count:
            raise SchemaError(
                f'field "{column.name}" of record {missing.index(pa.scalar(True)).as_py()} is missing',
                detail=f'The column is NOT NULL in topic "{topic.name}".',
                hint=REFUSED,
            )


def _check_inside(topic: Topic, name: str, type_: Type, array: pa.Array, bounds: Bounds) -> None:
    if not _trouble(type_, array, bounds):
        return
    first, after = 0, len(array)
    while after - first > 1:  # the first record in trouble is among these
        middle = (first + after) // 2
        first, after = (first, middle) if _trouble(type_, array[first:middle], bounds) else (middle, after)
    raise SchemaError(
        f'field "{name}" of record {first} does not fit topic "{topic.name}"',
        detail=f"{_trouble(type_, array[first:after], bounds)}; the column is {type_text(type_)}.",
        hint=REFUSED,
    )


@lru_cache(maxsize=1024)
def _is_bounded(type_: Type) -> bool:
    """Whether there is anything to check inside values of the type."""
    match type_:
        case Scalar(name):
            return name in BOUNDS
        case Decimal():
            return False
        case Array(element):
            return _is_bounded(element)
        case Map(key, value):
            return _is_bounded(key) or _is_bounded(value)
        case Struct(fields):
            return any(not field.nullable or _is_bounded(field.type) for field in fields)
        case _:
            assert_never(type_)


def _trouble(type_: Type, array: pa.Array, bounds: Bounds) -> str:
    """What is wrong with the array's values; empty if nothing is."""
    if not _is_bounded(type_):
        return ""
    match type_:
        case Scalar(name) if name in bounds:
            first, last = bounds[name]
            outside = pc.any(pc.or_(pc.less(array, first), pc.greater(array, last))).as_py()
            return "It lies outside the years 1 to 9999" if outside else ""
        case Array(element):
            return _trouble(element, array.flatten(), bounds)
        case Map(key, value):
            present = array.drop_null()
            inside = slice(present.offsets[0].as_py(), present.offsets[-1].as_py())
            return _trouble(key, present.keys[inside], bounds) or _trouble(value, present.items[inside], bounds)
        case Struct(fields):
            present = array.drop_null()
            found = (_trouble_in(field, present.field(field.name), bounds) for field in fields)
            return next(filter(None, found), "")
        case Scalar() | Decimal():
            return ""
        case _:
            assert_never(type_)


def _trouble_in(field: Column, array: pa.Array, bounds: Bounds) -> str:
    if array.null_count and not field.nullable:
        return f'Its field "{field.name}" is NULL'
    return _trouble(field.type, array, bounds)
