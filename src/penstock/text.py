"""Values as text: what JSON and CSV say becomes a column's value, and back.

Timestamps, dates and decimals are text (a time without a zone is UTC), binary is hexadecimal or base64, NaN and
infinity are words. Nothing is rounded or cut: what does not fit its column is an `Unfit`. What `writer`
writes, `reader` reads. The kernel reads the same (`kernel/src/penstock/kernel/json`), with the same words where it
does not: tests/log/kafka/cases.py has cases that both are held to.
"""

import json
import math
import re
import struct
from base64 import b64decode, b64encode
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, date, datetime
from decimal import Context
from decimal import Decimal as Number
from typing import Any, assert_never

import numpy as np

from penstock.schema import Array, Column, Decimal, Map, Scalar, Struct, Type, type_text

Convert = Callable[[Any], Any]


@dataclass(frozen=True)
class Bytes:
    """How bytes are written as text."""

    read: Convert
    write: Convert


HEX = Bytes(bytes.fromhex, bytes.hex)
BASE64 = Bytes(lambda text: b64decode(text, validate=True), lambda value: b64encode(value).decode())

BITS = {"TINYINT": 8, "SMALLINT": 16, "INT": 32, "BIGINT": 64}
WORDS = {"nan": math.nan, "infinity": math.inf, "-infinity": -math.inf}
EXACT = Context(prec=80)
SINGLE = struct.Struct("<f")

NUMBER = re.compile(r"[+-]?[0-9.]+([eE][+-]?[0-9]+)?")
WHOLE = re.compile(r"[+-]?[0-9]+")
DAY = r"[0-9]{4}-[0-9]{2}-[0-9]{2}|[0-9]{8}"
CLOCK = r"([01][0-9]|2[0-3])(:[0-5][0-9](:[0-5][0-9]%(fraction)s)?|[0-5][0-9]([0-5][0-9]%(fraction)s)?)?"
DATE = re.compile(DAY)
MOMENT = re.compile(f"({DAY})([Tt ]{CLOCK % {'fraction': '([.,][0-9]{1,6})?'}}(Z|[+-]{CLOCK % {'fraction': ''}})?)?")
"""Which of the many forms of ISO 8601 are read: Python's own choice differs from version to version."""


HINTS = {
    "BINARY": 'Write bytes in hexadecimal: "00ff".',
    "BOOLEAN": "Write true or false.",
    "DATE": 'Write dates as "2024-01-31".',
    "STRING": "Write text in double quotes.",
    "TIMESTAMP": 'Write times as "2024-01-31T12:00:00Z", not finer than a microsecond.',
    "TIMESTAMP_NTZ": 'Write times without a zone: "2024-01-31T12:00:00".',
}


class Unfit(ValueError):
    """A value that does not fit: the value, the type it should have, and where it lies inside the field."""

    def __init__(self, value: Any, wanted: str, path: str = "") -> None:
        super().__init__(f"{shown(value)} is not {_article(wanted)} {wanted}")
        self.value, self.wanted, self.path = value, wanted, path
        self.hint = HINTS.get(wanted, "")

    def under(self, path: str) -> "Unfit":
        return Unfit(self.value, self.wanted, path + self.path)


def shown(value: Any) -> str:
    """The value for an error's text, not too long of it."""
    text = json.dumps(value, ensure_ascii=False, default=str).encode(errors="backslashreplace").decode()
    return text if len(text) <= 60 else text[:57] + "..."


def _article(word: str) -> str:
    return "an" if word[0] in "AEIOU" else "a"


# From JSON


def reader(type_: Type, binary: Bytes = HEX) -> Convert:
    """The function that makes the column's value of a JSON value; null stays NULL."""
    wanted, parse = type_text(type_), _parser(type_, binary)

    def read(given: Any) -> Any:
        if given is None:
            return None
        try:
            return parse(given)
        except Unfit:
            raise
        except (ValueError, TypeError, ArithmeticError):
            raise Unfit(given, wanted) from None

    return read


