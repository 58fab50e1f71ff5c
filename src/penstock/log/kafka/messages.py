"""Messages: records of a topic become what Kafka keeps, and back. docs/formats/kafka.md has the layout.

The value is the row as JSON, or as Avro where the topic says so, the key the columns of the topic's key as JSON, so
that other programs can read and write them; raw topics keep their bytes. A deletion under a key is a tombstone, a
message without a value. What Kafka has no place for travels in headers whose names begin with `penstock.`.
"""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from functools import lru_cache
from itertools import repeat
from typing import Any, cast
from zlib import crc32

import pyarrow as pa
from confluent_kafka import Message

from penstock.errors import LogError
from penstock.log.columns import Columns
from penstock.log.kafka.avro import Misfit, NotAvro, Values, values_of
from penstock.log.records import Record
from penstock.log.topic import Topic
from penstock.schema import Scalar, Schema
from penstock.text import BASE64, Convert, Unfit, parsed_json, reader, writer

OURS = "penstock."
DELETED, REPLACES, ROW, TIME = (OURS + name for name in ("deleted", "replaces", "row", "time"))
PRODUCER, SEQUENCE, INDEX = (OURS + name for name in ("producer", "sequence", "index"))
POSITION = ("from", "until")
"""What the note of a pipeline's batch says of the frames that it has read."""
ANYWHERE = -1
"""The partition is chosen by the key."""
WRITE_TIME, READ_TIME = writer(Scalar("TIMESTAMP")), reader(Scalar("TIMESTAMP"))
JSON = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"))
Headers = list[tuple[str, bytes]]


class Unreadable(Exception):
    """Why a message is no record of its topic."""


@dataclass(frozen=True)
class Outgoing:
    """A message on its way to a partition of a topic, both as Kafka names them."""

    topic: str
    partition: int
    key: bytes | None
    value: bytes | None
    headers: Headers


def outgoing(columns: Columns, name: str, *, partition: int | None, turn: int | None) -> Iterator[Outgoing]:
    """The messages of these records. Those without a key go to one partition, chosen by the turn; without a turn, each
    to the one of its row, so that a row and its deletion meet there.
    """
    topic = columns.topic
    keyless = partition if partition is not None else (turn or 0) % topic.partitions
    keyed = keyless if partition is not None or topic.partitions == 1 else ANYWHERE
    by_row = turn is None and partition is None
    for key, value, headers in _raw(columns) if topic.raw else _typed(columns):
        chosen = crc32(value or b"") % topic.partitions if by_row else keyless
        yield Outgoing(name, chosen if key is None else keyed, key, value, headers)


def numbered(messages: Sequence[Outgoing], producer: str, sequence: int, note: Mapping[str, Any]) -> list[Outgoing]:
    """The messages of an append, each saying which it is: whoever reads the topics can put them together again. Those
    of a batch say what it has read.
    """
    ours: Headers = [(PRODUCER, producer.encode()), (SEQUENCE, str(sequence).encode())]
    ours += [(OURS + name, str(note[name]).encode()) for name in POSITION if name in note]
    last = len(messages)
    return [
        replace(each, headers=[*each.headers, *ours, (INDEX, f"{at}/{last}".encode())])
        for at, each in enumerate(messages)
    ]


def _raw(columns: Columns) -> Iterator[tuple[bytes | None, bytes | None, Headers]]:
    for row in columns.batch.to_pylist():
        headers = _headers(row)
        if row["time"] is not None:
            headers.append((TIME, WRITE_TIME(row["time"]).encode()))
        if row.get("_deleted") and row["value"] is not None:
            headers.append((DELETED, b""))
        yield row["key"], row["value"], headers


def _typed(columns: Columns) -> Iterator[tuple[bytes | None, bytes | None, Headers]]:
    topic, batch = columns.topic, columns.batch
    writers, avro = _writers(topic.schema), _avro(topic)
    texts = {name: [write(value) for value in batch.column(name).to_pylist()] for name, write in writers.items()}
    keys = _keys(topic, batch)
    marks = batch.select(columns.extras).to_pylist() if columns.extras else repeat({}, len(batch))
    rows = repeat({}, len(batch)) if avro is None else batch.select(topic.schema.names).to_pylist()
    for key, mark, given, *row in zip(keys, marks, rows, *texts.values(), strict=True):
        found = {name: text for name, text in zip(texts, row, strict=True) if text is not None}
        headers = _headers(mark)
        if mark.get("_replaces") is not None:
            headers.append((REPLACES, _row_text(writers, mark["_replaces"])))
        if not mark.get("_deleted"):
            yield key, _dumped(found) if avro is None else avro.bytes_of(given), headers
        elif key is None:
            yield None, _dumped(found) if avro is None else avro.bytes_of(given), [*headers, (DELETED, b"")]
        else:
            more = any(name not in topic.key for name in found)
            yield key, None, [*headers, (ROW, _dumped(found))] if more else headers


def _headers(row: Mapping[str, Any]) -> Headers:
    found = list(row.get("_headers") or ())
    for name, _ in found:
        if name.startswith(OURS):
            raise LogError(
                f'the header "{name}" is not free', hint=f'Names that begin with "{OURS}" are the log\'s own.'
            )
    return found


