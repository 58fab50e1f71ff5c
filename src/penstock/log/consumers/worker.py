"""A worker of a queue: it takes messages, each of which is then with nobody else, and settles them one by one.

Every message is delivered at least once. One that its worker has not settled within the visibility time, because it
died or was slow, is delivered again. When `acknowledge` returns, no death of a process brings the message back; a power
failure may bring back what was acknowledged since the worker last took messages, or since `sync`.
"""

import os
import socket
import time
import uuid
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import timedelta
from itertools import groupby
from threading import RLock
from types import TracebackType
from typing import Self

import apsw

from penstock.errors import Fenced, LogError
from penstock.log.consumers import acks, deliveries
from penstock.log.consumers.acks import Ack, Acks
from penstock.log.consumers.dead import bury
from penstock.log.consumers.deliveries import Declared, Delivery
from penstock.log.consumers.missing import present
from penstock.log.consumers.site import Site
from penstock.log.consumers.terms import MICROSECOND, check_limit
from penstock.log.records import Entry

POLL_SECONDS = 0.005
MARGIN = timedelta(seconds=1)
MOST_PENDING = 1000
"""Acknowledgements that are not taken into the facts yet."""


@dataclass(frozen=True)
class Message:
    """A record that is with this worker, and how often it was delivered, this time included."""

    entry: Entry
    deliveries: int
    ack: Ack = field(repr=False)
    worker: "Worker" = field(repr=False)

    def acknowledge(self) -> None:
        """It is done."""
        self.worker.acknowledge(self)

    def release(self, *, after: timedelta = timedelta(0)) -> None:
        """It is delivered again: now, or later."""
        self.worker.release(self, after=after)

    def reject(self, reason: str) -> None:
        """It is not delivered again: it goes to the dead letters."""
        self.worker.reject(self, reason)

    def extend(self, by: timedelta) -> None:
        """It is with this worker for so long from now on."""
        self.worker.extend(self, by)


