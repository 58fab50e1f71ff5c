"""Nested values as JSON: arrays, maps and structs of any depth, column by column, and back.

What lies inside is as in a column of its own (`values.py`), except: BINARY is hexadecimal, booleans are true and
false, infinities are the texts Infinity and -Infinity. A map is an object if its keys are strings, else pairs; a
struct is an object. Strings that are not UTF-8 keep their bytes as escaped half characters.
"""

import math
from collections.abc import Iterator, Sequence
from itertools import accumulate, chain
from typing import Any, assert_never

import pyarrow as pa

from penstock.schema import Array, Column, Decimal, Map, Scalar, Struct, Type, arrow_type
from penstock.views.scalars import decoded_scalars, encoded_scalars

STRING = Scalar("STRING")


def to_json(type_: Type, array: pa.Array) -> list[Any]:
    """The values of an Arrow array as JSON has them."""
    match type_:
        case Scalar() | Decimal():
            return [_json_scalar(type_, value) for value in encoded_scalars(type_, array)]
        case Array(element):
            return list(_cut(array, to_json(element, array.flatten())))
        case Map(key, value):
            return _json_maps(key, value, array)
        case Struct(fields):
            return _json_structs(fields, array)
        case _:
            assert_never(type_)


def from_json(type_: Type, values: Sequence[Any]) -> pa.Array:
    """The Arrow array whose values JSON has so."""
    match type_:
        case Scalar() | Decimal():
            return decoded_scalars(type_, [_plain_scalar(type_, value) for value in values])
        case Array(element):
            items = from_json(element, [item for each in values if each is not None for item in each])
            return pa.ListArray.from_arrays(_offsets(values), items, type=arrow_type(type_), mask=_nulls(values))
        case Map(key, value):
            pairs = [(value.items() if isinstance(value, dict) else value) for value in values if value is not None]
            keys, items = zip(*chain.from_iterable(pairs), strict=True) if any(pairs) else ((), ())
            arrays = from_json(key, keys), from_json(value, items)
            return pa.MapArray.from_arrays(_offsets(values), *arrays, arrow_type(type_), mask=_nulls(values))
        case Struct(fields):
            columns = [
                from_json(field.type, [None if value is None else value[field.name] for value in values])
                for field in fields
            ]
            return pa.StructArray.from_arrays(columns, fields=list(arrow_type(type_)), mask=_nulls(values))
        case _:
            assert_never(type_)


def _json_scalar(type_: Scalar | Decimal, value: Any) -> Any:
    match value:
        case bytes():
            return value.hex() if type_ == Scalar("BINARY") else value.decode(errors="surrogateescape")
        case float() if math.isinf(value):
            return "Infinity" if value > 0 else "-Infinity"
        case int() if type_ == Scalar("BOOLEAN"):
            return bool(value)
        case _:
            return value


def _plain_scalar(type_: Scalar | Decimal, value: Any) -> Any:
    return bytes.fromhex(value) if type_ == Scalar("BINARY") and value is not None else value


def _json_maps(key: Type, value: Type, array: pa.Array) -> list[Any]:
    entry = pa.struct([array.type.key_field, array.type.item_field])
    lists = array.cast(pa.list_(entry))  # Arrow does not flatten maps
    entries = lists.flatten()
    pairs = list(zip(to_json(key, entries.field(0)), to_json(value, entries.field(1)), strict=True))
    return [dict(each) if key == STRING and each is not None else each for each in _cut(lists, pairs)]


def _json_structs(fields: Sequence[Column], array: pa.StructArray) -> list[Any]:
    names = [field.name for field in fields]
    columns = [to_json(field.type, column) for field, column in zip(fields, array.flatten(), strict=True)]
    rows = zip(array.is_valid().to_pylist(), *columns, strict=True)
    return [dict(zip(names, row, strict=True)) if valid else None for valid, *row in rows]


def _cut(array: pa.ListArray, items: Sequence[Any]) -> Iterator[list[Any] | None]:
    """The items of each list, NULL for none."""
    at = 0
    for length in array.value_lengths().to_pylist():
        yield None if length is None else list(items[at : at + length])
        at += length or 0


def _offsets(values: Sequence[Any]) -> pa.Array:
    return pa.array(accumulate((len(value or ()) for value in values), initial=0), pa.int32())


def _nulls(values: Sequence[Any]) -> pa.Array:
    return pa.array([value is None for value in values], pa.bool_())
