"""Values: what a case file writes becomes a value of its column's type, and two such values can be compared.

| type | written as |
|---|---|
| numbers | a number, or its text; `NaN`, `Infinity`, `-Infinity` |
| DECIMAL | the same; rounded to the column's scale |
| BOOLEAN | true or false, or a text that Spark casts to one: `yes`, `f`, `1` |
| STRING | a text; a number or a boolean stands for its text |
| BINARY | hexadecimal digits |
| DATE, TIMESTAMP | `2024-01-31`, `2024-01-31 12:00:00.5`; UTC, or with `Z`, `+02:00`, `Europe/Rome` at the end |
| ARRAY | a list |
| STRUCT | a map of its fields, or a list of their values |
| MAP | a map, or a list of pairs |
"""

import math
import re
from collections.abc import Callable, Iterable, Mapping
from datetime import UTC, date, datetime, timedelta, timezone, tzinfo
from decimal import ROUND_HALF_UP, Context, InvalidOperation
from decimal import Decimal as Number
from typing import Any, assert_never
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

import numpy as np

from penstock.schema import Array, Column, Decimal, Map, Scalar, Struct, Type, type_text

TRUTHS = dict.fromkeys(("true", "t", "yes", "y", "1"), True) | dict.fromkeys(("false", "f", "no", "n", "0"), False)
"""As Spark casts texts."""
BITS = {"TINYINT": 8, "SMALLINT": 16, "INT": 32, "BIGINT": 64}
TIME = re.compile(
    r"(\d{4})-(\d{1,2})-(\d{1,2})(?:[ T](\d{1,2}):(\d{2})(?::(\d{2})(?:\.(\d{1,6})\d*)?)?)?\s*(\S+)?", re.ASCII
)
OFFSET = re.compile(r"([+-])(\d{2}):?(\d{2})", re.ASCII)
DIGITS = Context(prec=60)
TOLERANCE = 1e-9


class Misfit(ValueError):
    """A value that no value of the type is meant by."""


def cast(type_: Type, value: Any) -> Any:
    """The value as Python has it, ready to be appended; what is of the type already stays."""
    if value is None:
        return None
    match type_:
        case Scalar(name):
            return CASTS[name](type_, value)
        case Decimal(precision, scale):
            return _decimal(type_, value, precision, scale)
        case Array(element):
            return [cast(element, each) for each in _items(type_, value)]
        case Map(key, item):
            return [(cast(key, k), cast(item, v)) for k, v in _pairs(type_, value)]
        case Struct(fields):
            return {field.name: cast(field.type, each) for field, each in _fields(type_, fields, value)}
        case _:
            assert_never(type_)


def comparable(value: Any, *, unordered: bool = False) -> Any:
    """A cast value in a form that can be counted: equal where Spark says equal. `unordered` arrays are equal in any
    order; maps always are.
    """
    match value:
        case float():
            return "NaN" if value != value else value + 0.0
        case dict():
            return tuple(comparable(each, unordered=unordered) for each in value.values())
        case list() | tuple():
            items = [comparable(each, unordered=unordered) for each in value]
            is_map = bool(value) and isinstance(value[0], tuple)
            return tuple(sorted(items, key=repr)) if unordered or is_map else tuple(items)
        case _:
            return value


def alike(one: Any, other: Any) -> bool:
    """Whether comparable values are equal, floating-point numbers within a billionth of their size."""
    if isinstance(one, tuple) and isinstance(other, tuple):
        return len(one) == len(other) and all(map(alike, one, other))
    if isinstance(one, float) and isinstance(other, float):
        return math.isclose(one, other, rel_tol=TOLERANCE)
    return bool(one == other)


def shown(value: Any) -> str:
    """The value as a difference shows it."""
    match value:
        case None:
            return "NULL"
        case bool():
            return str(value).lower()
        case bytes():
            return value.hex()
        case datetime():
            return value.replace(tzinfo=None).isoformat(sep=" ")
        case Number():
            return format(value, "f")
        case tuple():
            return f"({', '.join(map(shown, value))})"
        case _:
            return str(value)


def _misfit(type_: Type, value: Any) -> Misfit:
    written = f'"{value}"' if isinstance(value, str) else shown(value)
    return Misfit(f"{written} is no {type_text(type_)}")


def _number(type_: Type, value: Any) -> Number:
    try:
        if isinstance(value, bool) or not isinstance(value, int | float | Number | str):
            raise _misfit(type_, value)
        return Number(str(value) if isinstance(value, float) else value)
    except InvalidOperation:
        raise _misfit(type_, value) from None


