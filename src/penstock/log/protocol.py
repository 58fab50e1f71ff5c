"""The protocol of every log: what the embedded log and the log on Kafka both do, and keep under one contract.

The contract is a suite of tests (tests/log/contract.py and its parts). What only the embedded log does rests on its one
order of all topics: frames, places, watermarks.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any, Protocol

import pyarrow as pa

from penstock.log.columns import Rows
from penstock.log.records import Condition, Span, Value
from penstock.log.topic import EventTime, Topic
from penstock.schema import Schema

Where = int | datetime
"""An offset of one partition, or an append time."""


class AnyAppended(Protocol):
    """What an append did."""

    @property
    def appended_at(self) -> datetime: ...
    @property
    def spans(self) -> tuple[Span, ...]: ...
    @property
    def repeated(self) -> bool: ...


class AnyCommit(Protocol):
    """The newest append of a producer."""

    @property
    def sequence(self) -> int | None: ...
    @property
    def note(self) -> Mapping[str, Any]: ...


class AnyEntry(Protocol):
    """A record where it stands."""

    @property
    def topic(self) -> str: ...
    @property
    def partition(self) -> int: ...
    @property
    def offset(self) -> int: ...
    @property
    def appended_at(self) -> datetime: ...
    @property
    def key(self) -> tuple[Any, ...] | bytes | None: ...
    @property
    def value(self) -> Value | bytes | None: ...
    @property
    def time(self) -> datetime | None: ...
    @property
    def headers(self) -> Mapping[str, bytes]: ...
    @property
    def deleted(self) -> bool: ...
    @property
    def replaces(self) -> Value | None: ...


class AnyLog(Protocol):
    """An open log, wherever it is kept."""

    identity: str

    def close(self) -> None: ...

    def create_topic(
        self,
        name: str,
        schema: str | Schema | None = None,
        *,
        partitions: int = 1,
        key: str | Sequence[str] = (),
        event_time: str | EventTime | None = None,
    ) -> Topic: ...
    def change_schema(self, name: str, schema: str | Schema) -> Topic: ...
    def topics(self) -> list[Topic]: ...
    def topic(self, name: str) -> Topic: ...
    def begins(self, name: str) -> tuple[int, ...]: ...
    def ends(self, name: str) -> tuple[int, ...]: ...

    def append(
        self,
        topic: str,
        rows: Rows,
        *,
        partition: int | None = None,
        producer: str | None = None,
        sequence: int | None = None,
        expect: Sequence[Condition] = (),
    ) -> AnyAppended: ...
    def append_all(
        self,
        rows: Mapping[str, Rows],
        *,
        producer: str | None = None,
        sequence: int | None = None,
        expect: Sequence[Condition] = (),
        note: Mapping[str, Any] | None = None,
    ) -> AnyAppended: ...
    def raise_epoch(self, name: str) -> int: ...
    def epoch(self, name: str) -> int: ...
    def last(self, producer: str) -> AnyCommit | None: ...

    def batches(
        self,
        topic: str,
        *,
        partition: int | None = None,
        start: Where = 0,
        end: Where | None = None,
        columns: Sequence[str] | None = None,
    ) -> Iterator[pa.RecordBatch]: ...
    def read(
        self, topic: str, *, partition: int | None = None, start: Where = 0, end: Where | None = None
    ) -> Iterator[AnyEntry]: ...
    def tail(
        self,
        topic: str,
        *,
        partition: int | None = None,
        start: Where | None = None,
        stop: Callable[[], bool] = lambda: False,
    ) -> Iterator[AnyEntry]: ...
