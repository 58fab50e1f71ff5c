"""Appending: an append is one transaction of Kafka, made once, under the conditions that it names.

Whose transaction it is follows from what is promised: that of the epoch it expects, so that a newer owner fences it;
else that of its producer, so that two of one name take turns; else that of this open log. An append that was cut off is
looked for before it is made again.
"""

import time
import uuid
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from itertools import groupby
from threading import Lock
from typing import Any

from penstock.errors import LogError
from penstock.log.admission import end_passed, epoch_over
from penstock.log.frame import Header, Punctuation
from penstock.log.kafka.client import Client
from penstock.log.kafka.facts import REMEMBERED, Facts
from penstock.log.kafka.journal import journal_message, unplaced
from penstock.log.kafka.messages import Outgoing
from penstock.log.kafka.records import Commit, KafkaAppended
from penstock.log.kafka.transaction import Again, Finish, Landed, Overtaken, Undecided, Writer
from penstock.log.records import EndOffset, Epoch, Span, instant
from penstock.log.topic import Topic

VISIBLE_SECONDS = 5.0
"""For so long an append waits until readers see it: other transactions in its partitions may be open still."""
POLL_SECONDS = 0.001
PAUSE_SECONDS = 0.01


@dataclass(frozen=True)
class Order:
    """What is to be appended. The names in `expect` are the log's, those in `messages` are Kafka's."""

    messages: Sequence[Outgoing]
    producer: str | None = None
    sequence: int | None = None
    note: Mapping[str, Any] = field(default_factory=dict)
    ends: tuple[EndOffset, ...] = ()
    epoch: Epoch | None = None
    own: Mapping[str, Topic] = field(default_factory=dict)
    """Those of its topics whose records are in the journal by this very append."""
    punctuation: tuple[Punctuation, ...] = ()

    @property
    def is_journaled(self) -> bool:
        """Whether a frame of the journal goes with it. Records of other topics are admitted to the order later."""
        return bool(self.own or self.punctuation or self.note or not self.messages)


