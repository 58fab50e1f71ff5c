"""Backlogs: how far each group and queue is behind a topic, and how far all of them have come."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import apsw

from penstock.log.consumers import deliveries


@dataclass(frozen=True)
class Reader:
    """A group or a queue, and how many records of a topic it has done with."""

    kind: Literal["group", "queue"]
    name: str
    done: int
    floors: Mapping[int, int]
    """The offset before which it needs nothing any more, of each partition that it reads."""

    def __str__(self) -> str:
        return f'{self.kind} "{self.name}"'

    def done_of(self, ends: Sequence[int]) -> int:
        """How many of a topic's records, which ends there, are not unread for it; partitions that it does not read
        are not.
        """
        return self.done + sum(end for part, end in enumerate(ends) if part not in self.floors)


def readers(db: apsw.Connection, topic: str) -> list[Reader]:
    """Who reads a topic."""
    return [*_groups(db, topic), *_queues(db, topic)]


def lowest(db: apsw.Connection, topic: str) -> dict[int, int]:
    """The offset before which no group and no queue needs anything any more, of each partition that anybody reads."""
    found: dict[int, int] = {}
    for reader in readers(db, topic):
        for part, floor in reader.floors.items():
            found[part] = min(floor, found.get(part, floor))
    return found


def _groups(db: apsw.Connection, topic: str) -> Iterator[Reader]:
    names = [name for (name,) in db.execute("SELECT DISTINCT grp FROM offsets WHERE topic = ? ORDER BY grp", (topic,))]
    for name in names:
        known = dict(db.execute("SELECT part, next FROM offsets WHERE grp = ? AND topic = ?", (name, topic)))
        yield Reader("group", name, sum(known.values()), known)


def _queues(db: apsw.Connection, topic: str) -> Iterator[Reader]:
    names = [name for (name,) in db.execute("SELECT name FROM queues WHERE topic = ? ORDER BY name", (topic,))]
    for name in names:
        done = sum(deliveries.fronts(db, name)) - deliveries.unsettled(db, name)
        yield Reader("queue", name, done, dict(enumerate(deliveries.floors(db, name))))
