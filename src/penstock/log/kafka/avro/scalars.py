"""Values that hold no others, out of Avro."""

import struct
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal as Number
from typing import Any

from penstock.log.kafka.avro.encoded import BROKEN, Encoded, NotAvro
from penstock.schema import Decimal, Scalar, Type
from penstock.text import BITS, EXACT

Read = Callable[[Encoded], Any]
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
FIRST_DAY, LAST_DAY = date.min.toordinal(), date.max.toordinal()
EPOCH_DAY = EPOCH.toordinal()
FLOAT, DOUBLE = struct.Struct("<f"), struct.Struct("<d")
UNITS = {"millis": timedelta(milliseconds=1), "micros": timedelta(microseconds=1)}
WHOLE, FLOATING = ("TINYINT", "SMALLINT", "INT", "BIGINT"), ("FLOAT", "DOUBLE")


def scalar_reader(kind: str, says: Mapping[str, Any], type_: Type) -> Read | None:
    logical = says.get("logicalType", "")
    match kind, type_:
        case (("bytes" | "fixed"), Decimal(precision, scale)) if logical == "decimal":
            return _decimal(_bytes(kind, says), says.get("scale", 0), precision, scale)
        case (("int" | "long"), Decimal(precision, scale)) if not logical:
            return lambda encoded: _fitted(Number(integer(kind, encoded)), precision, scale)
        case (("bytes" | "fixed"), Scalar("BINARY")):
            return _bytes(kind, says)
        case "string", Scalar("STRING"):
            return lambda encoded: encoded.take(encoded.long()).decode()
        case "enum", Scalar("STRING"):
            return enum(says["symbols"])
        case "boolean", Scalar("BOOLEAN"):
            return Encoded.boolean
        case "int", Scalar("DATE") if logical == "date":
            return lambda encoded: _date(integer("int", encoded))
        case "long", Scalar("TIMESTAMP") if logical in ("timestamp-millis", "timestamp-micros"):
            return _time(UNITS[logical.rpartition("-")[2]], EPOCH)
        case "long", Scalar("TIMESTAMP_NTZ") if logical in ("local-timestamp-millis", "local-timestamp-micros"):
            return _time(UNITS[logical.rpartition("-")[2]], EPOCH.replace(tzinfo=None))
        case (("int" | "long"), Scalar(name)) if name in WHOLE:
            return lambda encoded: _ranged(integer(kind, encoded), 1 << BITS[name] - 1)
        case (("int" | "long"), Scalar(name)) if name in FLOATING and not logical:
            return lambda encoded: _float(float(integer(kind, encoded)), name)
        case (("float" | "double"), Scalar(name)) if name in FLOATING:
            layout = FLOAT if kind == "float" else DOUBLE
            return lambda encoded: _float(layout.unpack(encoded.take(layout.size))[0], name)
        case _:
            return None


def integer(kind: str, encoded: Encoded) -> int:
    value = encoded.long()
    if kind == "int" and not -(1 << 31) <= value < 1 << 31:
        raise NotAvro(BROKEN)
    return value


def _ranged(value: int, bound: int) -> int:
    if not -bound <= value < bound:
        raise ValueError
    return value


def _float(value: float, name: str) -> float:
    return float(FLOAT.unpack(FLOAT.pack(value))[0]) if name == "FLOAT" else value


def _bytes(kind: str, says: Mapping[str, Any]) -> Read:
    size = says.get("size", 0)
    return (lambda encoded: encoded.take(encoded.long())) if kind == "bytes" else (lambda encoded: encoded.take(size))


def _decimal(read: Read, written: int, precision: int, scale: int) -> Read:
    def value(encoded: Encoded) -> Number:
        unscaled = int.from_bytes(read(encoded), signed=True)
        # More digits than any column has: not worth to be made a number.
        if abs(unscaled) >= 10**80:
            raise ValueError
        return _fitted(Number(unscaled).scaleb(-written, context=EXACT), precision, scale)

    return value


def _fitted(value: Number, precision: int, scale: int) -> Number:
    fitted = value.quantize(Number(1).scaleb(-scale), context=EXACT)
    if fitted != value or len(fitted.as_tuple().digits) > precision:
        raise ValueError
    return fitted


def enum(symbols: Sequence[str]) -> Read:
    def value(encoded: Encoded) -> str:
        at = encoded.long()
        if not 0 <= at < len(symbols):
            raise NotAvro(BROKEN)
        return symbols[at]

    return value


def _date(days: int) -> date:
    return date.fromordinal(_ranged_day(days + EPOCH_DAY))


def _ranged_day(day: int) -> int:
    if not FIRST_DAY <= day <= LAST_DAY:
        raise ValueError
    return day


def _time(unit: timedelta, epoch: datetime) -> Read:
    return lambda encoded: epoch + encoded.long() * unit
