"""Records as Kafka has them: an entry stands at an offset of a partition, and in no order beside that."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

import pyarrow as pa

from penstock.log.records import Span, Value
from penstock.log.topic import Topic


@dataclass(frozen=True)
class KafkaEntry:
    """A record where it stands. `key` is the tuple of the key's columns, or the bytes of a raw key."""

    topic: str
    partition: int
    offset: int
    appended_at: datetime
    key: tuple[Any, ...] | bytes | None
    value: Value | bytes | None
    time: datetime | None
    headers: Mapping[str, bytes]
    deleted: bool
    replaces: Value | None


@dataclass(frozen=True)
class KafkaAppended:
    """What an append did: the offsets that its records got, in runs, and the earliest of their append times.
    `repeated`: an earlier append with this producer and sequence did it.
    """

    appended_at: datetime
    spans: tuple[Span, ...]
    repeated: bool = False
    entry: int | None = None
    """The offset of its frame in the journal, where it has one."""
    frame: int | None = None
    """The number of its frame, where the order is known."""


@dataclass(frozen=True)
class Commit:
    """The append of a producer under a sequence, and the note that it left."""

    producer: str
    sequence: int
    appended: KafkaAppended
    note: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class KafkaPartition:
    """A partition as it stands: its first offset that is kept, its end, and when it got its last record."""

    partition: int
    begin: int
    end: int
    heard_at: datetime


@dataclass(frozen=True)
class KafkaDescription:
    """What `describe` tells of a topic; `name` is its name in Kafka."""

    topic: Topic
    name: str
    partitions: tuple[KafkaPartition, ...]


def entries_of(topic: Topic, batch: pa.RecordBatch) -> Iterator[KafkaEntry]:
    """One entry per row; `batch` has all columns of the topic, the hidden ones included."""
    columns = {name: batch.column(name).to_pylist() for name in batch.schema.names}
    for at in range(len(batch)):
        value = {name: columns[name][at] for name in topic.schema.names}
        yield KafkaEntry(
            topic=topic.name,
            partition=columns["_partition"][at],
            offset=columns["_offset"][at],
            appended_at=columns["_appended_at"][at],
            key=value["key"] if topic.raw else tuple(value[name] for name in topic.key) or None,
            value=value["value"] if topic.raw else value,
            time=value[topic.event_time] if topic.event_time else None,
            headers=dict(columns["_headers"][at] or ()),
            deleted=columns["_deleted"][at],
            replaces=columns["_replaces"][at],
        )
