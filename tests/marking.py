"""A log that many write to, in any order, and what its watermarks are by the plain rule."""

from datetime import UTC, datetime, timedelta
from random import Random
from typing import Any

from penstock.log import Log
from penstock.log.pace import NONE
from penstock.log.standing import By
from tests.log.paces import Model

START = datetime(2024, 1, 1, tzinfo=UTC)
COLUMNS = "id BIGINT, at TIMESTAMP"
DELAY = timedelta(seconds=5)
WAYS: tuple[By, ...] = ("stream", "partition", "producer")
SCOPES = ("", "test", "theirs")
"""Readers are of the second."""
PRODUCERS = ("one", "two", "three")
Stamps = dict[int, datetime | None]


class Story:
    """A log that many write to, and the watermarks before each record by the plain rule, in seconds since the start."""

    def __init__(self, log: Log, random: Random) -> None:
        self.log = log
        self.stamps: dict[By, Stamps] = {way: {} for way in WAYS}
        self.times: Stamps = {}
        self._random = random
        self._partitions = Model([5], ["test"], ["0", "1", "2"])
        self._producers = Model([5], ["test"])
        self._top = self._until = NONE
        self._sequence = self._now = 0
        log.create_topic("orders", COLUMNS, partitions=3, event_time="at")

    def tell(self, frames: int) -> None:
        acts = [self._records] * 6 + [self._rest, self._rest, self._produce, self._produce, self._punctuate]
        for _ in range(frames):
            self._now += 1
            self._random.choice(acts)(self._now)

    def level(self, way: By) -> datetime | None:
        least = {
            "stream": NONE if self._top == NONE else self._top - 5,
            "partition": self._partitions.levels[5, "test"],
            "producer": self._producers.levels[5, "test"],
        }
        found = max(least[way], self._until)
        return None if found == NONE else START + timedelta(seconds=found)

    def _records(self, now: int) -> None:
        partition, producer = self._random.randrange(3), self._random.choice([None, *PRODUCERS])
        behind = now - 8 * partition  # so that one that returns is far behind the others
        times = [None if self._random.random() < 0.1 else behind + self._random.randrange(-9, 3) for _ in range(3)]
        first = len(self.stamps["stream"])
        for way in WAYS:
            self.stamps[way] |= {first + each: self.level(way) for each in range(3)}
        rows: list[Any] = [{"id": first + n, "at": None if t is None else self._at(t)} for n, t in enumerate(times)]
        self.times |= {row["id"]: row["at"] for row in rows}
        self._sequence += 1
        numbered = {} if producer is None else {"producer": producer, "sequence": self._sequence}
        self.log.append("orders", rows, partition=partition, **numbered)  # type: ignore[arg-type]
        top = max((time for time in times if time is not None), default=NONE)
        self._top = max(self._top, top)
        self._partitions.take("bring", str(partition), top)
        if producer is not None:
            self._producers.take("bring", producer, top)

    def _rest(self, now: int) -> None:
        scope, partition, producer = (
            self._random.choice(SCOPES),
            self._random.randrange(3),
            self._random.choice(PRODUCERS),
        )
        self.log.rest("orders", partitions=[partition], producers=[producer], scope=scope)
        self._partitions.take("rest", str(partition), scope)
        self._producers.take("rest", producer, scope)

    def _produce(self, now: int) -> None:
        producer, until = self._random.choice(PRODUCERS), now + self._random.randrange(-20, 5)
        if producer not in self._producers.members:
            kept = self._random.random() < 0.5
            self.log.producer(producer).join("orders", self._at(until) if kept else None)
            self._producers.take("join", producer, until if kept else NONE)
        elif self._random.random() < 0.3:
            self.log.producer(producer).leave("orders")
            self._producers.take("leave", producer)
        else:
            self.log.producer(producer).announce("orders", self._at(until))
            self._producers.take("announce", producer, until)

    def _punctuate(self, now: int) -> None:
        scope, until = self._random.choice(SCOPES), now - self._random.randrange(20, 60)
        self.log.punctuate("orders", self._at(until), scope=scope)
        if scope != "theirs":
            self._until = max(self._until, until)

    def _at(self, seconds: int) -> datetime:
        return START + timedelta(seconds=seconds)
