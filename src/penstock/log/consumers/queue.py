"""A queue over a topic: many workers, each message to one of them at a time, settled one by one.

The topic stays as it is: other readers, and other queues, do not notice. The order of messages is not promised. What
is rejected, or was delivered as often as is allowed, goes to the topic NAME.dead-letters.
"""

from dataclasses import dataclass
from datetime import timedelta
from typing import Literal

import apsw

from penstock.errors import LogError, did_you_mean
from penstock.log.consumers import acks, deliveries
from penstock.log.consumers.dead import bury, dead, ensure_dead_topic, letters, redrive
from penstock.log.consumers.deliveries import Declared
from penstock.log.consumers.names import check_name, check_not_lost, forget, remember
from penstock.log.consumers.site import Site
from penstock.log.consumers.source import End, offsets_of
from penstock.log.consumers.terms import MICROSECOND, check_limit
from penstock.log.consumers.worker import Worker
from penstock.log.records import Entry


@dataclass(frozen=True)
class Delivering:
    """How a queue delivers: a message comes again when it was not settled within `visibility`; after so many
    `deliveries` it is a dead letter. `missing`: what to do about messages that retention has taken.
    """

    visibility: timedelta = timedelta(seconds=30)
    deliveries: int = 5
    missing: Literal["fail", "skip"] = "fail"

    def __post_init__(self) -> None:
        if self.visibility < timedelta(milliseconds=1):
            raise LogError(f"a visibility time of {self.visibility} is too short", hint="Choose a millisecond or more.")
        if self.deliveries < 1:
            raise LogError(f"a message cannot be delivered {self.deliveries} times", hint="Choose 1 or more.")
        if self.missing not in ("fail", "skip"):
            raise LogError(f'"{self.missing}" is no way to go on', hint='Say "fail" or "skip".')

    def __str__(self) -> str:
        missing = "refused" if self.missing == "fail" else "skipped"
        return f"visibility {self.visibility}, at most {self.deliveries} deliveries, missing messages {missing}"


@dataclass(frozen=True)
class QueueState:
    """How many messages wait, are with workers, have died and were not delivered again, were skipped."""

    name: str
    topic: str
    delivering: Delivering
    waiting: int
    in_flight: int
    dead: int
    skipped: int


