"""Consuming: the messages of a queue become records of a topic, each once.

Messages are appended durably, in one transaction with their ids and with the dead letters among them, and are
acknowledged after that. What RabbitMQ delivers again, after a kill at any point or because a publisher has sent it
twice, is known by its id and only acknowledged. A topic that is full is waited for; what one leaves out that is bounded
so is acknowledged too, and counted. One bridge at a time has the queue; one that was overtaken can append nothing any
more.
"""

import time
from collections.abc import Sequence
from dataclasses import dataclass

import amqp

from penstock.capture.amqp.address import Address
from penstock.capture.amqp.decoding import Decode, decoder
from penstock.capture.amqp.letters import declare_letters
from penstock.capture.amqp.link import Gone, Link
from penstock.capture.amqp.memory import Memory, rows_of
from penstock.capture.amqp.sorting import Rules, Sorted, sort
from penstock.capture.amqp.tally import Say, Stop, Tally, Told
from penstock.capture.amqp.waiting import Patience, pause
from penstock.errors import CaptureError, ConditionFailed, TopicFull
from penstock.log import Epoch, Topic
from penstock.log.columns import Rows
from penstock.log.protocol import AnyLog

PREFETCH = 2_000
AT_ONCE = 1_000
BYTES_AT_ONCE = 32 << 20
IDLE_SECONDS = 0.1
FULL_SECONDS = 1.0


@dataclass(frozen=True)
class Intake:
    """Which queue goes into which topic, how its messages are told apart, and how many of them are `remembered`."""

    queue: str
    topic: str
    name: str
    rules: Rules
    remembered: int = 200_000
    unknown_fields: bool = False

    def __post_init__(self) -> None:
        if self.remembered < 2 * PREFETCH:
            raise CaptureError(
                f"{self.remembered} remembered ids are too few",
                detail=f"RabbitMQ may deliver {PREFETCH:,} messages again at once.",
                hint=f"Choose {2 * PREFETCH} or more.",
            )


@dataclass
class _Owning:
    """What whoever has the queue works with."""

    epoch: Epoch
    letters: str
    memory: Memory


class Consuming:
    def __init__(self, log: AnyLog, address: Address, intake: Intake, *, say: Say, stop: Stop, told: Told) -> None:
        self._log = log
        self._address = address
        self._intake = intake
        self._say, self._stop, self._told = say, stop, told
        self._patience = Patience(address, say, stop)
        log.topic(intake.topic)  # refuses one that is not there
        self._owning: _Owning | None = None
        self._decoding: tuple[Topic, Decode] | None = None
        self.tally = Tally()

    def run(self, *, once: bool = False) -> None:
        """Until `stop` says so; with `once`, until the queue is empty."""
        while not self._stop():
            try:
                with Link(self._address, self._say) as link:
                    if self._serve(link, once=once):
                        return
            except Gone as gone:
                self._patience.wait(str(gone))

    def _serve(self, link: Link, *, once: bool) -> bool:
        """True when the queue is empty and that is the end."""
        waiting: list[amqp.Message] = []
        link.waiting(self._intake.queue)
        link.consume(self._intake.queue, PREFETCH, waiting.append)
        self._patience.there()
        self._take_over()
        while not self._stop():
            self._gather(link, waiting)
            if waiting:
                taken = waiting[:AT_ONCE]
                self._take_in(link, taken)
                del waiting[: len(taken)]
            elif once and not link.waiting(self._intake.queue) and not waiting:
                return True
        return False

    def _take_over(self) -> None:
        """From now on only this bridge appends, and it knows all that was appended before."""
        name = f"amqp {self._intake.name}"
        epoch = Epoch(name, self._log.raise_epoch(name))
        if self._owning is None:
            letters = declare_letters(self._log, self._intake.name)
            self._owning = _Owning(epoch, letters, Memory(self._log, self._intake.name, self._intake.remembered))
        self._owning.epoch = epoch
        self._owning.memory.refresh()

    def _gather(self, link: Link, waiting: list[amqp.Message]) -> None:
        """Waits for a message, and takes in what comes with it."""
        size, seen = sum(len(each.body) for each in waiting), len(waiting)
        came = link.pump(0 if waiting else IDLE_SECONDS)
        while came and len(waiting) < AT_ONCE and size < BYTES_AT_ONCE:
            size, seen = size + sum(len(each.body) for each in waiting[seen:]), len(waiting)
            came = link.pump(0)

    def _take_in(self, link: Link, messages: Sequence[amqp.Message]) -> None:
        """All of them; fewer at a time while the topic has no room for so many."""
        done, most, said = 0, len(messages), False
        while done < len(messages):
            taken = messages[done : done + most]
            try:
                self._take(link, taken)
                done, most = done + len(taken), 2 * most
            except TopicFull as error:
                if len(taken) == 1:
                    if not said:
                        self._say(f"{error.primary}: waiting for its readers. {error.detail}")
                    said = True
                    self._hold(link)
                most = max(1, len(taken) // 2)

    def _take(self, link: Link, messages: Sequence[amqp.Message]) -> None:
        assert self._owning is not None
        memory, (topic, decode) = self._owning.memory, self._decoder()
        found = sort(messages, topic, decode, memory=memory, rules=self._intake.rules)
        rows: dict[str, Rows] = {}
        if found.rows is not None:
            rows[self._intake.topic] = found.rows
        if found.letters:
            rows[self._owning.letters] = found.letters
        if found.ids:
            rows[memory.topic] = rows_of(found.ids)
        there = self._append(rows, self._owning.epoch) if rows else 0
        memory.add(found.ids.items())
        link.acknowledge(messages[-1].delivery_info["delivery_tag"])
        self._count(found, there)

    def _append(self, rows: dict[str, Rows], epoch: Epoch) -> int:
        """How many records the topic has got."""
        try:
            done = self._log.append_all(rows, expect=[epoch])
        except ConditionFailed as error:
            raise CaptureError(
                f'another bridge has taken over queue "{self._intake.queue}"', detail=error.detail, hint="Stop it."
            ) from error
        return sum(span.count for span in done.spans if span.topic == self._intake.topic)

    def _hold(self, link: Link) -> None:
        """Waits for room; the link is kept alive meanwhile."""
        until = time.monotonic() + FULL_SECONDS
        while time.monotonic() < until and not self._stop():
            link.pump(IDLE_SECONDS)
            pause(IDLE_SECONDS, self._stop)
        if self._stop():
            raise Gone("stopping")

    def _decoder(self) -> tuple[Topic, Decode]:
        """For the columns that the topic has by now."""
        topic = self._log.topic(self._intake.topic)
        if self._decoding is None or self._decoding[0].schema != topic.schema:
            self._decoding = topic, decoder(topic, unknown_fields=self._intake.unknown_fields)
        return self._decoding

    def _count(self, found: Sorted, there: int) -> None:
        if found.nameless and not self.tally.nameless and not self._intake.rules.strict:
            self._say(
                "Messages without a message-id come: one that RabbitMQ delivers again is appended again. "
                "--require-id makes dead letters of them."
            )
        self.tally.messages += there
        self.tally.dropped += (0 if found.rows is None else len(found.rows)) - there
        self.tally.letters += len(found.letters)
        self.tally.repeated += found.repeated
        self.tally.nameless += found.nameless
        self._told(self.tally)
