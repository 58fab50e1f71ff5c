"""Encoding: a record becomes a message. The body of a typed one is its row as JSON, that of a raw one its value.

Its message-id says where the record stands: log, topic, partition, offset. So it is the same whenever the record is
sent, and nobody else's.
"""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import amqp

from penstock.capture.amqp.decoding import DELETED, KEY, OURS, REPLACES, TIME, Refused
from penstock.capture.amqp.link import Parcel
from penstock.capture.amqp.memory import short
from penstock.errors import CaptureError
from penstock.log import Topic
from penstock.log.protocol import AnyEntry
from penstock.schema import Scalar
from penstock.text import BASE64, csv_text, writer

JSON = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"))
WRITE_TIME = writer(Scalar("TIMESTAMP"))
PERSISTENT = 2
LONGEST = 255
"""Of a routing key and of a header's name, in bytes."""
Encode = Callable[[AnyEntry], Parcel]


@dataclass(frozen=True)
class Routing:
    """To which exchange records go, and under which key: always the same, or the value of a column."""

    exchange: str
    key: str = ""
    column: str | None = None


def message_id(log: str, position: tuple[str, int, int]) -> str:
    topic, partition, offset = position
    return short(f"{log}/{topic}/{partition}/{offset}")


def encoder(log: str, topic: Topic, routing: Routing) -> Encode:
    """The function that makes messages of the topic's records."""
    writers = {column.name: writer(column.type, BASE64) for column in topic.schema.columns}
    if routing.column is not None and topic.raw:
        raise CaptureError(f'the raw topic "{topic.name}" has no column "{routing.column}"', hint="Use --routing-key.")
    if routing.column is not None:
        topic.schema.column(routing.column)  # refuses one that is not there

    def text(row: Mapping[str, Any]) -> bytes:
        found = {name: writers[name](value) for name, value in row.items() if value is not None}
        return JSON.encode(found).encode()

    def parcel(entry: AnyEntry) -> Parcel:
        headers, at = dict(entry.headers), entry.time
        if entry.deleted:
            headers[DELETED] = b"true"
        if entry.replaces is not None:
            headers[REPLACES] = text(entry.replaces)
        if isinstance(entry.value, Mapping):
            body, kind, at = text(entry.value), "application/json", entry.appended_at
        else:
            body, kind = entry.value or b"", "application/octet-stream"
            headers |= {KEY: entry.key} if isinstance(entry.key, bytes) else {}
            headers |= {TIME: WRITE_TIME(entry.time).encode()} if entry.time is not None else {}
        message = amqp.Message(
            body,
            message_id=message_id(log, (entry.topic, entry.partition, entry.offset)),
            delivery_mode=PERSISTENT,
            content_type=kind,
            type=entry.topic,
            app_id="penstock",
            application_headers=headers,
            **({} if at is None else {"timestamp": max(0, int(at.timestamp()))}),
        )
        return Parcel(message, routing.exchange, _key(entry, routing, writers))

    return parcel


def check_size(parcel: Parcel) -> None:
    """Refuses what AMQP has no room for."""
    for what, text in (("routing key", parcel.routing_key), *(("header", each) for each in _names(parcel))):
        if len(text.encode()) > LONGEST:
            raise Refused(f'its {what} "{text[:40]}..." is longer than {LONGEST} bytes')


def _names(parcel: Parcel) -> list[str]:
    return [name for name in parcel.message.properties["application_headers"] if not name.startswith(OURS)]


def _key(entry: AnyEntry, routing: Routing, writers: Mapping[str, Callable[[Any], Any]]) -> str:
    if routing.column is None or not isinstance(entry.value, Mapping):
        return routing.key
    value = entry.value[routing.column]
    return "" if value is None else csv_text(writers[routing.column](value))
