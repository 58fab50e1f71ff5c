"""A draft: everything of an append that can be prepared before the writers' lock is taken.

Columns are serialized and checksummed here; only offsets, the append time and the running maxima are left to the
writer.
"""

import builtins
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any
from zlib import crc32

import pyarrow as pa
import pyarrow.compute as pc

from penstock.errors import LogError
from penstock.log.catalog import Catalog
from penstock.log.columns import Columns
from penstock.log.frame import INDEX_BITS, Punctuation, padded_json, padding
from penstock.log.partition import split
from penstock.log.records import Condition
from penstock.log.topic import Topic, check_partition

MOST_RECORDS = 1 << INDEX_BITS
Control = Callable[[Catalog], Sequence[Mapping[str, Any]]]


@dataclass(frozen=True)
class Part:
    """Records of one topic and partition: their bytes, or the staged file that holds them."""

    topic: str
    partition: int
    schema: int
    count: int
    bytes: int
    crc: int
    data: "builtins.bytes" = b""
    file: str | None = None
    extras: tuple[str, ...] = ()
    times: tuple[int, int] | None = None


@dataclass(frozen=True)
class Draft:
    parts: tuple[Part, ...] = ()
    producer: str | None = None
    sequence: int | None = None
    note: Mapping[str, Any] = field(default_factory=dict)
    expect: tuple[Condition, ...] = ()
    punctuation: tuple[Punctuation, ...] = ()
    control: Control = lambda catalog: ()

    def __post_init__(self) -> None:
        if (self.producer is None) != (self.sequence is None):
            raise LogError("a producer and a sequence belong together", hint="Give both, or neither.")
        try:
            padded_json(self.note)
        except (TypeError, ValueError) as error:
            raise LogError("the note cannot be written as JSON", detail=f"{error}.") from error
        if sum(part.count for part in self.parts) > MOST_RECORDS:
            raise LogError(f"one append holds at most {MOST_RECORDS:,} records", hint="Append in several steps.")


def parts_of(columns: Columns, *, partition: int | None, turn: int) -> list[Part]:
    topic = columns.topic
    if partition is not None:
        check_partition(topic, partition)
    return [_part(topic, each, batch, columns.extras) for each, batch in split(columns, partition=partition, turn=turn)]


def _part(topic: Topic, partition: int, batch: pa.RecordBatch, extras: tuple[str, ...]) -> Part:
    message = batch.serialize().to_pybytes()
    data = message + b"\0" * padding(len(message))
    return Part(
        topic=topic.name,
        partition=partition,
        schema=len(topic.schemas) - 1,
        count=len(batch),
        bytes=len(data),
        crc=crc32(data),
        data=data,
        extras=extras,
        times=time_range(topic, batch),
    )


def time_range(topic: Topic, batch: pa.RecordBatch) -> tuple[int, int] | None:
    """The least and the largest event time, where there is one."""
    if topic.event_time is None:
        return None
    found = pc.min_max(batch.column(topic.event_time).cast(pa.int64()))
    least, largest = found["min"].as_py(), found["max"].as_py()
    return None if least is None else (least, largest)
