"""Copying: the records of a topic go from one log to another, each once, however often that is begun.

Every partition is copied in order, under a producer of its own; its sequence is the offset in the source that comes
next, so that who begins again goes on there, after a kill too. Of two at the same time the one that began first is
refused. Offsets and append times are those of the target. What a bound of the target leaves out is counted.
"""

from collections.abc import Callable, Iterator

import pyarrow as pa

from penstock.errors import ConditionFailed, LogError
from penstock.log.columns import EXTRAS
from penstock.log.protocol import AnyLog
from penstock.log.records import Epoch
from penstock.log.topic import EventTime, Topic

ROWS = 50_000
"""In one append."""
Told = Callable[[int], None]


class Copying:
    """Of one topic. What is appended to the source from now on is left for the next time."""

    def __init__(self, source: AnyLog, target: AnyLog, topic: str) -> None:
        if source.identity == target.identity:
            raise LogError("a log cannot be copied to itself", detail=f"Both are {source.identity}.")
        self._source = source
        self._target = target
        self._topic = source.topic(topic)
        self._ends = source.ends(topic)
        self.dropped = 0
        """How many records were left out, because the topic is full in the target, and so bounded."""
        declare(target, self._topic)
        name = f"copy of {topic} from {source.identity}"
        self._owner = Epoch(name, target.raise_epoch(name))  # before it is asked how far another one came
        self._starts = [max(begin, self._next(at)) for at, begin in enumerate(source.begins(topic))]

    @property
    def ahead(self) -> int:
        """How many offsets there are to copy; those that were compacted away count."""
        return sum(max(0, end - start) for start, end in zip(self._starts, self._ends, strict=True))

    def run(self, told: Told = lambda _: None) -> int:
        """How many records were copied; `told` hears it as it goes."""
        copied = 0
        for partition in range(self._topic.partitions):
            for batch in self._batches(partition):
                copied += self._append(partition, batch)
                told(copied)
        return copied

    def _batches(self, partition: int) -> Iterator[pa.RecordBatch]:
        start, end = self._starts[partition], self._ends[partition]
        if start < end:
            for batch in self._source.batches(self._topic.name, partition=partition, start=start, end=end):
                yield from (batch.slice(at, ROWS) for at in range(0, len(batch), ROWS))

    def _append(self, partition: int, batch: pa.RecordBatch) -> int:
        """How many of them are there now."""
        name, producer = self._topic.name, self._producer(partition)
        following = batch.column("_offset")[-1].as_py() + 1
        rows = _plain(self._topic, batch)
        try:
            done = self._target.append(
                name, rows, partition=partition, producer=producer, sequence=following, expect=[self._owner]
            )
        except ConditionFailed as error:
            raise LogError(
                f'another copy of topic "{name}" has begun',
                detail=f"{error.detail} What this one has copied stays, and the other goes on from there.",
                hint="Let that one go on.",
            ) from error
        there = sum(span.count for span in done.spans)
        self.dropped += len(batch) - there
        return there

    def _next(self, partition: int) -> int:
        """The offset of the source that comes after those that are in the target."""
        last = self._target.last(self._producer(partition))
        return 0 if last is None or last.sequence is None else last.sequence

    def _producer(self, partition: int) -> str:
        return f"copy of {self._topic.name}/{partition} from {self._source.identity}"


def declare(target: AnyLog, topic: Topic) -> None:
    """The topic is in the target too, with all columns; one that is there and is another is refused."""
    there = next((each for each in target.topics() if each.name == topic.name), None)
    if there is not None and there.schema != topic.schema and not topic.raw:
        target.change_schema(topic.name, topic.schema)
    event_time = None
    if topic.event_time is not None and not topic.raw:
        event_time = EventTime(topic.event_time, topic.plausible, topic.corrected)
    target.create_topic(
        topic.name,
        None if topic.raw else topic.schema,
        partitions=topic.partitions,
        key=() if topic.raw else topic.key,
        event_time=event_time,
        values=topic.values,
    )


def chosen(source: AnyLog, names: list[str]) -> list[str]:
    """These topics, or all; one that is not there is refused."""
    for name in names:
        source.topic(name)
    return names or [topic.name for topic in source.topics()]


def _plain(topic: Topic, batch: pa.RecordBatch) -> pa.RecordBatch:
    """Only what is appended: the columns, and those of the reserved ones that any record uses."""
    used = [name for name in EXTRAS if _is_used(batch.column(name))]
    return batch.select([*topic.schema.names, *used])


def _is_used(column: pa.Array) -> bool:
    return bool(column.true_count) if pa.types.is_boolean(column.type) else column.null_count < len(column)
