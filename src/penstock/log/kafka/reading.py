"""Reading: committed messages of a topic become Arrow batches with the columns of its newest schema.

Within a partition records come in the order of their offsets; one partition comes after the other. A message that is no
record of its topic is told with its position and the reason: `BadRecord`.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime

import pyarrow as pa
from confluent_kafka import TIMESTAMP_CREATE_TIME, Message
from confluent_kafka.admin import OffsetSpec

from penstock.errors import BadRecord, LogError, RecordsGone, SchemaError
from penstock.log.blocks import conformed
from penstock.log.columns import EXTRAS, block_schema, columns_of
from penstock.log.kafka.client import Client
from penstock.log.kafka.messages import Records, Unreadable
from penstock.log.records import Record, instant, micros
from penstock.log.topic import Topic, starts_at_offset
from penstock.text import Unfit

Start = int | datetime
"""Where to begin: an offset of one partition, or an append time."""
Bad = Callable[[BadRecord], None]
STAMPS = [
    pa.field("_partition", pa.int32()),
    pa.field("_offset", pa.int64()),
    pa.field("_appended_at", pa.timestamp("us", "UTC")),
]


@dataclass(frozen=True)
class Range:
    """For each partition the first offset and the one after the last; those of the other partitions are equal."""

    topic: Topic
    name: str
    starts: tuple[int, ...]
    ends: tuple[int, ...]


def full_schema(topic: Topic) -> pa.Schema:
    """Partition, offset and append time, the topic's columns, and the reserved ones."""
    return pa.schema([*STAMPS, *block_schema(topic.schema, EXTRAS)])


def offsets_at(client: Client, topic: Topic, name: str, start: Start, partition: int | None) -> list[int]:
    """The offset of each partition at which reading from `start` begins."""
    every = range(topic.partitions)
    if isinstance(start, datetime):
        at = -(-micros(start) // 1000)  # the first whole millisecond that is not before it
        found = client.offsets(name, every, OffsetSpec.for_timestamp(at))
        ends = client.ends(name, every)
        return [end if offset < 0 else offset for (offset, _), end in zip(found, ends, strict=True)]
    if not isinstance(start, int):
        raise LogError(
            "Kafka has no places",
            detail=f"{start!r} was given.",
            hint="Begin at an offset of a partition, or at a time.",
        )
    return starts_at_offset(topic, start, partition, otherwise="a time")


def check_kept(client: Client, wanted: Range) -> None:
    """What is asked for by its offset must be there still."""
    asked = [p for p, start in enumerate(wanted.starts) if 0 < start < wanted.ends[p]]
    for partition, begin in zip(asked, client.begins(wanted.name, asked), strict=True):
        if wanted.starts[partition] < begin:
            where = f'partition {partition} of "{wanted.topic.name}"'
            raise RecordsGone(
                f"offset {wanted.starts[partition]} of {where} is kept no longer",
                detail=f"The first that Kafka has is {begin}.",
                hint="Begin there, or at 0 for all that is there. Kafka's settings say how long records are kept.",
            )


def batches(client: Client, wanted: Range, bad: Bad) -> Iterator[pa.RecordBatch]:
    """The range's records with all columns."""
    for partition, (start, end) in enumerate(zip(wanted.starts, wanted.ends, strict=True)):
        for messages in client.messages(wanted.name, partition, start, end):
            batch = batch_of(wanted.topic, messages, bad)
            if len(batch):
                yield batch


def batch_of(topic: Topic, messages: Sequence[Message], bad: Bad) -> pa.RecordBatch:
    """The messages that are records of the topic; the others are told of."""
    records = Records(topic)
    taken: list[tuple[Message, Record]] = []
    for message in messages:
        try:
            taken.append((message, _timed(topic, message, records.record_of(message))))
        except (Unreadable, Unfit) as error:
            bad(_bad(topic, message, str(error)))
    try:
        return _stamped(topic, taken)
    except SchemaError:
        return _stamped(topic, [each for each in taken if _fits(topic, each, bad)])


def _timed(topic: Topic, message: Message, record: Record) -> Record:
    """A raw record that says nothing of its event time has that of its producer, where the topic keeps it."""
    kind, at = message.timestamp()
    if topic.raw and record.time is None and kind == TIMESTAMP_CREATE_TIME:
        return Record(record.value, record.key, instant(at * 1000), record.headers, record.deleted)
    return record


def _fits(topic: Topic, each: tuple[Message, Record], bad: Bad) -> bool:
    try:
        columns_of(topic, [each[1]])
    except SchemaError as error:
        bad(_bad(topic, each[0], error.detail.rstrip(".") or error.primary))
        return False
    return True


def _stamped(topic: Topic, taken: Sequence[tuple[Message, Record]]) -> pa.RecordBatch:
    rows = columns_of(topic, [record for _, record in taken]).batch
    messages = [message for message, _ in taken]
    stamps = [
        pa.array([message.partition() for message in messages], STAMPS[0].type),
        pa.array([message.offset() for message in messages], STAMPS[1].type),
        pa.array([message.timestamp()[1] * 1000 for message in messages], pa.int64()).cast(STAMPS[2].type),
    ]
    whole = pa.RecordBatch.from_arrays(
        [*stamps, *rows.columns], names=[*(stamp.name for stamp in STAMPS), *rows.schema.names]
    )
    return conformed(whole, full_schema(topic))


def _bad(topic: Topic, message: Message, reason: str) -> BadRecord:
    partition, offset = message.partition(), message.offset()
    assert partition is not None and offset is not None
    return BadRecord(
        f'offset {offset} of partition {partition} of "{topic.name}" is not a record of the topic',
        detail=f"{reason[:1].upper()}{reason[1:]}.",
        hint="Whoever wrote it should write it again. Reading goes on behind it where bad=... is given.",
        position=(topic.name, partition, offset),
        found=(message.key(), message.value()),
    )


def refuse(error: BadRecord) -> None:
    raise error
