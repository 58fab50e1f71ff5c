"""Feeds: the records of a topic, and how far they have gone over, remembered by the log.

On the embedded log that is a group of readers: `penstock log lag` shows it, members share partitions, retention can
wait for it. On Kafka it is a producer for each partition, whose sequence is the next offset; there is one bridge of a
name at a time.
"""

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from datetime import timedelta
from typing import Protocol

from penstock.errors import BadRecord, CaptureError, ConditionFailed, Fenced
from penstock.log import Epoch, Log
from penstock.log.consumers import Terms
from penstock.log.protocol import AnyEntry, AnyLog

WAIT = timedelta(milliseconds=100)
FOR_EVER = timedelta(days=365)


class Feed(Protocol):
    def poll(self, limit: int) -> Sequence[AnyEntry]:
        """The next records, at most so many; none if none come for a moment."""

    def commit(self) -> bool:
        """All that was polled has gone over; False if somebody else will do a part of it again."""

    def is_over(self) -> bool:
        """Whether all records that are there have gone over, as the log knows it."""

    def close(self) -> None: ...


class GroupFeed:
    """As a member of a group."""

    def __init__(self, log: Log, group: str, topic: str, session: timedelta) -> None:
        self._group, self._topic = log.group(group), topic
        terms = Terms(session=session, patience=FOR_EVER)  # while the broker is away, nothing is polled
        self._member = self._group.join(topic, terms=terms)

    def poll(self, limit: int) -> Sequence[AnyEntry]:
        return self._member.poll(limit, wait=WAIT)

    def commit(self) -> bool:
        with suppress(Fenced):
            self._member.commit()
            return True
        return False

    def is_over(self) -> bool:
        """Others may have a part of the partitions: one that was killed has it until its session ends."""
        return all(lag.records == 0 for lag in self._group.lag() if lag.topic == self._topic)

    def close(self) -> None:
        self._member.leave()


class OnKafka(AnyLog, Protocol):
    """A log that tells of messages which are no records."""

    def read(  # type: ignore[override]
        self, topic: str, *, partition: int, start: int, end: int, bad: Callable[[BadRecord], None]
    ) -> Iterator[AnyEntry]: ...


class ProducerFeed:
    """By producers and sequences, which every log has."""

    def __init__(self, log: OnKafka, name: str, topic: str, bad: Callable[[BadRecord], None]) -> None:
        self._log = log
        self._name = name
        self._topic = topic
        self._bad = bad
        epoch = f"amqp {name}"
        self._owner = Epoch(epoch, log.raise_epoch(epoch))
        self._done = [self._last(part, begin) for part, begin in enumerate(log.begins(topic))]
        self._next = list(self._done)
        self._turn = -1

    def poll(self, limit: int) -> Sequence[AnyEntry]:
        """From every partition in turn, so that none is left behind. Where one cannot be read, none counts as read."""
        found: list[AnyEntry] = []
        ends, after = self._log.ends(self._topic), list(self._next)
        self._turn += 1
        for at in range(len(ends)):
            part = (self._turn + at) % len(ends)
            start = after[part]
            if start < ends[part] and len(found) < limit:
                until = min(ends[part], start + limit - len(found))
                found += self._log.read(self._topic, partition=part, start=start, end=until, bad=self._bad)
                after[part] = until
        self._next = after
        if not found:
            time.sleep(WAIT.total_seconds())
        return found

    def commit(self) -> bool:
        for part, after in enumerate(self._next):
            if after == self._done[part]:
                continue
            try:
                self._log.append_all({}, producer=self._producer(part), sequence=after, expect=[self._owner])
            except ConditionFailed as error:
                raise CaptureError(
                    f'another bridge of the name "{self._name}" has taken over', detail=error.detail, hint="Stop it."
                ) from error
            self._done[part] = after
        return True

    def is_over(self) -> bool:
        return all(map(int.__ge__, self._done, self._log.ends(self._topic)))

    def close(self) -> None:
        return

    def _last(self, part: int, begin: int) -> int:
        last = self._log.last(self._producer(part))
        return begin if last is None or last.sequence is None else last.sequence

    def _producer(self, part: int) -> str:
        return f"amqp {self._name} {self._topic}/{part}"
