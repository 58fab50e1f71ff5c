"""Types: what Spark's types are in PostgreSQL, and a column on its way there.

| Spark SQL | PostgreSQL |
|---|---|
| BOOLEAN | boolean |
| TINYINT, SMALLINT; INT; BIGINT | smallint; integer; bigint |
| FLOAT, DOUBLE | real, double precision, bit by bit but for the bits of NaN |
| DECIMAL(p,s) | numeric(p,s) |
| STRING | text COLLATE "C", which sorts as Spark does; see `texts.py` |
| BINARY | bytea |
| DATE, TIMESTAMP, TIMESTAMP_NTZ | date, timestamptz, timestamp; beyond what these hold, the infinities |
| ARRAY, MAP, STRUCT | jsonb, in which what lies inside is as in the SQLite store |

Where PostgreSQL has no such value (a far time, the order of a map), the value itself stands in a column of ours.

A column has two forms on its way: *exact*, from which the identity of a row is computed (equal values are equal bytes,
different ones are not), and *stored*. They differ where PostgreSQL has no such value, and in the sign of zero.
"""

import json
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from penstock.schema import Decimal, Scalar, Type, has_map
from penstock.views.nested import to_json
from penstock.views.postgres.texts import escaped_array, escaped_json
from penstock.views.postgres.wires import Numbers, Wire, fixed, of_binary, of_bytes, valid

NAMES = {
    "BOOLEAN": "boolean",
    "TINYINT": "smallint",
    "SMALLINT": "smallint",
    "INT": "integer",
    "BIGINT": "bigint",
    "FLOAT": "real",
    "DOUBLE": "double precision",
    "STRING": "text",
    "BINARY": "bytea",
    "DATE": "date",
    "TIMESTAMP": "timestamp with time zone",
    "TIMESTAMP_NTZ": "timestamp without time zone",
}
BIG = {
    "BOOLEAN": ">i1",
    "TINYINT": ">i2",
    "SMALLINT": ">i2",
    "INT": ">i4",
    "BIGINT": ">i8",
    "FLOAT": ">f4",
    "DOUBLE": ">f8",
    "DATE": ">i4",
    "TIMESTAMP": ">i8",
    "TIMESTAMP_NTZ": ">i8",
}
DAY = 86_400_000_000
EPOCH_DAYS = 10_957
"""From 1970, where Spark counts from, to 2000, where PostgreSQL does."""
FIRST_DAY, END_DAY = -2_451_545, 2_145_031_949
FIRST_TIME = FIRST_DAY * DAY
"""What PostgreSQL can hold, in days and microseconds since 2000; Spark's times end before its do."""


def declared(type_: Type) -> str:
    """The type of a column."""
    return type_name(type_) + (' COLLATE "C"' if type_ == Scalar("STRING") else "")


def type_name(type_: Type) -> str:
    """The type as PostgreSQL's catalog writes it."""
    match type_:
        case Scalar(name):
            return NAMES[name]
        case Decimal(precision, scale):
            return f"numeric({precision},{scale})"
        case _:
            return "jsonb"


def staged(type_: Type) -> str:
    """The type in which a column is sent; from texts the rest is made there."""
    return NAMES[type_.name] if isinstance(type_, Scalar) else "text"


@dataclass(frozen=True)
class Sent:
    """A column in both forms. `far` are the rows whose value PostgreSQL does not have, and that value."""

    exact: Wire
    stored: Wire
    far: dict[int, int | str]


def sent(type_: Type, array: pa.Array) -> Sent:
    if isinstance(type_, Decimal):
        return _same(of_binary(array.cast(pa.string())))
    if not isinstance(type_, Scalar):
        return _json(type_, array)
    match type_.name:
        case "STRING":
            return Sent(of_binary(array), of_binary(escaped_array(array)), {})
        case "BINARY":
            return _same(of_binary(array))
        case "FLOAT" | "DOUBLE":
            return _floats(type_.name, array)
        case "DATE":
            return _times(type_.name, _numbers(array, pa.int32()), valid(array), EPOCH_DAYS, (FIRST_DAY, END_DAY))
        case "TIMESTAMP" | "TIMESTAMP_NTZ":
            return _times(type_.name, _numbers(array, pa.int64()), valid(array), EPOCH_DAYS * DAY, (FIRST_TIME, None))
        case "BOOLEAN":
            return _same(fixed(_numbers(array, pa.int8()).astype(">i1"), valid(array)))
        case name:
            return _same(fixed(_numbers(array, array.type).astype(BIG[name]), valid(array)))


def _same(wire: Wire) -> Sent:
    return Sent(wire, wire, {})


def _numbers(array: pa.Array, type_: pa.DataType) -> Numbers:
    found: Numbers = array.cast(type_).fill_null(0).to_numpy(zero_copy_only=False)
    return found


def _json(type_: Type, array: pa.Array) -> Sent:
    """jsonb orders the names of an object anew: what order a map had is kept apart."""
    values = [escaped_json(value) for value in to_json(type_, array)]
    texts = [None if value is None else json.dumps(value, ensure_ascii=False) for value in values]
    wire = of_bytes([None if text is None else text.encode() for text in texts])
    moved = [at for at, value in enumerate(values) if _is_reordered(value)] if has_map(type_) else []
    return Sent(wire, wire, {at: texts[at] or "" for at in moved})


def _is_reordered(value: object) -> bool:
    match value:
        case dict():
            names = [(len(name.encode()), name.encode()) for name in value]
            return names != sorted(names) or any(map(_is_reordered, value.values()))
        case list():
            return any(map(_is_reordered, value))
        case _:
            return False


def _floats(name: str, array: pa.Array) -> Sent:
    values = array.fill_null(0).to_numpy(zero_copy_only=False)
    is_valid, is_nan = valid(array), np.isnan(values)
    if is_nan.any():
        values = np.where(is_nan, np.nan, values).astype(values.dtype)  # of all NaNs one
    stored = fixed(values.astype(BIG[name]), is_valid)
    if not (np.signbit(values) & (values == 0)).any():
        return _same(stored)
    return Sent(fixed((values + 0.0).astype(BIG[name]), is_valid), stored, {})  # -0.0 + 0.0 is 0.0


def _times(name: str, values: Numbers, is_valid: Numbers, epoch: int, within: tuple[int, int | None]) -> Sent:
    with np.errstate(over="ignore"):
        shifted = values - values.dtype.type(epoch)  # the earliest wrap around: still each its own
    exact = fixed(shifted.astype(BIG[name]), is_valid)
    first, end = within
    early = (values < first + epoch) & is_valid
    late = (shifted >= end) & is_valid & ~early if end is not None else np.zeros(len(values), bool)
    if not (early.any() or late.any()):
        return _same(exact)
    bounds = np.iinfo(values.dtype)
    stored = np.where(early, bounds.min, np.where(late, bounds.max, shifted)).astype(BIG[name])
    far: dict[int, int | str] = {int(at): int(values[at]) for at in np.flatnonzero(early | late)}
    return Sent(exact, fixed(stored, is_valid), far)
