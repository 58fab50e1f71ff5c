"""Records: what is appended, what is read, and what an append answers."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

from penstock.log.bound import dropped_in
from penstock.log.frame import INDEX_BITS, Header

Value = Mapping[str, Any]
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(frozen=True, order=True)
class Place:
    """Where a record stands in the one order of all topics: its frame, and its index in the frame."""

    frame: int
    index: int = 0

    def __int__(self) -> int:
        return self.frame << INDEX_BITS | self.index

    @staticmethod
    def of(number: int) -> "Place":
        return Place(number >> INDEX_BITS, number & (1 << INDEX_BITS) - 1)


@dataclass(frozen=True)
class Record:
    """One thing to append: a row of a typed topic, or the bytes of a raw one.

    `deleted` marks a deletion: of the row with this key, or of an equal row where the topic has no key. `replaces` is
    the row that this one replaces, where the writer knows it. `key` and `time` are for raw topics; a typed topic has
    them among its columns.
    """

    value: Value | bytes | None
    key: bytes | None = None
    time: datetime | None = None
    headers: Mapping[str, bytes] = field(default_factory=dict)
    deleted: bool = False
    replaces: Value | None = None


@dataclass(frozen=True)
class Entry:
    """A record where it stands in the log. `key` is the tuple of the key's columns, or the bytes of a raw key."""

    topic: str
    partition: int
    offset: int
    place: Place
    appended_at: datetime
    key: tuple[Any, ...] | bytes | None
    value: Value | bytes | None
    time: datetime | None
    headers: Mapping[str, bytes]
    deleted: bool
    replaces: Value | None


@dataclass(frozen=True)
class Span:
    """Offsets `base` to `base + count - 1` of a partition."""

    topic: str
    partition: int
    base: int
    count: int


@dataclass(frozen=True)
class Appended:
    """What an append did: its frame, and the offsets that its records got. `repeated`: an earlier append with this
    producer and sequence did it. `dropped`: how many of its records were left out, because their topic was full.
    """

    frame: int
    appended_at: datetime
    spans: tuple[Span, ...]
    repeated: bool = False
    dropped: int = 0


@dataclass(frozen=True)
class EndOffset:
    """The condition that a partition ends at `offset`: nothing was appended since the writer looked."""

    topic: str
    partition: int
    offset: int


@dataclass(frozen=True)
class Epoch:
    """The condition that an epoch still has this value: no newer owner has raised it."""

    name: str
    value: int


Condition = EndOffset | Epoch


def appended(header: Header, *, repeated: bool = False) -> Appended:
    spans = tuple(Span(b.topic, b.partition, b.base, b.count) for b in header.blocks)
    return Appended(header.frame, instant(header.at), spans, repeated, dropped_in(header.control))


def instant(micros: int) -> datetime:
    return EPOCH + timedelta(microseconds=micros)


def instant_or_none(micros: int | None) -> datetime | None:
    return None if micros is None else instant(micros)


def micros(time: datetime) -> int:
    """Microseconds since 1970; a time without a zone is taken as UTC."""
    aware = time if time.tzinfo else time.replace(tzinfo=UTC)
    return (aware - EPOCH) // timedelta(microseconds=1)
