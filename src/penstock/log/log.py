"""The log: records in order, never changed, in a folder of this machine.

Any number of processes may append and read at once. An append is one transaction over any number of topics: when it
returns, its records are durable and visible to every reader, all of them; if it raises, none is, unless the error says
that they may be kept. Offsets have gaps only where records were compacted away or excised; the *place* orders the
records of all topics. Opening a log recovers what a crash left behind; what had to be set aside is told by `set_aside`.
A forked process opens the log for itself.
"""

import time
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from itertools import count
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import pyarrow as pa

from penstock.errors import ConditionFailed, LogError, TopicFull
from penstock.log.backpressure import Backpressure
from penstock.log.bound import Bound, bound_json, check_can_be_bounded
from penstock.log.care import Care, is_cared_for
from penstock.log.catalog import Catalog
from penstock.log.columns import Rows, columns_of
from penstock.log.compaction import Compacted, Told
from penstock.log.consumers import Consumers, Delivering, Group, Queue
from penstock.log.consumers.source import End
from penstock.log.declaring import declared, schema_given
from penstock.log.description import Description, creation, described
from penstock.log.disk import Disk
from penstock.log.draft import Draft, Part, check_name, parts_of
from penstock.log.entries import entries_of
from penstock.log.excision import Excised, Sought, hashed
from penstock.log.expiry import Expired
from penstock.log.folder import prepare
from penstock.log.frame import Header, Punctuation
from penstock.log.inspection import Finding, findings
from penstock.log.journal import Journal
from penstock.log.mark import Mark, read_mark
from penstock.log.needs import former_readers_of, readers_of
from penstock.log.producer import Producer
from penstock.log.reader import Range, Start, batches, full_schema, offsets_at
from penstock.log.records import Appended, Condition, Entry, instant_or_none, micros
from penstock.log.recovery import SetAside, reports
from penstock.log.retention import FOREVER, Retention, retention_json
from penstock.log.sealing import Sealing
from penstock.log.staging import staged_part
from penstock.log.standing import By
from penstock.log.topic import EventTime, Topic, check_partition, grown, schema_json
from penstock.log.upkeep import Upkeep
from penstock.log.values import Avro
from penstock.log.writer import Limits, Writer
from penstock.schema import Schema

POLL_SECONDS = 0.005