def _integer(type_: Scalar, value: Any) -> int:
    number = _number(type_, value)
    limit = 1 << (BITS[type_.name] - 1)
    if not number.is_finite() or number != number.to_integral_value() or not -limit <= number < limit:
        raise _misfit(type_, value)
    return int(number)


def _decimal(type_: Decimal, value: Any, precision: int, scale: int) -> Number:
    number = _number(type_, value)
    if not number.is_finite():
        raise _misfit(type_, value)
    rounded = number.quantize(Number(1).scaleb(-scale), ROUND_HALF_UP, DIGITS)
    if abs(rounded) >= Number(10) ** (precision - scale):
        raise _misfit(type_, value)
    return rounded


def _double(type_: Scalar, value: Any) -> float:
    return float(_number(type_, value))


def _float(type_: Scalar, value: Any) -> float:
    with np.errstate(over="ignore"):
        return float(np.float32(_double(type_, value)))


def _truth(type_: Scalar, value: Any) -> bool:
    word = str(value).strip().lower()
    if word not in TRUTHS or isinstance(value, float):
        raise _misfit(type_, value)
    return TRUTHS[word]


def _string(type_: Scalar, value: Any) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if not isinstance(value, str | int | Number):
        raise _misfit(type_, value)
    return str(value)


def _binary(type_: Scalar, value: Any) -> bytes:
    if isinstance(value, bytes):
        return value
    try:
        return bytes.fromhex(str(value))
    except ValueError:
        raise _misfit(type_, value) from None


def _date(type_: Scalar, value: Any) -> date:
    if isinstance(value, date) and not isinstance(value, datetime):
        return value
    return _time(type_, value).date()


def _timestamp(type_: Scalar, value: Any) -> datetime:
    return _time(type_, value).astimezone(UTC)


def _timestamp_without_zone(type_: Scalar, value: Any) -> datetime:
    return _time(type_, value).replace(tzinfo=None)


def _time(type_: Scalar, value: Any) -> datetime:
    """In the zone that the text names."""
    if isinstance(value, datetime):
        return value if value.tzinfo else value.replace(tzinfo=UTC)
    found = TIME.fullmatch(str(value).strip())
    if found is None:
        raise _misfit(type_, value)
    year, month, day, hour, minute, second, fraction, zone = found.groups()
    clock = (int(hour or 0), int(minute or 0), int(second or 0), int((fraction or "0").ljust(6, "0")))
    try:
        return datetime(int(year), int(month), int(day), *clock, tzinfo=_zone(zone or "UTC"))
    except (ValueError, ZoneInfoNotFoundError):
        raise _misfit(type_, value) from None


def _zone(name: str) -> tzinfo:
    if found := OFFSET.fullmatch(name):
        ahead = timedelta(hours=int(found[2]), minutes=int(found[3]))
        return timezone(ahead if found[1] == "+" else -ahead)
    return UTC if name in ("Z", "UTC") else ZoneInfo(name)


def _items(type_: Type, value: Any) -> list[Any]:
    if not isinstance(value, list):
        raise _misfit(type_, value)
    return value


def _pairs(type_: Type, value: Any) -> Iterable[tuple[Any, Any]]:
    if isinstance(value, Mapping):
        return value.items()
    if not all(isinstance(pair, list | tuple) and len(pair) == 2 for pair in _items(type_, value)):
        raise _misfit(type_, value)
    return [(key, item) for key, item in value]


def _fields(type_: Type, fields: tuple[Column, ...], value: Any) -> Iterable[tuple[Column, Any]]:
    if isinstance(value, list) and len(value) == len(fields):
        return zip(fields, value, strict=True)
    if not isinstance(value, Mapping):
        raise _misfit(type_, value)
    given = {str(name).lower(): each for name, each in value.items()}
    if len(given) < len(value) or not given.keys() <= {field.name.lower() for field in fields}:
        raise _misfit(type_, value)
    return [(field, given.get(field.name.lower())) for field in fields]


CASTS: Mapping[str, Callable[[Scalar, Any], Any]] = {
    "BOOLEAN": _truth,
    **dict.fromkeys(BITS, _integer),
    "FLOAT": _float,
    "DOUBLE": _double,
    "STRING": _string,
    "BINARY": _binary,
    "DATE": _date,
    "TIMESTAMP": _timestamp,
    "TIMESTAMP_NTZ": _timestamp_without_zone,
}
