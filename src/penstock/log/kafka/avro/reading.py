"""Columns out of Avro's encoding.

A schema that does not go together with its column is refused when the reader is made.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from penstock.errors import SchemaError
from penstock.log.kafka.avro.encoded import BROKEN, Encoded, Misfit, NotAvro
from penstock.log.kafka.avro.scalars import Read, enum, integer, scalar_reader
from penstock.log.kafka.avro.schemas import Names, kind_of
from penstock.schema import Array, Map, Scalar, Struct, Type, type_text


def reader(schema: Any, type_: Type, names: Names, where: str) -> Read:
    """What reads a column of the type; a `SchemaError` where the two do not go together."""
    if isinstance(schema, list):
        return _union([reader(branch, type_, names, where) for branch in schema])
    kind, says = kind_of(schema, names)
    if kind == "null":
        return lambda _: None
    match kind, type_:
        case "array", Array(element):
            return _array(reader(says["items"], element, names, where))
        case "array", Map(key, value):
            return _entries(says["items"], key, value, names, where)
        case "map", Map(Scalar("STRING"), value):
            return _map(reader("string", Scalar("STRING"), names, where), reader(says["values"], value, names, where))
        case ("record", Struct()):
            return _struct(says, type_, names, where)
        case _:
            read = scalar_reader(kind, says, type_)
    if read is None:
        raise SchemaError(
            f"the Avro schema has {kind} for {where}",
            detail=f"Its column is {type_text(type_)}{_logical(says)}.",
            hint="docs/formats/kafka.md says which types go together.",
        )
    return _misfits(read, type_text(type_))


def _logical(says: Mapping[str, Any]) -> str:
    return f", the schema's logical type {says['logicalType']}" if "logicalType" in says else ""


def _misfits(read: Read, wanted: str) -> Read:
    def checked(encoded: Encoded) -> Any:
        try:
            return read(encoded)
        except (ValueError, ArithmeticError):
            raise Misfit(wanted) from None

    return checked


def _union(branches: Sequence[Read]) -> Read:
    def value(encoded: Encoded) -> Any:
        at = encoded.long()
        if not 0 <= at < len(branches):
            raise NotAvro(BROKEN)
        return branches[at](encoded)

    return value


def _array(element: Read) -> Read:
    def value(encoded: Encoded) -> list[Any]:
        found: list[Any] = []
        for count in encoded.counts():
            for _ in range(count):
                try:
                    found.append(element(encoded))
                except Misfit as error:
                    raise error.under(f"[{len(found)}]") from None
        return found

    return value


def _map(key: Read, read: Read) -> Read:
    def value(encoded: Encoded) -> list[tuple[Any, Any]]:
        return [(key(encoded), read(encoded)) for count in encoded.counts() for _ in range(count)]

    return value


def _entries(items: Any, key: Type, value: Type, names: Names, where: str) -> Read:
    """A map whose keys are no text is an array of entries."""
    kind, says = kind_of(items, names)
    fields = [(field["name"], field["type"]) for field in says.get("fields", ())] if kind == "record" else []
    if [name for name, _ in fields] != ["key", "value"]:
        raise SchemaError(
            f"the Avro schema has an array for {where}",
            detail=f"Its column is {type_text(Map(key, value))}.",
            hint="Its elements should be records of key and value.",
        )
    read_key, wanted = reader(fields[0][1], key, names, where), type_text(key)

    def there(encoded: Encoded) -> Any:
        found = read_key(encoded)
        if found is None:
            raise Misfit(wanted)
        return found

    return _map(there, reader(fields[1][1], value, names, where))


def _struct(says: Mapping[str, Any], type_: Struct, names: Names, where: str) -> Read:
    types = {field.name: field.type for field in type_.fields}
    fields: list[tuple[str | None, Read]] = []
    for field in says["fields"]:
        name, inner = field["name"], types.get(field["name"])
        read = reader(field["type"], inner, names, where) if inner else skipper(field["type"], names)
        fields.append((name if inner else None, read))
    required = [(field.name, type_text(field.type)) for field in type_.fields if not field.nullable]

    def value(encoded: Encoded) -> dict[str, Any]:
        row: dict[str, Any] = dict.fromkeys(types)
        for name, read in fields:
            try:
                found = read(encoded)
            except Misfit as error:
                raise error.under(f".{name}") from None
            if name is not None:
                row[name] = found
        for name, wanted in required:
            if row[name] is None:
                raise Misfit(wanted, f".{name}")
        return row

    return value


def skipper(schema: Any, names: Names) -> Read:
    """What passes over a value."""
    if isinstance(schema, list):
        return _union([skipper(branch, names) for branch in schema])
    kind, says = kind_of(schema, names)
    match kind:
        case "null":
            return lambda _: None
        case "boolean":
            return Encoded.boolean
        case "int" | "long":
            return lambda encoded: integer(kind, encoded)
        case "enum":
            return enum(says["symbols"])
        case "float" | "double":
            return lambda encoded: encoded.take(4 if kind == "float" else 8)
        case "fixed":
            return lambda encoded: encoded.take(says["size"])
        case "array" | "map":
            inner = skipper(says["items" if kind == "array" else "values"], names)
            return _skipped(inner, keyed=kind == "map")
        case "record":
            parts = [skipper(field["type"], names) for field in says["fields"]]
            return lambda encoded: [part(encoded) for part in parts] and None
        case _:
            return lambda encoded: encoded.take(encoded.long())


def _skipped(inner: Read, *, keyed: bool) -> Read:
    def value(encoded: Encoded) -> None:
        for count in encoded.counts():
            for _ in range(count):
                if keyed:
                    encoded.take(encoded.long())
                inner(encoded)

    return value
