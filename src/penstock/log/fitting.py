"""Fitting: whether Python values are of their column's type, looked at before Arrow takes them.

Arrow alone is too kind: it cuts 1.5 down to 1, drops the time of day for a DATE, and passes over fields that a STRUCT
does not have. What fits here may still be refused by Arrow (a number too large for its type).
"""

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import date, datetime
from decimal import Decimal as PythonDecimal
from numbers import Integral, Real
from typing import Any, assert_never

import numpy as np

from penstock.schema import Array, Decimal, Map, Scalar, Struct, Type

LARGEST_FLOAT = float(np.finfo(np.float32).max)


def first_misfit(type_: Type, values: Sequence[Any]) -> int | None:
    """The index of the first value that is not of the type, None if all are. NULL is of every type."""
    if isinstance(type_, Scalar) and set(map(type, values)) <= PLAIN.get(type_.name, frozenset()):
        return None
    return next((at for at, value in enumerate(values) if not fits(type_, value)), None)


def fits(type_: Type, value: Any) -> bool:
    if value is None:
        return True
    match type_:
        case Scalar(name):
            return SCALAR[name](value)
        case Decimal():
            return isinstance(value, PythonDecimal) or _is_whole_number(value)
        case Array(element):
            return _is_list(value) and all(fits(element, each) for each in value)
        case Map(key, value_type):
            return all(len(pair) == 2 and fits(key, pair[0]) and fits(value_type, pair[1]) for pair in _pairs(value))
        case Struct(fields):
            return (
                isinstance(value, Mapping)
                and value.keys() <= {field.name for field in fields}
                and all(
                    (field.nullable or value.get(field.name) is not None) and fits(field.type, value.get(field.name))
                    for field in fields
                )
            )
        case _:
            assert_never(type_)


def _pairs(value: Any) -> Iterable[Sequence[Any]]:
    if isinstance(value, Mapping):
        return list(value.items())
    return value if _is_list(value) and all(isinstance(pair, tuple | list) for pair in value) else [()]


def _is_list(value: Any) -> bool:
    return isinstance(value, list | tuple | np.ndarray)


def _is_whole_number(value: Any) -> bool:
    return isinstance(value, Integral) and not isinstance(value, bool)


def _is_number(value: Any) -> bool:
    return isinstance(value, Real) and not isinstance(value, bool)


def _is_float(value: Any) -> bool:
    return _is_number(value) and not LARGEST_FLOAT < abs(value) < math.inf


def _is_time(value: Any) -> bool:
    return isinstance(value, datetime | np.datetime64)


def _is_time_without_zone(value: Any) -> bool:
    return _is_time(value) and getattr(value, "tzinfo", None) is None


SCALAR: dict[str, Callable[[Any], bool]] = {
    "BOOLEAN": lambda value: isinstance(value, bool | np.bool_),
    **dict.fromkeys(("TINYINT", "SMALLINT", "INT", "BIGINT"), _is_whole_number),
    "FLOAT": _is_float,
    "DOUBLE": _is_number,
    "STRING": lambda value: isinstance(value, str),
    "BINARY": lambda value: isinstance(value, bytes | bytearray | memoryview),
    "DATE": lambda value: isinstance(value, date) and not isinstance(value, datetime),
    "TIMESTAMP": _is_time,
    "TIMESTAMP_NTZ": _is_time_without_zone,
}
NULL = type(None)
PLAIN: dict[str, frozenset[type]] = {
    "BOOLEAN": frozenset((bool, NULL)),
    **dict.fromkeys(("TINYINT", "SMALLINT", "INT", "BIGINT"), frozenset((int, NULL))),
    "DOUBLE": frozenset((float, int, NULL)),
    "STRING": frozenset((str, NULL)),
    "BINARY": frozenset((bytes, NULL)),
    "DATE": frozenset((date, NULL)),
    "TIMESTAMP": frozenset((datetime, NULL)),
}
"""Python's own types that fit as they are: the quick way for columns that hold nothing else."""