class Queue:
    """`Log.queue` finds it, `Log.create_queue` makes it."""

    def __init__(self, at: Site, name: str) -> None:
        check_name("queue", name)
        self.name = name
        self._at = at

    def create(self, topic: str, delivering: Delivering, start: End | None) -> None:
        """Declares it; equally again, nothing happens. It begins with the first message, or at `start`."""
        source = self._at.source
        declared = source.topic(topic)
        offsets = offsets_of(source, topic, start or "earliest")
        ensure_dead_topic(source, self.name, declared)
        with self._at.facts.writing() as db:
            if found := deliveries.declared(db, self.name):
                self._check_same(found, topic, delivering)
            else:
                if start is None:
                    check_not_lost(source, "queue", self.name, hint="say where it begins: start, or --start.")
                self._insert(db, topic, delivering)
                deliveries.move_fronts(db, self.name, dict(enumerate(offsets)))
        with self._at.facts.writing():
            remember(source, "queue", self.name)

    def worker(self) -> Worker:
        with self._at.facts.reading() as db:
            declared = self._declared(db)
        return Worker(self._at, declared)

    def describe(self) -> QueueState:
        with self._at.facts.writing() as db:
            found = self._declared(db)
            acks.take_in_all(db, self._at.source.folder, self.name)
            unseen = sum(self._at.source.ends(found.topic)) - sum(deliveries.fronts(db, self.name))
            rows, flying = deliveries.unsettled(db, self.name), deliveries.in_flight(db, self.name, self._at.clock())
            letters = dead(db, self._at.source, self.name)
        return QueueState(
            self.name, found.topic, _delivering(found), unseen + rows - flying, flying, letters, found.skipped
        )

    @property
    def topic(self) -> str:
        """Over which topic it is."""
        with self._at.facts.reading() as db:
            return self._declared(db).topic

    def letters(self, *, limit: int = 100) -> list[Entry]:
        """Dead letters that were not delivered again, the oldest first; their headers say where the message stands and
        why it died.
        """
        check_limit(limit)
        with self._at.facts.reading() as db:
            self._declared(db)
            return letters(db, self._at.source, self.name, limit=limit)

    def change(self, delivering: Delivering) -> None:
        """Delivers otherwise from now on; workers that are there go on as they began."""
        with self._at.facts.writing() as db:
            self._declared(db)
            db.execute(
                "UPDATE queues SET visibility = ?, deliveries = ?, missing = ? WHERE name = ?",
                (delivering.visibility // MICROSECOND, delivering.deliveries, delivering.missing, self.name),
            )

    def redrive(self, *, limit: int | None = None) -> int:
        """Delivers dead letters again, from the oldest on, as if for the first time; how many."""
        with self._at.facts.reading() as db:
            declared = self._declared(db)
        bury(self._at, declared)
        with self._at.facts.writing() as db:
            return redrive(db, self._at.source, declared, now=self._at.clock(), limit=limit)

    def reset(self, to: End) -> None:
        """Begins anew with the first message that is there, or with what comes from now on. Refused while messages are
        with workers.
        """
        with self._at.facts.writing() as db:
            found = self._declared(db)
            self._check_idle(db, "be reset")
            db.execute("DELETE FROM messages WHERE queue = ?", (self.name,))
            deliveries.move_fronts(db, self.name, dict(enumerate(offsets_of(self._at.source, found.topic, to))))

    def delete(self) -> None:
        """Forgets the queue; its dead letters stay. Refused while messages are with workers."""
        with self._at.facts.writing() as db:
            self._declared(db)
            self._check_idle(db, "be deleted")
            forget(self._at.source, "queue", self.name)
            for table in ("messages", "fronts", "redriven"):
                db.execute(f"DELETE FROM {table} WHERE queue = ?", (self.name,))
            db.execute("DELETE FROM queues WHERE name = ?", (self.name,))

    def _insert(self, db: apsw.Connection, topic: str, delivering: Delivering) -> None:
        """Leases are counted from now, so that those of an earlier queue of this name do not come again."""
        db.execute(
            "INSERT INTO queues VALUES (?, ?, ?, ?, ?, ?, 0)",
            (
                self.name,
                topic,
                delivering.visibility // MICROSECOND,
                delivering.deliveries,
                delivering.missing,
                self._at.clock(),
            ),
        )

    def _declared(self, db: apsw.Connection) -> Declared:
        found = deliveries.declared(db, self.name)
        if found is not None:
            return found
        check_not_lost(self._at.source, "queue", self.name, hint="create the queue again, and say where it begins.")
        known = [name for (name,) in db.execute("SELECT name FROM queues ORDER BY name")]
        raise LogError(
            f'queue "{self.name}" does not exist',
            detail=f"The queues are {', '.join(known)}." if known else "The log has no queues yet.",
            hint=did_you_mean(self.name, known, otherwise="Create it first: penstock log queue create"),
        )

    def _check_same(self, found: Declared, topic: str, delivering: Delivering) -> None:
        if (found.topic, _delivering(found)) != (topic, delivering):
            raise LogError(
                f'queue "{self.name}" exists already, declared otherwise',
                detail=f'It is over "{found.topic}": {_delivering(found)}.',
                hint="To deliver otherwise: penstock log queue change. For another topic choose another name.",
            )

    def _check_idle(self, db: apsw.Connection, what: str) -> None:
        acks.take_in_all(db, self._at.source.folder, self.name)
        if flying := deliveries.in_flight(db, self.name, self._at.clock()):
            raise LogError(
                f'queue "{self.name}" cannot {what} while messages are with workers',
                detail=f"There are {flying}.",
                hint="Stop the workers first; what a killed one has counts until its visibility time has passed.",
            )


def _delivering(found: Declared) -> Delivering:
    return Delivering(timedelta(microseconds=found.visibility), found.deliveries, found.missing)  # type: ignore[arg-type]
