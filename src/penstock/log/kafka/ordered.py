"""The log on Kafka with one order of all topics: frames, places and watermarks, as pipelines need them.

The order is that of the journal, a topic of its own. Records of the log's own topics (the changes of views) have their
frame by the transaction that appends them; those of all other topics, which anybody may write, are admitted to it by
whoever has the log open with `admits`. What the journal says is kept in a folder too, the mirror, where Spark reads it.
"""

import shutil
import tempfile
import uuid
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import pyarrow as pa

from penstock.log.catalog import Catalog
from penstock.log.columns import Rows
from penstock.log.description import Description, described
from penstock.log.draft import Draft
from penstock.log.entries import entries_of
from penstock.log.frame import Header, Punctuation
from penstock.log.kafka.admission import NAME as ADMISSION
from penstock.log.kafka.admission import Admission
from penstock.log.kafka.javasettings import java_settings
from penstock.log.kafka.log import PATIENCE, KafkaLog
from penstock.log.kafka.mirror import Mirror
from penstock.log.kafka.mirroring import Mirroring
from penstock.log.kafka.places import with_places
from penstock.log.kafka.reading import STAMPS
from penstock.log.kafka.records import KafkaAppended
from penstock.log.kafka.reporting import Reporting
from penstock.log.kafka.waiting import Say, warn
from penstock.log.mark import Mark
from penstock.log.producer import Producer
from penstock.log.reader import Start, full_schema, offsets_at
from penstock.log.records import Condition, Entry, Span, instant, instant_or_none, micros
from penstock.log.standing import By
from penstock.log.topic import EventTime, Topic, check_partition
from penstock.log.values import Avro
from penstock.schema import Schema

PLAIN = [stamp.name for stamp in STAMPS]
HIDDEN = {*PLAIN, "_place"}
SETTLING = timedelta(seconds=1)
"""So long a transaction may hold up the journal before it is ended, if it is one of ours to end."""


