"""The log on Kafka: the same records, appends and readers, kept by a cluster of brokers.

An append is one transaction over any number of topics: when it returns, its records are on the brokers and visible to
every reader, all of them; if it raises, none is, unless the error says that they may be kept. Order holds within a
partition, and there only: there are no frames and no places. Offsets rise, with gaps where transactions end. Brokers
that do not answer are waited for, which is said. A log is a cluster and a prefix of names.
"""

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import timedelta
from itertools import count
from types import TracebackType
from typing import Any, Self

import pyarrow as pa
from confluent_kafka.admin import OffsetSpec

from penstock.errors import LogError
from penstock.log.columns import Rows, columns_of
from penstock.log.declaring import declared, schema_given
from penstock.log.draft import Draft, check_name
from penstock.log.kafka.appending import Appending, Order
from penstock.log.kafka.avro import values_of
from penstock.log.kafka.client import Client
from penstock.log.kafka.facts import Facts
from penstock.log.kafka.following import followed
from penstock.log.kafka.messages import Outgoing, numbered, outgoing
from penstock.log.kafka.reading import Bad, Range, Start, batches, check_kept, full_schema, offsets_at, refuse
from penstock.log.kafka.records import Commit, KafkaAppended, KafkaDescription, KafkaEntry, KafkaPartition, entries_of
from penstock.log.kafka.settings import Settings
from penstock.log.kafka.topics import Topics
from penstock.log.kafka.transaction import Overtaken
from penstock.log.kafka.waiting import PAUSE_SECONDS, Say, Waiting, warn
from penstock.log.records import Condition, EndOffset, Epoch, instant
from penstock.log.topic import EventTime, Topic, check_partition
from penstock.log.values import Avro
from penstock.schema import Schema

PATIENCE = timedelta(minutes=5)
"""Unless said otherwise, brokers that do not answer are waited for as long."""


