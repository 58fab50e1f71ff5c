"""Rows: the fields of a JSON object or a CSV line become a record, or are refused with the field named.

Beside the columns a row may have `_deleted`, `_headers` and `_replaces`. What the log itself gives to a
record (`_partition`, `_offset`, `_place`, `_appended_at`) is passed over, so that what was read can be
appended elsewhere. A raw topic's `key` and `value` are UTF-8 text, or base64 under `key_base64` and
`value_base64`.
"""

import base64
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from penstock.errors import SchemaError, did_you_mean
from penstock.log.hidden import STAMPS
from penstock.log.records import Record
from penstock.log.topic import Topic
from penstock.schema import Map, Scalar, Struct, Type
from penstock.text import Convert, Unfit, reader, text_reader

STRING = Scalar("STRING")
MARKS: dict[str, Type] = {
    "_deleted": Scalar("BOOLEAN"),
    "_headers": Map(STRING, STRING),
    "_headers_base64": Map(STRING, STRING),
}
RAW_FIELDS: dict[str, Type] = {
    "key": STRING,
    "key_base64": STRING,
    "value": STRING,
    "value_base64": STRING,
    "time": Scalar("TIMESTAMP"),
}


@dataclass(frozen=True)
class Shape:
    """What a row of a topic may hold: its fields, each with the function that reads it; and what it must hold."""

    topic: Topic
    readers: Mapping[str, Convert]
    required: tuple[str, ...]

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(RAW_FIELDS) if self.topic.raw else self.topic.schema.names


def shape_of(topic: Topic, *, text: bool) -> Shape:
    """The shape of the topic's rows; with `text` as CSV gives them, else as JSON does."""
    columns = {column.name: column.type for column in topic.schema.columns}
    replaces = {} if topic.raw else {"_replaces": Struct(topic.schema.columns)}
    types = {**(RAW_FIELDS if topic.raw else columns), **MARKS, **replaces}
    read = text_reader if text else reader
    required = tuple(column.name for column in topic.schema.columns if not column.nullable)
    return Shape(topic, {name: read(type_) for name, type_ in types.items()}, required)


def record_of(shape: Shape, fields: Mapping[str, Any]) -> Record:
    """The record that a row's fields describe."""
    found = {name: _field(shape, name, given) for name, given in fields.items() if name not in STAMPS}
    headers = _headers(found) if found.keys() & MARKS.keys() else {}
    deleted = bool(found.pop("_deleted", False))
    if shape.topic.raw:
        key, value = _bytes(found, "key"), _bytes(found, "value")
        return Record(value, key=key, time=found.get("time"), headers=headers, deleted=deleted)
    replaces = found.pop("_replaces", None)
    for name in shape.topic.key if deleted else shape.required:
        if found.get(name) is None and name in shape.required:
            raise _missing(shape.topic, name)
    return Record(found, headers=headers, deleted=deleted, replaces=replaces)


def _field(shape: Shape, name: str, given: Any) -> Any:
    read = shape.readers.get(name)
    if read is None:
        raise unknown_field(shape, name)
    try:
        return read(given)
    except Unfit as error:
        raise SchemaError(
            f'field "{name}{error.path}" does not fit topic "{shape.topic.name}"', detail=f"{error}.", hint=error.hint
        ) from None


def unknown_field(shape: Shape, name: str) -> SchemaError:
    return SchemaError(
        f'field "{name}" does not exist in topic "{shape.topic.name}"',
        detail=f"the columns are {', '.join(shape.names)}.",
        hint=did_you_mean(name, shape.names),
    )


def _missing(topic: Topic, name: str) -> SchemaError:
    return SchemaError(f'field "{name}" is missing', detail=f'the column is NOT NULL in topic "{topic.name}".')


def _headers(found: dict[str, Any]) -> dict[str, bytes]:
    plain = {name: text.encode() for name, text in found.pop("_headers", None) or ()}
    coded = {name: _decoded("_headers_base64", text) for name, text in found.pop("_headers_base64", None) or ()}
    return plain | coded


def _bytes(found: Mapping[str, Any], name: str) -> bytes | None:
    coded = found.get(f"{name}_base64")
    if coded is not None:
        return _decoded(f"{name}_base64", coded)
    text: str | None = found.get(name)
    return None if text is None else text.encode()


def _decoded(name: str, text: str) -> bytes:
    try:
        return base64.b64decode(text, validate=True)
    except ValueError:
        raise SchemaError(f'field "{name}" is not base64', detail=f'it is "{text[:60]}".') from None
