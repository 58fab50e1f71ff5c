"""Avro schemas: what columns are in Avro, and the types that a schema names."""

import re
from collections.abc import Mapping
from typing import Any

from penstock.errors import SchemaError
from penstock.schema import Array, Decimal, Map, Scalar, Schema, Struct, Type

Names = dict[str, Any]
NAME = re.compile("[A-Za-z_][A-Za-z0-9_]*")


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


def define(schema: Any, names: Names) -> None:
    """Types may be called by name after they have been defined."""
    match schema:
        case {"type": "record" | "error", "name": name, "fields": fields}:
            _define(schema, name, names)
            for field in fields:
                define(field["type"], names)
        case {"type": "enum" | "fixed", "name": name}:
            _define(schema, name, names)
        case {"type": "array", "items": inner} | {"type": "map", "values": inner} | {"type": inner}:
            define(inner, names)
        case [*branches]:
            for branch in branches:
                define(branch, names)


def _define(schema: Mapping[str, Any], name: str, names: Names) -> None:
    short = name.rpartition(".")[2]
    names[short] = schema
    names[name if "." in name else f"{schema.get('namespace', '')}.{name}"] = schema


def kind_of(schema: Any, names: Names) -> tuple[str, Mapping[str, Any]]:
    """What kind of type it is, and what else is said of it."""
    if isinstance(schema, str):
        found = names.get(schema, schema)
        return (found, {}) if isinstance(found, str) else kind_of(found, names)
    if isinstance(schema["type"], dict | list) or schema["type"] in names:
        return kind_of(schema["type"], names)
    return schema["type"], schema