class KafkaLog:
    """An open log on Kafka. `KafkaLog.open` makes it; use it in a `with`, or call `close`."""

    def __init__(self, client: Client, prefix: str, identity: str, facts: Facts) -> None:
        self.prefix = prefix
        self.identity = identity
        self.client = client
        self.facts = facts
        self.appending = Appending(client, facts, prefix)
        self._topics = Topics(client, facts, self.appending, prefix)
        self._turns = count(time.time_ns())  # not from 0: who opens a log for each append goes round too

    @staticmethod
    def open(
        servers: str,
        *,
        prefix: str = "",
        settings: Mapping[str, Any] | None = None,
        create: bool = True,
        patience: timedelta = PATIENCE,
        say: Say = warn,
    ) -> "KafkaLog":
        """Opens the log on the cluster of these brokers (`host:port,host:port`), made if it is not there.

        `settings` are those of librdkafka, for security and all else; they are shown to nobody. Brokers that do not
        answer are waited for as long as there is `patience`, and `say` is told.
        """
        client = Client(Settings(servers, settings or {}), Waiting(servers, patience, say))
        try:
            facts = Facts(client, prefix)
            cluster = client.cluster()
            facts.prepare(create=create)
            identity = f"{cluster}/{prefix}{client.described(facts.journal)[0]}"
            return KafkaLog(client, prefix, identity, facts)
        except BaseException:
            client.close()
            raise

    def close(self) -> None:
        self.appending.close()
        self.client.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    # Topics

    def create_topic(  # noqa: PLR0913 (what a topic is made of)
        self,
        name: str,
        schema: str | Schema | None = None,
        *,
        partitions: int = 1,
        key: str | Sequence[str] = (),
        event_time: str | EventTime | None = None,
        settings: Mapping[str, str] | None = None,
        values: Avro | None = None,
        own: bool = False,
    ) -> Topic:
        """Declares a topic; without a schema a raw one, of bytes. Declaring it again, equally, changes nothing. One
        that Kafka has already is taken as it is; else it is made, with these `settings` of Kafka. Its `values` are
        JSON, or Avro. Only logs append to a topic of their `own`: its records are in the journal from then on.
        """
        topic = replace(declared(name, schema, partitions=partitions, key=key, event_time=event_time), values=values)
        values_of(topic)
        return self._topics.create(topic, settings or {}, own=own)

    def change_schema(self, name: str, schema: str | Schema) -> Topic:
        """Adds nullable columns at the end of a topic's schema; every other change is refused."""
        return self._topics.change(name, schema_given(schema))

    def topics(self) -> list[Topic]:
        return sorted(self.facts.topics().values(), key=lambda topic: topic.name)

    def topic(self, name: str) -> Topic:
        return self.facts.topic(name)

    def describe(self, name: str) -> KafkaDescription:
        topic, born = self.facts.topic_and_birth(name)
        every = range(topic.partitions)
        begins, ends = self.client.begins(self._named(name), every), self.client.ends(self._named(name), every)
        newest = self.client.offsets(self._named(name), every, OffsetSpec.max_timestamp())
        partitions = [
            KafkaPartition(p, begins[p], ends[p], instant(newest[p][1] * 1000 if newest[p][1] >= 0 else born))
            for p in every
        ]
        return KafkaDescription(topic, self._named(name), tuple(partitions))

    def begins(self, name: str) -> tuple[int, ...]:
        """The first offset of each partition that Kafka still has."""
        return tuple(self.client.begins(self._named(name), range(self.topic(name).partitions)))

    def ends(self, name: str) -> tuple[int, ...]:
        """Of each partition an offset behind all committed records, where the next one lands at the earliest."""
        return tuple(self.client.ends(self._named(name), range(self.topic(name).partitions)))

    def _named(self, topic: str) -> str:
        return self.prefix + topic

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
        """Appends records of one topic. See `append_all`."""
        messages = self._messages(self.topic(topic), rows, next(self._turns), partition)
        return self._append(messages, Draft((), producer, sequence, expect=tuple(expect)))

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
        """Appends records of several topics in one transaction.

        A pair of `producer` and `sequence` that was appended before is not appended again: the earlier answer is
        given, marked `repeated`. Where a condition of `expect` does not hold, `ConditionFailed` is raised and nothing
        is kept. `note` is kept with the commit of the producer. Times outside of the years 1 to 9999 have no text, and
        are refused, with `far_times` too.
        """
        turn = next(self._turns)
        messages = [
            message
            for name, each in rows.items()
            for message in self._messages(self.topic(name), each, turn, None, far_times=far_times)
        ]
        return self._append(messages, Draft((), producer, sequence, note or {}, tuple(expect)))

    def raise_epoch(self, name: str) -> int:
        """A new, larger value of a named epoch: appends that expect an older one are refused from now on."""
        check_name("an epoch", name)
        raised: list[int] = []

        def fact(_: object) -> list[Outgoing]:
            raised.append(self.facts.epoch(name) + 1)
            return self.facts.epoch_messages(name, raised[-1])

        self.appending.decide(f"epoch.{name}", fact)
        return raised[-1]

    def epoch(self, name: str) -> int:
        return self.facts.epoch(name)

    def last(self, producer: str) -> Commit | None:
        """The newest commit of a producer."""
        commits = self.facts.commits(producer)
        return commits[-1] if commits else None

    def _messages(
        self, topic: Topic, rows: Rows, turn: int, partition: int | None, *, far_times: bool = False
    ) -> list[Outgoing]:
        if partition is not None:
            check_partition(topic, partition)
        columns, own = columns_of(topic, rows, far_times=far_times), topic.name in self.facts.own()
        try:
            return list(outgoing(columns, self._named(topic.name), partition=partition, turn=None if own else turn))
        except (ValueError, OverflowError) as error:  # only columns with `far_times` have such
            raise LogError(
                f'a value of topic "{topic.name}" cannot be written to Kafka',
                detail=f"{error}.",
                hint="Times have to be in the years 1 to 9999.",
            ) from error

    def _append(self, messages: Sequence[Outgoing], draft: Draft) -> KafkaAppended:
        """The draft says whose append it is, checked; its records are the messages."""
        if not messages and draft.producer is None and not draft.punctuation:
            raise LogError(
                "an append needs records", hint="An empty append can be made only under a producer and sequence."
            )
        if draft.note and draft.producer is None:
            raise LogError("a note needs a producer", hint="On Kafka it is kept with the producer's commit.")
        ends, epoch = self._conditions(draft.expect, messages)
        topics = {message.topic.removeprefix(self.prefix) for message in messages}
        own = {name: self.facts.topic(name) for name in topics & self.facts.own()}
        if own and draft.producer is not None and draft.sequence is not None:
            messages = numbered(messages, draft.producer, draft.sequence, draft.note)
        return self.appending.append(
            Order(messages, draft.producer, draft.sequence, draft.note, ends, epoch, own, draft.punctuation)
        )

    def commit(self, draft: Draft) -> KafkaAppended:
        """Says what a draft without records says, in the journal."""
        return self._append((), draft)

    def _conditions(
        self, expect: Sequence[Condition], messages: Sequence[Outgoing]
    ) -> tuple[tuple[EndOffset, ...], Epoch | None]:
        ends = tuple(each for each in expect if isinstance(each, EndOffset))
        epochs = [each for each in expect if isinstance(each, Epoch)]
        for each in ends:
            check_partition(self.topic(each.topic), each.partition)
            if not any(m.topic == self._named(each.topic) and m.partition == each.partition for m in messages):
                raise LogError(
                    f'where partition {each.partition} of "{each.topic}" ends cannot be a condition of this append',
                    detail="Kafka tells only where records of the append itself land.",
                    hint="Choose the partition of the append, or expect an epoch.",
                )
        if len(epochs) > 1:
            raise LogError("an append to Kafka can expect one epoch", detail="It is one transaction, of one owner.")
        return ends, epochs[0] if epochs else None

    # The journal

    def journal_end(self) -> int:
        """Where the journal ends, with all that was written before this was asked either committed or gone."""
        return self.client.settled_end(self.facts.journal, 0)

    def end_open(self, names: Sequence[str], *, after: timedelta) -> None:
        """Takes these transactional ids over if the journal is held up for that long: their owners may be dead."""
        written = self.client.offsets(self.facts.journal, [0], OffsetSpec.latest(), committed=False)[0][0]
        until = time.monotonic() + after.total_seconds()
        while self.client.ends(self.facts.journal, [0])[0] < written:
            if time.monotonic() > until:
                for name in names:
                    writer = self.appending.writer(name)
                    with writer.lock, suppress(Overtaken):
                        writer.take_over()
                        writer.let_go()
                return
            time.sleep(PAUSE_SECONDS)

    # Reading

    def batches(
        self,
        topic: str,
        *,
        partition: int | None = None,
        start: Start = 0,
        end: Start | None = None,
        columns: Sequence[str] | None = None,
        bad: Bad = refuse,
    ) -> Iterator[pa.RecordBatch]:
        """Records from `start` up to `end` (default: all that is committed now) as Arrow batches, with `_partition`,
        `_offset`, `_appended_at`. Messages that are no records of the topic are given to `bad`, which raises them
        unless it is another.
        """
        wanted = self._range(topic, partition, start, end)
        names = full_schema(wanted.topic).names
        for column in columns or ():
            if column not in names:
                wanted.topic.schema.column(column)  # raises, naming the column
        chosen = names if columns is None else list(columns)
        return (batch.select(chosen) for batch in batches(self.client, wanted, bad))

    def read(
        self,
        topic: str,
        *,
        partition: int | None = None,
        start: Start = 0,
        end: Start | None = None,
        bad: Bad = refuse,
    ) -> Iterator[KafkaEntry]:
        """Records from an offset or an append time, one partition after the other. See `batches`."""
        wanted = self._range(topic, partition, start, end)
        return (entry for batch in batches(self.client, wanted, bad) for entry in entries_of(wanted.topic, batch))

    def tail(
        self,
        topic: str,
        *,
        partition: int | None = None,
        start: Start | None = None,
        stop: Callable[[], bool] = lambda: False,
        bad: Bad = refuse,
    ) -> Iterator[KafkaEntry]:
        """Records as they come, from `start` or from now on, until `stop` says so."""
        wanted = self._range(topic, partition, start or 0, None)
        if start is None:
            wanted = replace(wanted, starts=wanted.ends)
        chosen = range(wanted.topic.partitions) if partition is None else [partition]
        begin = {each: wanted.starts[each] for each in chosen}
        return followed(self.client, wanted.name, begin, lambda: self.topic(topic), stop=stop, bad=bad)

    def _range(self, name: str, partition: int | None, start: Start, end: Start | None) -> Range:
        ends = self.ends(name)
        topic = self.topic(name)  # after the ends: it has every column that records before them have
        if partition is not None:
            check_partition(topic, partition)
        starts = offsets_at(self.client, topic, self._named(name), start, partition)
        if end is not None:
            ends = tuple(map(min, ends, offsets_at(self.client, topic, self._named(name), end, partition)))
        chosen = [partition in (None, p) for p in range(topic.partitions)]
        wanted = Range(
            topic, self._named(name), tuple(starts), tuple(e if c else 0 for e, c in zip(ends, chosen, strict=True))
        )
        check_kept(self.client, wanted)
        return wanted