def _keys(topic: Topic, batch: pa.RecordBatch) -> Iterable[bytes | None]:
    """The keys as messages have them, the same bytes for equal values. None where all of a key is NULL, or there is
    none.
    """
    if not topic.key:
        return repeat(None, len(batch))
    writers = _writers(topic.schema)
    texts = [[writers[name](_plain(v)) for v in batch.column(name).to_pylist()] for name in topic.key]
    return (
        None if all(text is None for text in row) else _dumped(dict(zip(topic.key, row, strict=True)))
        for row in zip(*texts, strict=True)
    )


def _plain(value: Any) -> Any:
    """-0.0 equals 0.0, also inside of arrays and structs."""
    match value:
        case float():
            return value + 0.0
        case list():
            return [_plain(each) for each in value]
        case dict():
            return {name: _plain(each) for name, each in value.items()}
        case _:
            return value


@lru_cache(maxsize=1024)
def _avro(topic: Topic) -> Values | None:
    return values_of(topic)


@lru_cache(maxsize=1024)
def _writers(schema: Schema) -> Mapping[str, Convert]:
    return {column.name: writer(column.type, BASE64) for column in schema.columns}


def _row_text(writers: Mapping[str, Convert], row: Mapping[str, Any]) -> bytes:
    return _dumped({name: write(row[name]) for name, write in writers.items() if row[name] is not None})


def _dumped(found: Any) -> bytes:
    return JSON.encode(found).encode()


# Back


class Records:
    """Makes records of a topic out of messages."""

    def __init__(self, topic: Topic) -> None:
        self._topic, self._avro = topic, _avro(topic)
        self._readers = {column.name: reader(column.type, BASE64) for column in topic.schema.columns}
        self._key = {name: self._readers[name] for name in topic.key}
        # A corrected time is made after reading, whatever stood there.
        self._required = [
            column.name
            for column in topic.schema.columns
            if not column.nullable and not (topic.corrected and column.name == topic.event_time)
        ]

    def record_of(self, message: Message) -> Record:
        """The record that a message holds; `Unreadable` if it holds none."""
        given = {name: value or b"" for name, value in message.headers() or ()}
        headers = {name: value for name, value in given.items() if not name.startswith(OURS)}
        value, key = message.value(), message.key()
        if self._topic.raw:
            time = _time(given[TIME]) if TIME in given else None
            return Record(value, key=key, time=time, headers=headers, deleted=value is None or DELETED in given)
        replaces = self._row(given[REPLACES], "its header with the replaced row") if REPLACES in given else None
        deleted = value is None or DELETED in given
        if value is None:
            rest = self._row(given[ROW], "its header with the row") if ROW in given else {}
            row = {**rest, **self._key_of(key)}
        else:
            row = self._row(value, "its value") if self._avro is None else _decoded(self._avro, value)
        self._check_there(row, deleted=deleted)
        return Record(row, headers=headers, deleted=deleted, replaces=replaces)

    def _check_there(self, row: Mapping[str, Any], *, deleted: bool) -> None:
        for name in self._required:
            if row.get(name) is None and (not deleted or name in self._key):
                raise Unreadable(f'field "{name}" is NULL, and the column is NOT NULL')

    def _row(self, text: bytes, what: str) -> dict[str, Any]:
        found = _parsed(text, what)
        if not isinstance(found, dict):
            raise Unreadable(f"{what} is not a JSON object")
        return _fitted(self._readers, found, what)

    def _key_of(self, key: bytes | None) -> dict[str, Any]:
        """The key's columns: an object of them, or the bare value where the key is one column."""
        if key is None or not self._key:
            raise Unreadable("it has no value, and no key to delete by")
        found = _parsed(key, "its key")
        if len(self._key) == 1 and not (isinstance(found, dict) and found.keys() & self._key.keys()):
            found = dict.fromkeys(self._key, found)
        if not isinstance(found, dict):
            raise Unreadable("its key is not a JSON object")
        return _fitted(self._key, found, "its key")


def _time(text: bytes) -> datetime:
    try:
        return cast(datetime, READ_TIME(text.decode()))
    except UnicodeDecodeError:
        raise Unreadable("its header with the time is not UTF-8") from None
    except Unfit:
        raise Unreadable("its header with the time is not a TIMESTAMP") from None


def _decoded(avro: Values, value: bytes) -> dict[str, Any]:
    try:
        return avro.row_of(value)
    except NotAvro as error:
        raise Unreadable(str(error)) from None
    except Misfit as error:
        raise Unreadable(f'in its value, field "{error.path}": {error}') from None


def _fitted(readers: Mapping[str, Convert], found: Mapping[str, Any], what: str) -> dict[str, Any]:
    row = {}
    for name, read in readers.items():
        try:
            row[name] = read(found.get(name))
        except Unfit as error:
            raise Unreadable(f'in {what}, field "{name}{error.path}": {error}') from None
    return row


def _parsed(text: bytes, what: str) -> Any:
    try:
        return parsed_json(text.decode())
    except UnicodeDecodeError:
        raise Unreadable(f"{what} is not UTF-8") from None
    except (ValueError, RecursionError):
        raise Unreadable(f"{what} is not JSON") from None
