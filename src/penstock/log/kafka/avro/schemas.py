"""Avro schemas: what columns are in Avro, and the types that a schema names."""

import re
from collections.abc import Mapping
from typing import Any

from penstock.errors import SchemaError
from penstock.schema import Array, Decimal, Map, Scalar, Schema, Struct, Type

Names = dict[str, Any]
NAME = re.compile("[A-Za-z_][A-Za-z0-9_]*")
PRIMITIVE = frozenset({"null", "boolean", "int", "long", "float", "double", "bytes", "string"})
KINDS = PRIMITIVE | {"record", "enum", "fixed", "array", "map"}


def schema_of(columns: Schema) -> dict[str, Any]:
    """The schema that values are written with where none is declared: every field may be null."""
    fields = [{"name": _name(each.name), "type": ["null", _avro(each.type, each.name)]} for each in columns.columns]
    return {"type": "record", "name": "row", "fields": fields}


def _name(name: str) -> str:
    if not NAME.fullmatch(name):
        raise SchemaError(
            f'"{name}" cannot be the name of a field in Avro',
            hint="Letters, digits and underscores, not beginning with a digit. Or leave the values in JSON.",
        )
    return name


def _avro(type_: Type, path: str) -> Any:
    match type_:
        case Scalar(name):
            return PLAIN[name]
        case Decimal(precision, scale):
            return {"type": "bytes", "logicalType": "decimal", "precision": precision, "scale": scale}
        case Array(element):
            return {"type": "array", "items": ["null", _avro(element, path + "_")]}
        case Map(Scalar("STRING"), value):
            return {"type": "map", "values": ["null", _avro(value, path + "_")]}
        case Map(key, value):
            entry = [("key", _avro(key, path + "_k")), ("value", ["null", _avro(value, path + "_v")])]
            fields = [{"name": name, "type": found} for name, found in entry]
            return {"type": "array", "items": {"type": "record", "name": f"{path}_entry", "fields": fields}}
        case Struct(fields):
            inner = [{"name": _name(f.name), "type": ["null", _avro(f.type, f"{path}_{f.name}")]} for f in fields]
            return {"type": "record", "name": f"{path}_row", "fields": inner}


PLAIN: dict[str, Any] = {
    "BOOLEAN": "boolean",
    "TINYINT": "int",
    "SMALLINT": "int",
    "INT": "int",
    "BIGINT": "long",
    "FLOAT": "float",
    "DOUBLE": "double",
    "STRING": "string",
    "BINARY": "bytes",
    "DATE": {"type": "int", "logicalType": "date"},
    "TIMESTAMP": {"type": "long", "logicalType": "timestamp-micros"},
    "TIMESTAMP_NTZ": {"type": "long", "logicalType": "local-timestamp-micros"},
}


def qualified(schema: Any, names: Names, space: str = "") -> Any:
    """The schema with the full names of its types, as Avro finds them: those without a dot are of the namespace around
    them. What is defined is put into `names`.
    """
    match schema:
        case str(name):
            return name if name in PRIMITIVE or "." in name or f"{space}.{name}" not in names else f"{space}.{name}"
        case [*branches]:
            return [qualified(branch, names, space) for branch in branches]
        case {"type": "record" | "error" | "enum" | "fixed", "name": name}:
            return _defined(schema, name, names, space)
        case {"type": "array", "items": inner}:
            return {**schema, "items": qualified(inner, names, space)}
        case {"type": "map", "values": inner}:
            return {**schema, "values": qualified(inner, names, space)}
        case {"type": inner}:
            return {**schema, "type": qualified(inner, names, space)}
        case _:
            raise SchemaError("the Avro schema cannot be read", detail=f"{str(schema)[:60]!r} is no type.")


def _defined(schema: Mapping[str, Any], name: str, names: Names, space: str) -> dict[str, Any]:
    around = schema.get("namespace", space)
    full = name if "." in name or not around else f"{around}.{name}"
    found = {**schema, "name": full, "type": "record" if schema["type"] == "error" else schema["type"]}
    names[full] = found  # before its fields: they may speak of it
    if "fields" in schema:
        inner = full.rpartition(".")[0]
        found["fields"] = [{**field, "type": qualified(field["type"], names, inner)} for field in schema["fields"]]
    return found


def kind_of(schema: Any, names: Names) -> tuple[str, Mapping[str, Any]]:
    """What kind of type it is, and what else is said of it."""
    if isinstance(schema, str):
        if schema in PRIMITIVE:
            return schema, {}
        if schema not in names:
            raise SchemaError(f'the Avro schema speaks of "{schema}" and does not say what it is')
        return kind_of(names[schema], names)
    if isinstance(schema["type"], dict | list) or schema["type"] not in KINDS:
        return kind_of(schema["type"], names)
    return schema["type"], schema