class Appending:
    def __init__(self, client: Client, facts: Facts, prefix: str) -> None:
        self._client = client
        self._facts = facts
        self._prefix = prefix
        self._own = f"log.{uuid.uuid4().hex}"
        self._writers: dict[str, Writer] = {}
        self._lock = Lock()

    def close(self) -> None:
        with self._lock:
            writers, self._writers = self._writers, {}
        for writer in writers.values():
            with writer.lock:
                writer.let_go()

    def writer(self, name: str) -> Writer:
        """The writer of a transactional id of this log."""
        self._client.check_open()
        with self._lock:
            identity = f"{self._prefix}penstock.{name}"
            return self._writers.setdefault(name, Writer(self._client, identity))

    def append(self, order: Order) -> KafkaAppended:
        if order.epoch is not None:
            writer = self.writer(f"epoch.{order.epoch.name}")
        else:
            writer = self.writer(self._own if order.producer is None else f"producer.{order.producer}")
        with writer.lock:
            return self._tried(writer, order, lambda: self._attempt(writer, order))

    def decide(self, name: str, attempt: Finish) -> None:
        """A transaction of a fact alone, decided by whoever has the id: `attempt` looks at what is there and gives
        what is to be written.
        """
        writer, nothing = self.writer(name), Order(())

        def fresh() -> KafkaAppended:
            writer.take_over()
            return self._committed(writer, nothing, attempt)

        with writer.lock:
            self._tried(writer, nothing, fresh)

    def _tried(self, writer: Writer, order: Order, attempt: Callable[[], KafkaAppended]) -> KafkaAppended:
        """Tries until it is done, refused, or patience is over."""
        began = time.monotonic()
        while True:
            tried = time.monotonic()
            try:
                try:
                    return attempt()
                except Undecided as undecided:
                    writer.take_over()
                    if undecided.landed and self._is_kept(undecided.landed[0]):
                        return self._appended(order, undecided.landed)
            except (Overtaken, Again) as failure:
                if time.monotonic() - began > self._client.waiting.patience.total_seconds():
                    raise LogError("Kafka does not take the append", detail=f"{failure}.") from failure
                time.sleep(PAUSE_SECONDS)
            self._tell_if_long(time.monotonic() - tried, len(order.messages))

    def _tell_if_long(self, seconds: float, records: int) -> None:
        """An append that takes longer than a transaction may is given up each time that it is tried."""
        most = self._client.transaction_seconds
        if seconds >= most:
            self._client.waiting.say(
                f"an append of {records:,} records was given up after {seconds:.0f} s and is tried again: the brokers "
                f"give a transaction {most:g} s; transaction.timeout.ms in the settings of the client says so"
            )

    def _attempt(self, writer: Writer, order: Order) -> KafkaAppended:
        self._check_epoch(order)  # before the id is taken: who is too late must not disturb the owner
        if not writer.is_owner:
            writer.take_over()
            self._check_epoch(order)
        before = self._facts.commits(order.producer) if order.producer is not None else []
        if earlier := _earlier(order, before):
            return earlier
        self._check_ends(order)
        return self._committed(writer, order, lambda landed: self._finished(order, landed, before))

    def _committed(self, writer: Writer, order: Order, finish: Finish) -> KafkaAppended:
        landing = writer.commit(order.messages, finish)
        until = time.monotonic() + VISIBLE_SECONDS
        with suppress(LogError):  # brokers that are away again change nothing: it is committed
            self._await_visible(landing.messages, until)
            for message, landed in landing.facts:
                self._facts.take(message, landed.offset, self._await_visible([landed], until))
        entries = [landed.offset for message, landed in landing.facts if message.topic == self._facts.journal]
        return replace(self._appended(order, landing.messages), entry=entries[-1] if entries else None)

    def _finished(self, order: Order, landed: Sequence[Landed], before: Sequence[Commit]) -> list[Outgoing]:
        """Checks what only the offsets tell; the commit of a producer goes with its messages."""
        for wanted in order.ends:
            found = min(each.offset for each in landed if self._is_in(each, wanted))
            if found != wanted.offset:
                raise end_passed(wanted, found)
        done = self._appended(order, landed)
        facts = [self._journaled(order, done)] if order.is_journaled else []
        if order.producer is None or order.sequence is None:
            return facts
        return [self._facts.commit_message(before, Commit(order.producer, order.sequence, done, order.note)), *facts]

    def _journaled(self, order: Order, done: KafkaAppended) -> Outgoing:
        blocks = tuple(unplaced(span, order.own[span.topic]) for span in done.spans if span.topic in order.own)
        said = Header(0, 0, 0, blocks, order.producer, order.sequence, order.note, order.punctuation)
        return journal_message(self._prefix, said)

    def _check_epoch(self, order: Order) -> None:
        if order.epoch is not None:
            found = self._facts.epoch(order.epoch.name)
            if found != order.epoch.value:
                raise epoch_over(order.epoch, found)

    def _check_ends(self, order: Order) -> None:
        for wanted in order.ends:
            (found,) = self._client.ends(self._prefix + wanted.topic, [wanted.partition])
            if found != wanted.offset:
                raise end_passed(wanted, found)

    def _is_in(self, landed: Landed, wanted: EndOffset) -> bool:
        return landed.topic == self._prefix + wanted.topic and landed.partition == wanted.partition

    def _is_kept(self, landed: Landed) -> bool:
        """Whether the message is committed; its transaction has been ended."""
        self._await_visible([landed], time.monotonic() + self._client.waiting.patience.total_seconds())
        where = (landed.topic, landed.partition, landed.offset, landed.offset + 1)
        return any(True for _ in self._client.messages(*where))

    def _await_visible(self, landed: Sequence[Landed], until: float) -> int:
        """Returns when readers see the messages: the mark of the commit lies behind the last of each partition; or
        when it is too late. The end of the last partition that was looked at.
        """
        last: dict[str, dict[int, int]] = {}
        for each in landed:
            offsets = last.setdefault(each.topic, {})
            offsets[each.partition] = max(each.offset, offsets.get(each.partition, 0))
        ends = [0]
        for topic, offsets in last.items():
            ends = self._client.ends(topic, list(offsets))
            while not all(map(_is_before, offsets.values(), ends)) and time.monotonic() < until:
                time.sleep(POLL_SECONDS)
                ends = self._client.ends(topic, list(offsets))
        return ends[-1]

    def _appended(self, order: Order, landed: Sequence[Landed]) -> KafkaAppended:
        at = min((each.at for each in landed), default=time.time_ns() // 1_000_000)
        topics = dict.fromkeys(message.topic for message in order.messages)
        return KafkaAppended(instant(at * 1000), tuple(spans_of(landed, list(topics), self._prefix)))


def _is_before(offset: int, end: int) -> bool:
    """Whether a message and the mark of its commit lie before the end."""
    return offset + 2 <= end


def spans_of(landed: Sequence[Landed], topics: Sequence[str], prefix: str) -> list[Span]:
    """Runs of offsets, in the order of these topics: another's messages may lie in between."""
    rank = {topic: at for at, topic in enumerate(topics)}
    ordered = sorted(landed, key=lambda each: (rank[each.topic], each.partition, each.offset))
    runs: list[Span] = []
    for (topic, partition), found in groupby(ordered, key=lambda each: (each.topic, each.partition)):
        offsets = [each.offset for each in found]
        for _, run in groupby(enumerate(offsets), key=lambda pair: pair[1] - pair[0]):
            members = [offset for _, offset in run]
            runs.append(Span(topic.removeprefix(prefix), partition, members[0], len(members)))
    return runs


def _earlier(order: Order, commits: Sequence[Commit]) -> KafkaAppended | None:
    """The answer to a sequence that its producer has used before."""
    if not commits or order.sequence is None or order.sequence > commits[-1].sequence:
        return None
    for commit in commits:
        if commit.sequence == order.sequence:
            return commit.appended
    if len(commits) == REMEMBERED and order.sequence < commits[0].sequence:
        raise LogError(
            f'sequence {order.sequence} of producer "{order.producer}" is too old to know',
            detail=f"Its last {REMEMBERED} commits are known; the oldest has sequence {commits[0].sequence}.",
            hint="Sequences only rise.",
        )
    raise LogError(
        f'producer "{order.producer}" went past sequence {order.sequence} without using it',
        detail=f"Its last sequence is {commits[-1].sequence}.",
        hint="Sequences only rise.",
    )