class Worker:
    """`Queue.worker` makes it; use it in a `with`, or call `close`. May be used by any number of threads."""

    def __init__(self, at: Site, queue: Declared) -> None:
        self.name = f"{socket.gethostname()}-{os.getpid()}-{uuid.uuid4().hex[:8]}"
        self.queue = queue.name
        self._at = at
        self._declared = queue
        self._acks = Acks(at.source.folder, queue.name, self.name)
        self._open: dict[Ack, int] = {}
        """What is with this worker, and until when."""
        self._lock = RLock()
        self._closed = False
        self._turn = 0
        with at.facts.writing() as db:
            acks.tidy(db, at.source.folder)

    def take(self, limit: int = 1, *, wait: timedelta = timedelta(0)) -> list[Message]:
        """The next messages, at most `limit`, as soon as there are any; none if none come while it waits."""
        check_limit(limit)
        until = time.monotonic() + wait / timedelta(seconds=1)
        while True:
            seen = self._news()
            with self._lock:
                found = self._take(limit)
            if found or time.monotonic() >= until:
                return found
            while self._news() == seen and not self._is_due() and time.monotonic() < until:
                time.sleep(POLL_SECONDS)

    def messages(self, *, ahead: int = 100, stop: Callable[[], bool] = lambda: False) -> Iterator[Message]:
        """Messages as they come, taken `ahead` of their use, until `stop` says so. Those that were taken and not given
        out are given back."""
        taken: list[Message] = []
        try:
            while not stop():
                taken = taken or self.take(ahead, wait=timedelta(milliseconds=100))[::-1]
                if taken:
                    yield taken.pop()
        finally:
            self._give_back([message.ack for message in taken])

    def sync(self) -> None:
        """What was acknowledged until now survives a power failure too."""
        with self._lock, self._settling():
            pass

    def close(self) -> None:
        """Gives back what is still with this worker."""
        with self._lock:
            if self._closed:
                return
            self._closed = True
            with self._settling() as db:
                for ack in self._open:
                    deliveries.give_back(db, self.queue, ack, due=self._at.clock())
            with self._at.facts.writing() as db:
                acks.tidy(db, self._at.source.folder)
            self._acks.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    # Settling

    def acknowledge(self, message: Message) -> None:
        with self._lock:
            due = self._check_open(message)
            if self._at.clock() < due - min(MARGIN // MICROSECOND, self._declared.visibility // 4):
                self._acks.write(message.ack)  # nobody can have been given it
                del self._open[message.ack]
                if len(self._acks.pending) >= MOST_PENDING:
                    self.sync()
            else:
                self._settle(message, lambda db: deliveries.settle(db, self.queue, message.ack))

    def release(self, message: Message, *, after: timedelta) -> None:
        due = self._at.clock() + max(0, after // MICROSECOND)
        self._settle(message, lambda db: deliveries.give_back(db, self.queue, message.ack, due=due))

    def reject(self, message: Message, reason: str) -> None:
        self._settle(message, lambda db: deliveries.doom(db, self.queue, message.ack, reason))
        bury(self._at, self._declared)

    def extend(self, message: Message, by: timedelta) -> None:
        due = self._at.clock() + by // MICROSECOND
        with self._lock:
            self._settle(message, lambda db: deliveries.prolong(db, self.queue, message.ack, due=due))
            self._open[message.ack] = due

    def _settle(self, message: Message, how: Callable[[apsw.Connection], bool]) -> None:
        with self._lock:
            self._check_open(message)
            with self._settling() as db:
                ours = how(db)
            del self._open[message.ack]
        if not ours:
            raise Fenced(
                f'a message of queue "{self.queue}" is not with this worker any more',
                detail=f"It is offset {message.ack.offset} of partition {message.ack.partition}. The visibility time, "
                f"{timedelta(microseconds=self._declared.visibility)}, has passed, and it was delivered again.",
                hint="Extend messages that take long, or give the queue a longer visibility time.",
            )

    def _check_open(self, message: Message) -> int:
        if self._closed:
            raise LogError(f'this worker of queue "{self.queue}" is closed', hint="Make another one.")
        if message.ack not in self._open:
            raise LogError(
                f'a message of queue "{self.queue}" was settled before',
                detail=f"It is offset {message.ack.offset} of partition {message.ack.partition}.",
                hint="Acknowledge, release or reject a message once.",
            )
        return self._open[message.ack]

    def _give_back(self, unused: Sequence[Ack]) -> None:
        """As if they had never been taken."""
        with self._lock:
            if unused and not self._closed:
                with self._settling() as db:
                    for ack in unused:
                        deliveries.give_back(db, self.queue, ack, due=self._at.clock(), uncounted=True)
                for ack in unused:
                    self._open.pop(ack, None)

    # Taking

    def _news(self) -> object:
        return self._at.source.mark(), self._at.facts.version

    def _is_due(self) -> bool:
        with self._at.facts.reading() as db:
            due = deliveries.next_due(db, self.queue)
        return due is not None and due <= self._at.clock()

    def _take(self, limit: int) -> list[Message]:
        if self._closed:
            raise LogError(f'this worker of queue "{self.queue}" is closed', hint="Make another one.")
        if self._is_due():
            bury(self._at, self._declared)
        if not self._is_due() and not self._is_fresh():
            if self._acks.pending:
                self.sync()
            return []
        with self._settling() as db:
            given = self._given(db, limit)
        self._open |= {each.ack: each.due for each in given}
        try:
            found = [Message(entry, each.delivered, each.ack, self) for each, entry in self._entries(given)]
        except BaseException:
            self._give_back([each.ack for each in given])
            raise
        self._pass_over({each.ack for each in given} - {message.ack for message in found})
        return found

    def _pass_over(self, absent: set[Ack]) -> None:
        """Compaction has taken them: newer records of their keys stand for them."""
        for ack in absent:
            self._acks.write(ack)
            del self._open[ack]

    def _is_fresh(self) -> bool:
        with self._at.facts.reading() as db:
            return deliveries.fronts(db, self.queue) != list(self._at.source.ends(self._declared.topic))

    def _given(self, db: apsw.Connection, limit: int) -> list[Delivery]:
        """What has waited longest comes first, then what is new, from every partition in turn."""
        now, queue = self._at.clock(), self._declared
        acks.take_in_late(db, self._at.source.folder, queue.name, now)
        fronts = present(db, self._at.source, queue)
        lease = deliveries.new_lease(db, queue.name)
        found = deliveries.redelivered(db, queue, self.name, lease, now=now, limit=limit)
        left, fresh = limit - len(found), {}
        ends = self._at.source.ends(queue.topic)
        self._turn += 1
        for at in range(len(ends)):
            part = (self._turn + at) % len(ends)
            fresh[part] = range(fronts[part], min(ends[part], fronts[part] + left))
            left -= len(fresh[part])
        return found + deliveries.delivered(db, queue, self.name, lease, now=now, offsets=fresh)

    def _entries(self, given: Sequence[Delivery]) -> Iterator[tuple[Delivery, Entry]]:
        """Neighbours are read together."""
        order = sorted(given, key=lambda each: (each.ack.partition, each.ack.offset))
        runs = groupby(enumerate(order), lambda found: (found[1].ack.partition, found[1].ack.offset - found[0]))
        for (partition, _), run in runs:
            mine = [each for _, each in run]
            start, end = mine[0].ack.offset, mine[-1].ack.offset + 1
            entries = self._at.source.read(self._declared.topic, partition=partition, start=start, end=end)
            there = {entry.offset: entry for entry in entries}
            yield from ((each, there[each.ack.offset]) for each in mine if each.ack.offset in there)

    @contextmanager
    def _settling(self) -> Iterator[apsw.Connection]:
        """A transaction that also takes in what this worker has acknowledged."""
        with self._at.facts.writing() as db:
            self._acks.take_in(db)
            yield db
        self._acks.clear()