class OrderedKafkaLog:
    """An open log on Kafka with its order. `OrderedKafkaLog.open` makes it; use it in a `with`, or call `close`."""

    def __init__(self, plain: KafkaLog, mirror: Mirror, *, kept: bool, admits: bool) -> None:
        self.plain = plain
        self.folder = mirror.folder
        self.identity = plain.identity
        self._mirror = mirror
        self._kept = kept
        self._mirroring = Mirroring(plain.client, plain.facts.journal, mirror)
        self._admits = admits
        self._reporting = Reporting(plain.client, mirror.journal, plain.prefix)
        self._admission: Admission | None = None

    @classmethod
    def open(  # noqa: PLR0913 (what a log on Kafka is made of)
        cls,
        servers: str,
        *,
        prefix: str = "",
        folder: Path | None = None,
        settings: Mapping[str, Any] | None = None,
        create: bool = True,
        admits: bool = False,
        owner: str | None = None,
        patience: timedelta = PATIENCE,
        say: Say = warn,
    ) -> Self:
        """As `KafkaLog.open`. The mirror lies in `folder`, or for the time being somewhere else. With `admits`, records
        of other programs get their place in the order. `owner` is the epoch of whoever opens it: a transaction that
        its predecessor has left open is ended.
        """
        plain = KafkaLog.open(servers, prefix=prefix, settings=settings, create=create, patience=patience, say=say)
        try:
            place = folder or Path(tempfile.mkdtemp(prefix="penstock-mirror-"))
            mirror = Mirror(place, plain.identity)
            mirror.open({"bootstrap": servers, "prefix": prefix, "settings": java_settings(settings or {})})
            log = cls(plain, mirror, kept=folder is not None, admits=admits)
        except BaseException:
            plain.close()
            raise
        try:
            log._begin(owner)
        except BaseException:
            log.close()
            raise
        return log

    def _begin(self, owner: str | None) -> None:
        mine = [ADMISSION] if self._admits else []
        self.plain.end_open(mine + ([f"epoch.{owner}"] if owner is not None else []), after=SETTLING)
        self._mirroring.wait(self.plain.journal_end())
        if self._admits:
            self._admission = Admission(
                self.plain.client, self.plain.facts, self.plain.appending, self._mirror, self._mirroring
            )

    def close(self) -> None:
        self.plain.client.waiting.stop()
        if self._admission is not None:
            self._admission.close()
        self._reporting.close()
        self._mirroring.close()
        self._mirror.close()
        self.plain.close()
        if not self._kept:
            shutil.rmtree(self.folder, ignore_errors=True)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def settle(self) -> None:
        """Returns when all that is committed now, also by other programs, is in the order."""
        if self._admission is not None:
            self._admission.settle()
        self._mirroring.wait(self.plain.journal_end())

    def check(self) -> None:
        """Raises what ended the work that goes on beside."""
        (self._admission or self._mirroring).check()

    def report(self, reader: str, topics: Sequence[str], frame: int) -> None:
        """Lets Kafka's own tools know that a reader has read these topics up to a frame: as the group `penstock.` and
        its name, behind the log's prefix.
        """
        self._reporting.report(reader, topics, frame)

    # Topics

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
    ) -> Topic:
        """See `KafkaLog.create_topic`."""
        topic = self.plain.create_topic(
            name, schema, partitions=partitions, key=key, event_time=event_time, values=values, own=own
        )
        self._mirroring.wait(self.plain.journal_end())
        return topic

    def change_schema(self, name: str, schema: str | Schema) -> Topic:
        """See `KafkaLog.change_schema`."""
        topic = self.plain.change_schema(name, schema)
        self._mirroring.wait(self.plain.journal_end())
        return topic

    def topics(self) -> list[Topic]:
        return self._mirror.ask(lambda catalog: sorted(catalog.topics.values(), key=lambda topic: topic.name))

    def topic(self, name: str) -> Topic:
        return self._mirror.ask(lambda catalog: catalog.topic(name))

    def describe(self, name: str) -> Description:
        """The topic as far as the order has it."""
        return self._mirror.ask(lambda catalog: described(catalog, name))

    def begins(self, name: str) -> tuple[int, ...]:
        """The first offset of each partition that Kafka still has, where it has let go of any that are in the order;
        else 0.
        """
        begins = self.plain.begins(name)
        firsts = self._firsts(name) if any(begins) else {}
        return tuple(begin if begin > firsts.get(at, begin) else 0 for at, begin in enumerate(begins))

    def _firsts(self, name: str) -> dict[int, int]:
        """The first offset of each partition that is in the order."""
        firsts: dict[int, int] = {}
        for header in self.frames():
            for block in header.blocks_of(name):
                firsts.setdefault(block.partition, block.base)
            if len(firsts) == self.topic(name).partitions:
                break
        return firsts

    def ends(self, name: str) -> tuple[int, ...]:
        """Of each partition the offset after the last one that is in the order."""
        return self._mirror.ask(lambda catalog: tuple(catalog.ends(catalog.topic(name).name)))

    def compacted(self, name: str) -> int:
        """Kafka compacts by itself: the order knows nothing of it."""
        self.topic(name)
        return 0

    def compacted_by_others(self, names: Sequence[str]) -> list[str]:
        """Those of these topics that Kafka compacts; where it does not tell, none."""
        found = self.plain.client.configured([self.plain.prefix + name for name in names], "cleanup.policy")
        return [name for name in names if "compact" in found.get(self.plain.prefix + name, "")]

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
    ) -> KafkaAppended:
        """See `KafkaLog.append`."""
        how: dict[str, Any] = {"partition": partition, "producer": producer, "sequence": sequence, "expect": expect}
        return self._seen(self.plain.append(topic, rows, **how))

    def append_all(
        self,
        rows: Mapping[str, Rows],
        *,
        producer: str | None = None,
        sequence: int | None = None,
        expect: Sequence[Condition] = (),
        note: Mapping[str, Any] | None = None,
        far_times: bool = False,
    ) -> KafkaAppended:
        """See `KafkaLog.append_all`. However long ago a producer has used a sequence, it is known."""
        if (earlier := self._earlier(producer, sequence)) is not None:
            return earlier
        how: dict[str, Any] = {"producer": producer, "sequence": sequence, "expect": expect, "note": note}
        return self._seen(self.plain.append_all(rows, **how, far_times=far_times))

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
    ) -> KafkaAppended:
        """Commits the records of Arrow files in one transaction; the files are not kept. Kafka chooses partitions."""
        if (earlier := self._earlier(producer, sequence)) is not None:
            return earlier
        rows = {topic: _table(paths) for (topic, _), paths in files.items()}
        how: dict[str, Any] = {"producer": producer, "sequence": sequence, "expect": expect, "note": note}
        done = self._seen(self.plain.append_all(rows, **how, far_times=far_times))
        for paths in files.values():
            for path in paths:
                path.unlink(missing_ok=True)
        return done

    def _earlier(self, producer: str | None, sequence: int | None) -> KafkaAppended | None:
        if producer is None or sequence is None:
            return None
        last = self._mirror.ask(lambda catalog: catalog.producers.get(producer))
        header = None if last is None or sequence > last[0] else self.find(producer, sequence)
        if header is None:
            return None
        spans = tuple(Span(block.topic, block.partition, block.base, block.count) for block in header.blocks)
        return KafkaAppended(instant(header.at), spans, repeated=True, frame=header.frame)

    def _seen(self, done: KafkaAppended) -> KafkaAppended:
        """Whoever appends finds it in the order at once."""
        if done.repeated:  # which is known from the commits of producers: the mirror may not have it yet
            self._mirroring.wait(self.plain.journal_end())
        return done if done.entry is None else replace(done, frame=self._mirroring.frame_at(done.entry))

    def _commit(self, draft: Draft) -> KafkaAppended:
        self._mirror.ask(draft.control)
        return self._seen(self.plain.commit(draft))

    def punctuate(
        self, topics: str | Sequence[str], until: datetime, *, scope: str = "", expect: Sequence[Condition] = ()
    ) -> KafkaAppended:
        """Says in the order, at one place, that the topics will bring nothing before `until` any more; for everybody,
        or for the readers of one scope.
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
    ) -> KafkaAppended:
        """Says in the order that partitions or producers are idle: watermarks do not wait for them, until they bring
        something again.
        """
        for partition in partitions:
            check_partition(self.topic(topic), partition)
        said = [Punctuation(topic, scope=scope, says="idle", partition=each) for each in partitions]
        said += [Punctuation(topic, scope=scope, says="idle", producer=each) for each in producers]
        return self._commit(Draft(punctuation=tuple(said), expect=tuple(expect)))

    def producer(self, name: str) -> Producer[KafkaAppended]:
        """The producer of that name: it joins topics, announces how far it has come, and leaves. What it brings itself
        is not known on Kafka; what it announces is.
        """
        return Producer(name, self._commit)

    def raise_epoch(self, name: str) -> int:
        """See `KafkaLog.raise_epoch`."""
        raised = self.plain.raise_epoch(name)
        self._mirroring.wait(self.plain.journal_end())
        return raised

    def epoch(self, name: str) -> int:
        """As the order has it now; an append is held against what Kafka has."""
        self.check()
        return self._mirror.ask(lambda catalog: catalog.epochs.get(name, 0))

    # Reading

    def batches(
        self,
        topic: str,
        *,
        partition: int | None = None,
        start: Start | None = None,
        end: Start | None = None,
        columns: Sequence[str] | None = None,
    ) -> Iterator[pa.RecordBatch]:
        """Records that are in the order, from an offset, a place or an append time on, one partition after the other;
        with `_place`, and the append time of their frame.
        """
        declared, ends = self.topic(topic), self.ends(topic)
        if partition is not None:
            check_partition(declared, partition)
        starts = [0] * len(ends) if start is None else self._offsets(declared, ends, start, partition)
        lasts = ends if end is None else tuple(map(min, ends, self._offsets(declared, ends, end, partition)))
        for name in columns or ():
            if name not in full_schema(declared).names:
                declared.schema.column(name)  # raises, naming it
        chosen = range(len(ends)) if partition is None else [partition]
        return self._batches(topic, {each: (starts[each], lasts[each]) for each in chosen}, columns)

    def _batches(
        self, topic: str, offsets: Mapping[int, tuple[int, int]], columns: Sequence[str] | None
    ) -> Iterator[pa.RecordBatch]:
        needed = None if columns is None else [name for name in columns if name not in HIDDEN] + PLAIN
        for partition, (start, end) in offsets.items():
            if start < end:
                rows = self.plain.batches(topic, partition=partition, start=start, end=end, columns=needed)
                for batch in with_places(self._mirror.journal, topic, rows):
                    yield batch if columns is None else batch.select(list(columns))

    def _offsets(self, topic: Topic, ends: tuple[int, ...], start: Start, partition: int | None) -> Sequence[int]:
        return offsets_at(self._mirror.journal, topic, ends, start, partition)

    def read(
        self, topic: str, *, partition: int | None = None, start: Start | None = None, end: Start | None = None
    ) -> Iterator[Entry]:
        """Records as entries. See `batches`."""
        declared, found = self.topic(topic), self.batches(topic, partition=partition, start=start, end=end)
        return (entry for batch in found for entry in entries_of(declared, batch))

    def watermark(
        self, topic: str, *, delay: timedelta | None = None, by: By = "stream", scope: str = ""
    ) -> datetime | None:
        """The time before which readers of a scope, who stay `delay` behind event times, expect nothing any more."""
        behind = None if delay is None else delay // timedelta(microseconds=1)

        def found(catalog: Catalog) -> int | None:
            return catalog.standings[catalog.topic(topic).name].watermark(by, behind, scope)

        return instant_or_none(self._mirror.ask(found))

    # Frames

    def mark(self) -> Mark:
        """How far the order has come."""
        self.check()
        return self._mirror.journal.mark()

    def frames(self, start: int = 0) -> Iterator[Header]:
        """What every frame says of itself, from number `start` on."""
        return self._mirror.journal.headers(start)

    def find(self, producer: str, sequence: int) -> Header | None:
        """The frame that a producer appended under a sequence."""
        return self._mirror.journal.find(producer, sequence)

    def last(self, producer: str) -> Header | None:
        """The newest frame of a producer."""
        last = self._mirror.ask(lambda catalog: catalog.producers.get(producer))
        return None if last is None else self._mirror.journal.header(last[1])


def _table(paths: Sequence[Path]) -> pa.Table:
    tables = []
    for path in paths:
        with pa.memory_map(str(path)) as source:
            tables.append(pa.ipc.open_file(source).read_all())
    return pa.concat_tables(tables)
