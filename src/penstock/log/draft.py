"""A draft: everything of an append that can be prepared before the writers' lock is taken.

Columns are serialized and checksummed here; only offsets, the append time and the running maxima are left to the
writer.
"""

import builtins
import json
import operator
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any
from zlib import crc32

import pyarrow as pa
import pyarrow.compute as pc

from penstock.errors import LogError
from penstock.log.bound import Room
from penstock.log.catalog import Catalog
from penstock.log.columns import Columns
from penstock.log.correction import uncorrected
from penstock.log.frame import INDEX_BITS, Punctuation, padding
from penstock.log.partition import split
from penstock.log.records import Condition
from penstock.log.topic import Topic, check_partition

MOST_RECORDS = 1 << INDEX_BITS
MOST_BYTES = (1 << 31) - (1 << 16)
"""Of one part: readers hold its bytes in one array."""
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
    uncorrected: int = 0
    event_times: tuple[pa.Array, ...] = field(default=(), compare=False, repr=False)


@dataclass(frozen=True)
class Draft:
    parts: tuple[Part, ...] = ()
    producer: str | None = None
    sequence: int | None = None
    note: Mapping[str, Any] = field(default_factory=dict)
    expect: tuple[Condition, ...] = ()
    punctuation: tuple[Punctuation, ...] = ()
    control: Control = lambda catalog: ()
    rooms: tuple[Room, ...] = ()

    def __post_init__(self) -> None:
        if (self.producer is None) != (self.sequence is None):
            raise LogError("a producer and a sequence belong together", hint="Give both, or neither.")
        if self.producer is not None:
            if not check_name("a producer", self.producer):
                raise LogError("a producer needs a name", detail='The producer is "".')
            object.__setattr__(self, "sequence", _sequence(self.sequence))
        for each in self.punctuation:
            check_name("a scope", each.scope)
        _check_note(self.note)
        if sum(part.count for part in self.parts) > MOST_RECORDS:
            raise LogError(f"one append holds at most {MOST_RECORDS:,} records", hint="Append in several steps.")
        for part in self.parts:
            _check_size(part)


def check_name(what: str, name: object) -> str:
    """The name, if it can be written in a header."""
    if not isinstance(name, str):
        raise LogError(f"{what} is named by a str, not by {name!r}", detail=f"Found {type(name).__name__}.")
    try:
        name.encode()
    except UnicodeEncodeError as error:
        raise LogError(f"{what} cannot be named {name!a}", detail="The name is no UTF-8.") from error
    return name


def _sequence(found: object) -> int:
    try:
        number = -1 if isinstance(found, bool) else operator.index(found)  # type: ignore[arg-type]
    except TypeError:
        number = -1
    if not 0 <= number < 1 << 63:
        raise LogError(f"{found!r} is not a sequence", hint="A sequence is an integer from 0 to 2^63 - 1.")
    return number


def _check_note(note: Mapping[str, Any]) -> None:
    try:
        json.dumps(note, allow_nan=False, ensure_ascii=False).encode()
    except (TypeError, ValueError, RecursionError) as error:
        raise LogError("the note cannot be written as JSON", detail=f"{error}.") from error


def _check_size(part: Part) -> None:
    if part.file is None and part.bytes >= MOST_BYTES:
        raise LogError(
            f'too many bytes for partition {part.partition} of "{part.topic}"',
            detail=f"They are {part.bytes:,}; one append brings fewer than {MOST_BYTES:,} to a partition.",
            hint="Append in smaller steps. Python programs can append files: append_files",
        )


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
        uncorrected=0 if topic.corrected is None else uncorrected(topic.corrected, batch),
        event_times=() if topic.event_time is None else (batch.column(topic.event_time),),
    )


def time_range(topic: Topic, batch: pa.RecordBatch) -> tuple[int, int] | None:
    """The least and the largest event time, where there is one."""
    if topic.event_time is None:
        return None
    return _range(batch.column(topic.event_time).cast(pa.int64()))


def plausible_times(part: Part, most: int) -> tuple[int, int] | None:
    """The range of a part's event times up to `most`."""
    if part.times is None or part.times[1] <= most:
        return part.times
    found = pa.chunked_array([each.cast(pa.int64()) for each in part.event_times])
    return _range(found.filter(pc.less_equal(found, most)))


def _range(times: pa.Array | pa.ChunkedArray) -> tuple[int, int] | None:
    found = pc.min_max(times)
    least, largest = found["min"].as_py(), found["max"].as_py()
    return None if least is None else (least, largest)