class Log:
    """An open log. `Log.open` makes it; use it in a `with`, or call `close`."""

    def __init__(
        self, journal: Journal, writer: Writer, *, disk: Disk, clock: Callable[[], int], identity: str
    ) -> None:
        self.folder = journal.folder
        self.identity = identity
        self.consumers = Consumers(self, identity, clock)
        self._journal = journal
        self._writer = writer
        self._disk = disk
        self._backpressure = Backpressure(writer, self.consumers)
        care = Care(writer, disk, clock, [self.consumers.lowest])
        self._sealing = Sealing(journal, disk, care)
        self._upkeep = Upkeep(writer, self._sealing, care)
        self._turns = count(journal.mark().next_frame)  # not from 0: who opens a log for each append goes round too

    @staticmethod
    def open(
        path: str | Path,
        *,
        create: bool = True,
        disk: Disk | None = None,
        clock: Callable[[], int] = lambda: time.time_ns() // 1000,
        limits: Limits | None = None,
    ) -> "Log":
        """Opens the log in a folder, made if it is not there; recovers what a crash left behind."""
        folder = Path(path)
        try:
            return _opened(folder, disk or Disk(), clock, limits or Limits(), create=create)
        except OSError as error:
            about = f'"{error.filename}" is the path that was refused.' if error.filename else ""
            raise LogError(f'the log at "{folder}" cannot be opened: {error.strerror}', detail=about) from error

    def close(self) -> None:
        try:
            self._sealing.close()
        finally:
            self.consumers.close()
            self._writer.close()
            self._journal.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def settle(self) -> None:
        """Returns when all that is committed now is in the order: here that is always so."""

    def report(self, reader: str, topics: Sequence[str], frame: int) -> None:
        """Others could know by this that a reader has read these topics up to a frame; here nobody has to be told."""

    # Topics

    def create_topic(  # noqa: PLR0913 (what a topic is made of)
        self,
        name: str,
        schema: str | Schema | None = None,
        *,
        partitions: int = 1,
        key: str | Sequence[str] = (),
        event_time: str | EventTime | None = None,
        retention: Retention = FOREVER,
        values: Avro | None = None,
        own: bool = False,
    ) -> Topic:
        """Declares a topic; without a schema a raw one, of bytes. Declaring it again, equally, changes nothing. Its
        records are kept for ever, unless `retention` says otherwise. What `values` say counts where the
        topic is copied to Kafka. That it is the log's `own` is so of every topic in a folder.
        """
        made = declared(name, schema, partitions=partitions, key=key, event_time=event_time)
        topic = replace(made, retention=retention, values=values)
        self._writer.commit(Draft(control=lambda catalog: creation(catalog, topic)))
        return self.topic(name)

    def change_schema(self, name: str, schema: str | Schema) -> Topic:
        """Adds nullable columns at the end of a topic's schema; every other change is refused."""
        wanted = schema_given(schema)

        def columns(catalog: Catalog) -> Sequence[Mapping[str, Any]]:
            topic = catalog.topic(name)
            changed = grown(topic, wanted) is not topic
            return [{"columns": {"topic": name, "schema": schema_json(wanted)}}] if changed else []

        self._writer.commit(Draft(control=columns))
        return self.topic(name)

    def set_bound(self, name: str, bound: Bound | None) -> None:
        """How far the slowest group or queue may be behind a topic, and what becomes of appends beyond that; None: as
        far as it likes.
        """
        check_can_be_bounded(name)

        def control(catalog: Catalog) -> Sequence[Mapping[str, Any]]:
            changed = catalog.bounds.get(catalog.topic(name).name) != bound
            return [bound_json(name, bound)] if changed else []

        self._writer.commit(Draft(control=control))

    def change_retention(self, name: str, retention: Retention) -> Topic:
        """Says from now on how long the topic's records are kept."""

        def kept(catalog: Catalog) -> Sequence[Mapping[str, Any]]:
            topic = catalog.topic(name)
            same = replace(topic, retention=retention) == topic  # refuses what the topic cannot be
            return [] if same else [{"retention": {"topic": name} | retention_json(retention)}]

        self._writer.commit(Draft(control=kept))
        return self.topic(name)

    def topics(self) -> list[Topic]:
        return self._writer.ask(lambda catalog: sorted(catalog.topics.values(), key=lambda topic: topic.name))

    def topic(self, name: str) -> Topic:
        return self._writer.ask(lambda catalog: catalog.topic(name))

    def describe(self, name: str) -> Description:
        return self._writer.ask(lambda catalog: described(catalog, name))

    def compacted(self, name: str) -> int:
        """The frame before which only the newest record of each key is there for sure; 0 if all are."""
        return self._topic_and_bounds(name)[3]

    def compacted_by_others(self, names: Sequence[str]) -> list[str]:
        """Which of these topics somebody else may compact at any time, without a word: here that is none."""
        return []

    def begins(self, name: str) -> tuple[int, ...]:
        """The first offset of each partition that is kept."""
        return self._writer.ask(lambda catalog: tuple(catalog.begins(catalog.topic(name).name)))

    def ends(self, name: str) -> tuple[int, ...]:
        """The next offset of each partition."""
        return self._topic_and_bounds(name)[2]

    def offsets(self, name: str, at: Start, *, partition: int | None = None) -> tuple[int, ...]:
        """The offset of each partition at which reading from an offset, a place or an append time begins."""
        topic, _, now, _ = self._topic_and_bounds(name)
        return tuple(offsets_at(self._journal, topic, now, at, partition))

    def _topic_and_bounds(self, name: str) -> tuple[Topic, tuple[int, ...], tuple[int, ...], int]:
        """The topic, where its partitions begin and end, before which frame it is compacted. All as of one moment: the
        topic then has every schema version that records before the ends have.
        """

        def asked(catalog: Catalog) -> tuple[Topic, tuple[int, ...], tuple[int, ...], int]:
            topic, at = catalog.topic(name), catalog.standings[name]
            return topic, tuple(at.begins), tuple(at.ends), at.compaction.below

        return self._writer.ask(asked)

    # Appending

    def append(
        self,
        topic: str,
        rows: Rows,
        *,
        partition: int | None = None,
        producer: str | None = None,
        sequence: int | None = None,
        expect: Sequence[Condition] = (),
    ) -> Appended:
        """Appends records of one topic durably. See `append_all`."""
        declared = self.topic(topic)
        parts = parts_of(columns_of(declared, rows), partition=partition, turn=next(self._turns))
        return self._commit(Draft(tuple(parts), producer, sequence, expect=tuple(expect)))

    def append_all(
        self,
        rows: Mapping[str, Rows],
        *,
        producer: str | None = None,
        sequence: int | None = None,
        expect: Sequence[Condition] = (),
        note: Mapping[str, Any] | None = None,
        far_times: bool = False,
    ) -> Appended:
        """Appends records of several topics in one transaction.

        A pair of `producer` and `sequence` that was appended before is not appended again: the earlier answer is
        given, marked `repeated`. Where a condition of `expect` does not hold, `ConditionFailed` is raised and nothing
        is written. `note` is kept with the frame. With `far_times` Arrow tables may hold times outside of the years 1
        to 9999, which only `batches` can read.
        """
        turn = next(self._turns)
        parts = [
            part
            for name, each in rows.items()
            for part in parts_of(columns_of(self.topic(name), each, far_times=far_times), partition=None, turn=turn)
        ]
        return self._commit(Draft(tuple(parts), producer, sequence, note or {}, tuple(expect)))

    def staging_path(self) -> Path:
        """A new path for an Arrow IPC file that a later `append_files` commits."""
        return self.folder / "staged" / f"{uuid.uuid4().hex}.arrow"

    def append_files(
        self,
        files: Mapping[tuple[str, int], Sequence[Path]],
        *,
        producer: str | None = None,
        sequence: int | None = None,
        expect: Sequence[Condition] = (),
        note: Mapping[str, Any] | None = None,
        far_times: bool = False,
    ) -> Appended:
        """Commits Arrow files, written before to `staging_path`, as records of topics and partitions, in one
        transaction. See `append_all`.
        """
        if self._has(producer, sequence):  # the files may be gone: what was in them is sealed
            return self._commit(Draft((), producer, sequence))
        parts = [
            staged_part(self.folder / "staged", self.topic(topic), partition, path, self._disk, far_times=far_times)
            for (topic, partition), paths in files.items()
            for path in paths
        ]
        try:
            done = self._commit(Draft(tuple(parts), producer, sequence, note or {}, tuple(expect)))
        except (ConditionFailed, TopicFull):  # surely wrote nothing; after other errors the frame may be there
            self._remove_staged(parts)
            raise
        kept = {span.topic for span in done.spans}
        self._remove_staged([part for part in parts if done.dropped and part.topic not in kept])
        return done

    def _remove_staged(self, parts: Sequence[Part]) -> None:
        for part in parts:
            self._disk.remove(self.folder / "staged" / str(part.file))

    def punctuate(
        self, topics: str | Sequence[str], until: datetime, *, scope: str = "", expect: Sequence[Condition] = ()
    ) -> Appended:
        """Says in the log, in one frame, that the topics will bring nothing before `until` any more; for everybody, or
        for the readers of one scope.
        """
        named = [self.topic(each).name for each in ([topics] if isinstance(topics, str) else topics)]
        said = tuple(Punctuation(each, micros(until), scope) for each in named)
        return self._commit(Draft(punctuation=said, expect=tuple(expect)))

    def rest(
        self,
        topic: str,
        *,
        partitions: Sequence[int] = (),
        producers: Sequence[str] = (),
        scope: str = "",
        expect: Sequence[Condition] = (),
    ) -> Appended:
        """Says in the log that partitions or producers are idle: watermarks do not wait for them, until they bring
        something again.
        """
        for partition in partitions:
            check_partition(self.topic(topic), partition)
        said = [Punctuation(topic, scope=scope, says="idle", partition=each) for each in partitions]
        said += [Punctuation(topic, scope=scope, says="idle", producer=each) for each in producers]
        return self._commit(Draft(punctuation=tuple(said), expect=tuple(expect)))

    def producer(self, name: str) -> Producer[Appended]:
        """The producer of that name: it joins topics, announces how far it has come, and leaves."""
        return Producer(name, self._commit)

    def watermark(
        self, topic: str, *, delay: timedelta | None = None, by: By = "stream", scope: str = ""
    ) -> datetime | None:
        """The time before which readers of a scope, who stay `delay` behind event times, expect nothing any more."""
        behind = None if delay is None else delay // timedelta(microseconds=1)

        def found(catalog: Catalog) -> int | None:
            return catalog.standings[catalog.topic(topic).name].watermark(by, behind, scope)

        return instant_or_none(self._writer.ask(found))

    def raise_epoch(self, name: str) -> int:
        """A new, larger value of a named epoch: appends that expect an older one are refused from now on."""
        check_name("an epoch", name)
        raised: list[int] = []

        def control(catalog: Catalog) -> Sequence[Mapping[str, Any]]:
            raised.append(catalog.epochs.get(name, 0) + 1)
            return [{"epoch": {"name": name, "value": raised[-1]}}]

        self._writer.commit(Draft(control=control))
        return raised[-1]

    def epoch(self, name: str) -> int:
        return self._writer.ask(lambda catalog: catalog.epochs.get(name, 0))

    def _has(self, producer: str | None, sequence: int | None) -> bool:
        last = self._writer.ask(lambda catalog: catalog.producers.get(producer or ""))
        return last is not None and sequence is not None and sequence <= last[0]

    def _commit(self, draft: Draft) -> Appended:
        if not (draft.parts or draft.punctuation or draft.producer):
            raise LogError(
                "an append needs records", hint="An empty append can be made only under a producer and sequence."
            )
        done = self._backpressure.commit(draft)
        assert done is not None
        try:
            self._sealing.look(self._journal.mark().stretch, lambda: self._writer.ask(is_cared_for))
        except Exception as error:  # the records are kept all the same
            self._sealing.failure = error
        return done

    # Reading

    def batches(
        self,
        topic: str,
        *,
        partition: int | None = None,
        start: Start | None = None,
        end: Start | None = None,
        columns: Sequence[str] | None = None,
        skip_damage: bool = False,
    ) -> Iterator[pa.RecordBatch]:
        """Records from `start` (default: the first that is kept) up to `end` (default: all that is committed now) as
        Arrow batches, with `_partition`, `_offset`, `_place`, `_appended_at`.
        """
        wanted = self._range(topic, partition, start, end)
        return batches(self._journal, replace(wanted, columns=_known(wanted.topic, columns), skip_damage=skip_damage))

    def read(
        self,
        topic: str,
        *,
        partition: int | None = None,
        start: Start | None = None,
        end: Start | None = None,
        skip_damage: bool = False,
    ) -> Iterator[Entry]:
        """Records from an offset, a place or an append time, in order."""
        wanted = replace(self._range(topic, partition, start, end), skip_damage=skip_damage)
        return (entry for batch in batches(self._journal, wanted) for entry in entries_of(wanted.topic, batch))

    def tail(
        self,
        topic: str,
        *,
        partition: int | None = None,
        start: Start | None = None,
        from_first: bool = False,
        stop: Callable[[], bool] = lambda: False,
    ) -> Iterator[Entry]:
        """Records as they come, from `start`, from the first one that is kept or from now on, until `stop` says so."""
        wanted = self._range(topic, partition, start)
        from_now = start is None and not from_first
        return self._following(wanted.ends if from_now else wanted.starts, topic, partition, stop)

    def _following(
        self, starts: tuple[int, ...], topic: str, partition: int | None, stop: Callable[[], bool]
    ) -> Iterator[Entry]:
        seen: Mark | None = None
        while not stop():
            mark = self._journal.mark()
            if mark == seen:
                time.sleep(POLL_SECONDS)
                continue
            seen = mark
            wanted = replace(self._range(topic, partition), starts=starts, compacted=None)
            for batch in batches(self._journal, wanted):
                yield from entries_of(wanted.topic, batch)
            starts = tuple(map(max, starts, wanted.ends))

    def _chosen(self, topic: Topic, partition: int | None, ends: tuple[int, ...]) -> tuple[int, ...]:
        if partition is not None:
            check_partition(topic, partition)
        return tuple(end if partition in (None, p) else 0 for p, end in enumerate(ends))

    def _range(self, name: str, partition: int | None, start: Start | None = None, end: Start | None = None) -> Range:
        topic, begins, now, compacted = self._topic_and_bounds(name)
        ends = self._chosen(topic, partition, now)
        starts = begins if start is None else offsets_at(self._journal, topic, now, start, partition)
        if end is not None:
            ends = tuple(map(min, ends, offsets_at(self._journal, topic, now, end, partition)))
        return Range(topic, tuple(starts), ends, tuple(full_schema(topic).names), begins=begins, compacted=compacted)

    # Who reads

    def group(self, name: str) -> Group:
        """The group of readers of that name."""
        return self.consumers.group(name)

    def queue(self, name: str) -> Queue:
        """The queue of that name."""
        return self.consumers.queue(name)

    def create_queue(
        self, name: str, topic: str, delivering: Delivering | None = None, *, start: End | None = None
    ) -> Queue:
        """Declares a queue over a topic. Declaring it again, equally, changes nothing."""
        queue = self.consumers.queue(name)
        queue.create(topic, delivering or Delivering(), start)
        return queue

    # Frames and files

    def mark(self) -> Mark:
        """How far the log is committed."""
        return self._journal.mark()

    def frames(self, start: int = 0) -> Iterator[Header]:
        """What every committed frame says of itself, from number `start` on; also of sealed ones."""
        return self._journal.headers(start)

    def find(self, producer: str, sequence: int) -> Header | None:
        """The frame that a producer appended under a sequence."""
        return self._journal.find(producer, sequence)

    def last(self, producer: str) -> Header | None:
        """The newest frame of a producer."""
        last = self._writer.ask(lambda catalog: catalog.producers.get(producer))
        return None if last is None else self._journal.header(last[1])

    def seal(self) -> int:
        """Closes the open stretch and seals all closed ones now; how many could not be sealed because they are
        damaged.
        """
        self._writer.roll()
        return self._sealing.run()

    def retain(self, topics: Sequence[str] | None = None) -> list[Expired]:
        """Lets records go now that these topics, or all, are to keep no longer; what went of each."""
        return self._upkeep.retain(None if topics is None else [self.topic(name) for name in topics])

    def compact(self, topics: Sequence[str] | None = None, *, told: Told = lambda _: None) -> list[Compacted]:
        """Compacts these topics now, or all that are declared so, up to the last closed stretch that all pipelines have
        read; `told` hears how many records were looked at, as it goes.
        """
        declared = [topic for topic in self.topics() if topic.retention.compacted]
        return self._upkeep.compact(declared if topics is None else [self.topic(name) for name in topics], told)

    def excise(self, topic: str, key: Mapping[str, Any], *, by: str = "") -> Excised:
        """Takes all records of a topic in which these columns have these values out of every file of the log, for
        good, and the reasons for which messages of the topic were rejected. `by` says who wanted it, and stays in the
        log with a hash of the values.
        """
        done = self._upkeep.excise(Sought(self.topic(topic), key), hashed(self.identity, topic, key), by)
        self.consumers.excise(topic)
        return done

    def forget(self, topics: Sequence[str]) -> None:
        """Lets go all records that these topics have now."""
        self._upkeep.forget([self.topic(name) for name in topics])

    def readers(self, topic: str) -> list[str]:
        """The pipelines that read a topic, as the log knows, by name; and those that are catching up and may."""
        return readers_of(self._journal, self._journal.catalog_now(), self.topic(topic).name)

    def former_readers(self, topic: str) -> list[str]:
        """The pipelines that read a topic before they were changed, by name; something of it may be left with them."""
        return former_readers_of(self._journal, self._journal.catalog_now(), self.topic(topic).name)

    def set_aside(self) -> list[SetAside]:
        """What recovery has cut off the journal and kept aside, since the log was made."""
        return reports(self._journal)

    def check(self) -> Iterator[Finding]:
        """Reads everything and yields one finding per stretch file, damaged or not; the long way to know that a log
        is whole.
        """
        return findings(self._journal)


def _opened(folder: Path, disk: Disk, clock: Callable[[], int], limits: Limits, *, create: bool) -> Log:
    identity = prepare(folder, disk, clock, create=create)
    journal = Journal(folder)
    writer = Writer(journal, identity, disk=disk, clock=clock, limits=limits)
    try:
        writer.open()
        if not writer.settle(wait=False) and read_mark(folder / "committed") is None:
            writer.settle(wait=True)
        return Log(journal, writer, disk=disk, clock=clock, identity=identity)
    except BaseException:
        writer.close()
        journal.close()
        raise


def _known(topic: Topic, columns: Sequence[str] | None) -> tuple[str, ...]:
    full = full_schema(topic).names
    for column in columns or ():
        if column not in full:
            topic.schema.column(column)  # raises, naming the column
    return tuple(full if columns is None else columns)