def text_reader(type_: Type) -> Convert:
    """As `reader`, for the text of a CSV field: nothing is NULL, and arrays, maps and structs are JSON."""
    read = reader(type_)
    nested = isinstance(type_, Array | Map | Struct)

    def read_text(given: str) -> Any:
        if given == "":
            return None
        try:
            return read(parsed_json(given) if nested else given)
        except json.JSONDecodeError:
            raise Unfit(given, type_text(type_)) from None

    return read_text


def parsed_json(text: str) -> Any:
    """JSON with exact numbers; NaN and infinities, which are not JSON but common, come as words."""
    try:
        return DECODER.decode(text)
    except ArithmeticError:  # an exponent of twenty digits: whoever reads bad JSON knows what to do with a ValueError
        raise ValueError("a number is beyond all bounds") from None


class Word(str):
    """NaN or an infinity without quotes, which is no text."""


DECODER = json.JSONDecoder(parse_float=Number, parse_constant=Word)


def _parser(type_: Type, binary: Bytes) -> Convert:
    match type_:
        case Scalar("BINARY"):
            return lambda given: binary.read(_string(given))
        case Scalar(name):
            return _scalar(name)
        case Decimal(precision, scale):
            return lambda given: _decimal(given, precision, scale)
        case Array(element):
            return _array(reader(element, binary))
        case Map(key, value):
            return _map(_field_reader(Column("key", key, nullable=False), binary), reader(value, binary))
        case Struct(fields):
            return _struct({field.name: _field_reader(field, binary) for field in fields})
        case _:
            assert_never(type_)


def _field_reader(field: Column, binary: Bytes) -> Convert:
    read, wanted = reader(field.type, binary), type_text(field.type)

    def read_there(given: Any) -> Any:
        if given is None:
            raise Unfit(given, wanted)
        return read(given)

    return read if field.nullable else read_there


def _scalar(name: str) -> Convert:
    if name in BITS:
        return lambda given: _integer(given, 1 << BITS[name] - 1)
    plain: dict[str, Convert] = {
        "BOOLEAN": _boolean,
        "FLOAT": _single,
        "DOUBLE": _floating,
        "STRING": _string,
        "DATE": _date,
        "TIMESTAMP": _timestamp,
        "TIMESTAMP_NTZ": _local_timestamp,
    }
    return plain[name]


def _boolean(given: Any) -> bool:
    value = {"true": True, "false": False}.get(given.lower()) if isinstance(given, str) else given
    if not isinstance(value, bool):
        raise ValueError
    return value


def _integer(given: Any, bound: int) -> int:
    value = int(given) if isinstance(given, str) and WHOLE.fullmatch(given) else given
    if type(value) is not int or not -bound <= value < bound:
        raise ValueError
    return value


def _single(given: Any) -> float:
    """The nearest number of 32 bits: what is written as its shortest text may be a little more than the largest."""
    (value,) = SINGLE.unpack(SINGLE.pack(_floating(given)))
    return float(value)


def _floating(given: Any) -> float:
    if isinstance(given, str) and given.lower() in WORDS:
        return WORDS[given.lower()]
    value = float(_number(given))
    if math.isinf(value):
        raise ValueError
    return value


def _decimal(given: Any, precision: int, scale: int) -> Number:
    value = _number(given)
    fitted = value.quantize(Number(1).scaleb(-scale), context=EXACT)
    if fitted != value or len(fitted.as_tuple().digits) > precision:
        raise ValueError
    return fitted


def _number(given: Any) -> Number:
    # Decimal would also make a number of [0, [1, 2], -1].
    if type(given) not in (int, float, Number, str) or (isinstance(given, str) and not NUMBER.fullmatch(given)):
        raise ValueError
    return Number(given)


def _string(given: Any) -> str:
    if not isinstance(given, str) or isinstance(given, Word):
        raise TypeError
    given.encode()  # JSON can name half a character, which is no text
    return given


