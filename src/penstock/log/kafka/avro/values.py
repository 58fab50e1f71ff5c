"""The values of a topic: rows by the schemas that it declares.

Only the columns are looked at: other fields of the writer's schema are passed over, columns that it lacks are NULL. A
value may end after any of its fields: it was written before the others were there.
"""

import json
import struct
from collections.abc import Mapping
from typing import Any

from penstock.errors import SchemaError
from penstock.log.kafka.avro.encoded import BROKEN, Encoded, Misfit, NotAvro
from penstock.log.kafka.avro.reading import reader, skipper
from penstock.log.kafka.avro.schemas import Names, qualified, schema_of
from penstock.log.kafka.avro.writing import Write, writer
from penstock.log.topic import Topic

FRAMED = struct.Struct(">bI")


class Values:
    """Reads and writes the values of a topic; built once, it refuses schemas that do not fit the columns."""

    def __init__(self, topic: Topic) -> None:
        assert topic.values is not None
        declared = topic.values
        plain = json.loads(declared.schema) if declared.schema is not None else schema_of(topic.schema)
        self._framed = bool(declared.ids)
        schemas = {number: json.loads(text) for number, text in declared.ids} if declared.ids else {None: plain}
        try:
            self._rows = {number: _Row(found, topic) for number, found in schemas.items()}
        except RecursionError:
            raise SchemaError(
                "the Avro schema has a type that holds itself", hint="Values that nest without an end are not read."
            ) from None
        self._newest = list(schemas)[-1]

    def row_of(self, data: bytes) -> dict[str, Any]:
        """The row; `NotAvro`, or a `Misfit` whose path begins with the column."""
        if not self._framed:
            return self._rows[None].read(Encoded(data))
        if len(data) < FRAMED.size or data[0] != 0:
            raise NotAvro("its value does not begin with the id of a schema")
        number = FRAMED.unpack_from(data)[1]
        if number not in self._rows:
            raise NotAvro(f"its value has schema {number}, which the topic does not declare")
        return self._rows[number].read(Encoded(data, FRAMED.size))

    def bytes_of(self, row: Mapping[str, Any]) -> bytes:
        front = FRAMED.pack(0, self._newest) if self._newest is not None else b""
        return front + self._rows[self._newest].write(row)


class _Row:
    def __init__(self, schema: Mapping[str, Any], topic: Topic) -> None:
        columns = {column.name: column.type for column in topic.schema.columns}
        self._columns = list(columns)
        names: Names = {}
        schema = qualified(schema, names)
        self._fields = []
        for field in schema["fields"]:
            name, type_ = field["name"], columns.get(field["name"])
            read = reader(field["type"], type_, names, f'field "{name}"') if type_ else None
            self._fields.append((name, read, skipper(field["type"], names)))
        self._schema, self._types, self._names = schema, columns, names
        self._writers: list[tuple[str, Write]] | None = None

    def read(self, encoded: "Encoded") -> dict[str, Any]:
        row: dict[str, Any] = dict.fromkeys(self._columns)
        misfits: dict[str, Misfit] = {}
        for name, read, skip in self._fields:
            if encoded.is_done:  # written before the field was there
                break
            start = encoded.at
            if read is not None:
                try:
                    row[name] = read(encoded)
                    continue
                except Misfit as error:
                    misfits[name] = error
                    encoded.at = start
            skip(encoded)
        if not encoded.is_done:
            raise NotAvro(BROKEN)
        for name in self._columns:
            if name in misfits:
                raise misfits[name].under(name)
        return row

    def write(self, row: Mapping[str, Any]) -> bytes:
        if self._writers is None:
            self._writers = [
                (field["name"], writer(field["type"], self._types.get(field["name"]), self._names))
                for field in self._schema["fields"]
            ]
        return b"".join(write(row.get(name)) for name, write in self._writers)


def values_of(topic: Topic) -> Values | None:
    """What reads and writes its values, if they are Avro."""
    return None if topic.values is None else Values(topic)
