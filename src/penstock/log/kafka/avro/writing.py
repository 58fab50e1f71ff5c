"""Columns into Avro's encoding."""

from collections.abc import Callable, Mapping, Sequence
from datetime import UTC
from decimal import Decimal as Number
from typing import Any

from penstock.errors import SchemaError
from penstock.log.kafka.avro.encoded import long_bytes
from penstock.log.kafka.avro.scalars import DOUBLE, EPOCH, EPOCH_DAY, FLOAT, UNITS
from penstock.log.kafka.avro.schemas import Names, kind_of
from penstock.schema import Array, Map, Struct, Type
from penstock.text import EXACT

Write = Callable[[Any], bytes]


def writer(schema: Any, type_: Type | None, names: Names) -> Write:
    """What writes a column of the type; fields without a column are written as null."""
    if isinstance(schema, list):
        return _union_writer(schema, type_, names)
    kind, says = kind_of(schema, names)
    if kind == "null":
        return lambda _: b""
    if type_ is None:
        raise SchemaError("the Avro schema has a field that no column has", hint="Let it be null, or add the column.")
    write = _value_writer(kind, says, type_, names)

    def there(value: Any) -> bytes:
        if value is None:
            raise SchemaError(
                "a value is NULL where the Avro schema has no null", hint='Write the type as ["null", ...].'
            )
        return write(value)

    return there


def _union_writer(schema: list[Any], type_: Type | None, names: Names) -> Write:
    kinds = [kind_of(branch, names)[0] for branch in schema]
    chosen = next((at for at, kind in enumerate(kinds) if kind != "null"), None) if type_ is not None else None
    null = kinds.index("null") if "null" in kinds else None
    write = None if chosen is None else writer(schema[chosen], type_, names)

    def value(given: Any) -> bytes:
        if given is None and null is not None:
            return long_bytes(null)
        if write is None or chosen is None:
            raise SchemaError("a value cannot be written as the Avro schema says", hint="Let the field be null.")
        return long_bytes(chosen) + write(given)

    return value


def _value_writer(kind: str, says: Mapping[str, Any], type_: Type, names: Names) -> Write:
    match kind, type_:
        case "array", Array(element):
            inner = writer(says["items"], element, names)
            return lambda value: _block([inner(each) for each in value])
        case "array", Map(key, value_type):
            (_, key_schema), (_, value_schema) = [
                (f["name"], f["type"]) for f in kind_of(says["items"], names)[1]["fields"]
            ]
            return _pair_writer(writer(key_schema, key, names), writer(value_schema, value_type, names))
        case "map", Map(key, value_type):
            return _pair_writer(writer("string", key, names), writer(says["values"], value_type, names))
        case "record", Struct(fields):
            types = {field.name: field.type for field in fields}
            parts = [(f["name"], writer(f["type"], types.get(f["name"]), names)) for f in says["fields"]]
            return lambda value: b"".join(write(value.get(name)) for name, write in parts)
        case _:
            return _scalar_writer(kind, says)


def _pair_writer(key: Write, value: Write) -> Write:
    return lambda pairs: _block([key(k) + value(v) for k, v in pairs])


def _block(items: Sequence[bytes]) -> bytes:
    return (long_bytes(len(items)) + b"".join(items) if items else b"") + b"\x00"


def _scalar_writer(kind: str, says: Mapping[str, Any]) -> Write:
    logical = says.get("logicalType", "")
    match kind:
        case "boolean":
            return lambda value: b"\x01" if value else b"\x00"
        case "int" if logical == "date":
            return lambda value: long_bytes(value.toordinal() - EPOCH_DAY)
        case "long" if logical.endswith(("millis", "micros")):
            unit = UNITS[logical.rpartition("-")[2]]
            return lambda value: long_bytes((value.replace(tzinfo=value.tzinfo or UTC) - EPOCH) // unit)
        case "int" | "long":
            return lambda value: long_bytes(int(value))
        case "float":
            return lambda value: FLOAT.pack(value)
        case "double":
            return lambda value: DOUBLE.pack(value)
        case "string":
            return lambda value: _sized(value.encode())
        case "enum":
            return lambda value: long_bytes(says["symbols"].index(value))
        case "bytes" if logical == "decimal":
            return lambda value: _sized(_unscaled(value, says.get("scale", 0)))
        case "fixed" if logical == "decimal":
            return lambda value: int(value.scaleb(says.get("scale", 0), context=EXACT)).to_bytes(
                says["size"], signed=True
            )
        case "fixed":
            return lambda value: bytes(value)
        case _:
            return _sized


def _sized(value: bytes) -> bytes:
    return long_bytes(len(value)) + value


def _unscaled(value: Number, scale: int) -> bytes:
    whole = int(value.scaleb(scale, context=EXACT))
    return whole.to_bytes((whole if whole >= 0 else ~whole).bit_length() // 8 + 1, signed=True)