def _date(given: str) -> date:
    if not DATE.fullmatch(given):
        raise ValueError
    return date.fromisoformat(given)


def _timestamp(given: str) -> datetime:
    value = _moment(given)
    return value.astimezone(UTC) if value.tzinfo else value.replace(tzinfo=UTC)


def _moment(given: str) -> datetime:
    if not MOMENT.fullmatch(given):
        raise ValueError
    return datetime.fromisoformat(given)


def _local_timestamp(given: str) -> datetime:
    value = _moment(given)
    if value.tzinfo:
        raise ValueError
    return value


def _array(element: Convert) -> Convert:
    def read(given: Any) -> list[Any]:
        if not isinstance(given, list):
            raise TypeError
        return [_inside(f"[{at}]", element, value) for at, value in enumerate(given)]

    return read


def _map(key: Convert, value: Convert) -> Convert:
    def read(given: Any) -> list[tuple[Any, Any]]:
        return [(_inside("", key, k), _inside(f"[{shown(k)}]", value, v)) for k, v in _pairs(given)]

    return read


def _pairs(given: Any) -> Iterable[tuple[Any, Any]]:
    if isinstance(given, Mapping):
        return given.items()
    if not isinstance(given, list) or any(not isinstance(pair, list) for pair in given):
        raise TypeError
    return [(k, v) for k, v in given]


def _struct(readers: Mapping[str, Convert]) -> Convert:
    def read(given: Any) -> dict[str, Any]:
        if not isinstance(given, Mapping) or not readers.keys() >= given.keys():
            raise TypeError
        return {name: _inside(f".{name}", read, given.get(name)) for name, read in readers.items()}

    return read


def _inside(path: str, read: Convert, given: Any) -> Any:
    try:
        return read(given)
    except Unfit as error:
        raise error.under(path) from None


# To JSON


def writer(type_: Type, binary: Bytes = HEX) -> Convert:
    """The function that makes a JSON value of the column's value."""
    write = _printer(type_, binary)
    return lambda value: None if value is None else write(value)


def csv_text(value: Any) -> str:
    """A JSON value as the field of a CSV file."""
    if value is None:
        return ""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _printer(type_: Type, binary: Bytes) -> Convert:
    match type_:
        case Scalar("BINARY"):
            return binary.write
        case Scalar(name):
            return PRINTERS.get(name, lambda value: value)
        case Decimal():
            return lambda value: format(value, "f")
        case Array(element):
            write_element = writer(element, binary)
            return lambda value: [write_element(each) for each in value]
        case Map(key, value_type):
            in_text = isinstance(key, Scalar | Decimal)
            return _map_printer(writer(key, binary), writer(value_type, binary), in_text=in_text)
        case Struct(fields):
            writers = {field.name: writer(field.type, binary) for field in fields}
            return lambda value: {name: write(value[name]) for name, write in writers.items()}
        case _:
            assert_never(type_)


def _map_printer(key_of: Convert, value_of: Convert, *, in_text: bool) -> Convert:
    """An object where its keys have a text; pairs where they are arrays, maps or structs, or one stands there twice."""

    def write(pairs: Any) -> Any:
        found = {csv_text(key_of(k)): value_of(v) for k, v in pairs} if in_text else {}
        return found if in_text and len(found) == len(pairs) else [[key_of(k), value_of(v)] for k, v in pairs]

    return write


def _floating_text(value: float) -> float | str:
    if math.isfinite(value):
        return value
    return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"


def _timestamp_text(value: datetime) -> str:
    return value.isoformat().replace("+00:00", "Z")


PRINTERS: dict[str, Convert] = {
    "FLOAT": lambda value: _floating_text(float(str(np.float32(value)))),  # 0.1, not 0.10000000149011612
    "DOUBLE": _floating_text,
    "DATE": date.isoformat,
    "TIMESTAMP": _timestamp_text,
    "TIMESTAMP_NTZ": datetime.isoformat,
}
