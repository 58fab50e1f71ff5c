"""The protocol of every log: what the embedded log and the log on Kafka both do, and keep under one contract.

The contract is a suite of tests (tests/log/contract.py and its parts). An ordered log has one order of all topics
besides: frames, places, watermarks. Pipelines and their stores need that. The embedded log has it, and the log on Kafka
by its journal.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any, Protocol

import pyarrow as pa

from penstock.log.columns import Rows
from penstock.log.description import Description
from penstock.log.frame import Header
from penstock.log.mark import Mark
from penstock.log.reader import Start
from penstock.log.records import Condition, Entry, Span, Value
from penstock.log.standing import By
from penstock.log.topic import EventTime, Topic
from penstock.log.values import Avro
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
        values: Avro | None = None,
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


class OrderedLog(Protocol):
    """An open log with one order of all topics, as pipelines and stores use it. `folder` is where its frames are."""

    folder: Path
    identity: str

    def settle(self) -> None: ...
    def report(self, reader: str, topics: Sequence[str], frame: int) -> None: ...

    def create_topic(  # noqa: PLR0913 (what a topic is made of)
        self,
        name: str,
        schema: str | Schema | None = None,
        *,
        partitions: int = 1,
        key: str | Sequence[str] = (),
        event_time: str | EventTime | None = None,
        values: Avro | None = None,
        own: bool = False,
    ) -> Topic: ...
    def topics(self) -> list[Topic]: ...
    def topic(self, name: str) -> Topic: ...
    def describe(self, name: str) -> Description: ...
    def compacted(self, name: str) -> int: ...
    def compacted_by_others(self, names: Sequence[str]) -> list[str]: ...
    def begins(self, name: str) -> tuple[int, ...]: ...

    def append_all(
        self,
        rows: Mapping[str, Rows],
        *,
        producer: str | None = None,
        sequence: int | None = None,
        expect: Sequence[Condition] = (),
        note: Mapping[str, Any] | None = None,
        far_times: bool = False,
    ) -> AnyAppended: ...
    def append_files(
        self,
        files: Mapping[tuple[str, int], Sequence[Path]],
        *,
        producer: str | None = None,
        sequence: int | None = None,
        expect: Sequence[Condition] = (),
        note: Mapping[str, Any] | None = None,
        far_times: bool = False,
    ) -> AnyAppended: ...
    def punctuate(
        self, topics: str | Sequence[str], until: datetime, *, scope: str = "", expect: Sequence[Condition] = ()
    ) -> AnyAppended: ...
    def rest(
        self,
        topic: str,
        *,
        partitions: Sequence[int] = (),
        producers: Sequence[str] = (),
        scope: str = "",
        expect: Sequence[Condition] = (),
    ) -> AnyAppended: ...
    def raise_epoch(self, name: str) -> int: ...
    def epoch(self, name: str) -> int: ...

    def batches(
        self,
        topic: str,
        *,
        partition: int | None = None,
        start: Start | None = None,
        end: Start | None = None,
        columns: Sequence[str] | None = None,
    ) -> Iterator[pa.RecordBatch]: ...
    def read(
        self, topic: str, *, partition: int | None = None, start: Start | None = None, end: Start | None = None
    ) -> Iterator[Entry]: ...
    def watermark(
        self, topic: str, *, delay: timedelta | None = None, by: By = "stream", scope: str = ""
    ) -> datetime | None: ...

    def mark(self) -> Mark: ...
    def frames(self, start: int = 0) -> Iterator[Header]: ...
    def find(self, producer: str, sequence: int) -> Header | None: ...
    def last(self, producer: str) -> Header | None: ...
