"""Deliveries: which messages of a queue are with whom, as transactions over the facts.

A message is *done* when it lies before the front of its partition and has no row. One that has a row is with a worker
until it is due, or waits to be delivered again. A *lease* is the number of one taking; whoever settles a message names
the lease under which it got it. The *life* of a message is another one whenever it gets a row.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import apsw

from penstock.log.consumers.acks import Ack


@dataclass(frozen=True)
class Declared:
    """A queue, as the facts have it; times in microseconds."""

    name: str
    topic: str
    visibility: int
    deliveries: int
    missing: str
    skipped: int


@dataclass(frozen=True)
class Delivery:
    """A message that was just given out, for the `delivered`th time."""

    ack: Ack
    delivered: int
    due: int


@dataclass(frozen=True)
class Doomed:
    """A message that is not delivered again."""

    partition: int
    offset: int
    life: int
    delivered: int
    reason: str


def declared(db: apsw.Connection, name: str) -> Declared | None:
    query = "SELECT name, topic, visibility, deliveries, missing, skipped FROM queues WHERE name = ?"
    found = list(db.execute(query, (name,)))
    return Declared(*found[0]) if found else None


def fronts(db: apsw.Connection, queue: str) -> list[int]:
    """The next offset of each partition that was never given out."""
    return [after for (after,) in db.execute("SELECT next FROM fronts WHERE queue = ? ORDER BY part", (queue,))]


def floors(db: apsw.Connection, queue: str) -> list[int]:
    """The offset of each partition before which every message is done."""
    query = "SELECT part, min(num) FROM messages WHERE queue = ? GROUP BY part"
    least = dict(db.execute(query, (queue,)))
    return [min(front, least.get(part, front)) for part, front in enumerate(fronts(db, queue))]


def unsettled(db: apsw.Connection, queue: str) -> int:
    """How many messages were given out and are not done."""
    return int(db.execute("SELECT count(*) FROM messages WHERE queue = ?", (queue,)).get)


def in_flight(db: apsw.Connection, queue: str, now: int) -> int:
    """How many of these are with a worker."""
    query = "SELECT count(*) FROM messages WHERE queue = ? AND lease IS NOT NULL AND due > ?"
    return int(db.execute(query, (queue, now)).get)


def next_due(db: apsw.Connection, queue: str) -> int | None:
    found = db.execute("SELECT min(due) FROM messages WHERE queue = ?", (queue,)).get
    return None if found is None else int(found)


def new_lease(db: apsw.Connection, queue: str) -> int:
    db.execute("UPDATE queues SET lease = lease + 1 WHERE name = ?", (queue,))
    return int(db.execute("SELECT lease FROM queues WHERE name = ?", (queue,)).get)


def redelivered(
    db: apsw.Connection, queue: Declared, worker: str, lease: int, *, now: int, limit: int
) -> list[Delivery]:
    """Gives out what has waited longest."""
    rows = list(
        db.execute(
            "SELECT part, num, delivered + 1 FROM messages WHERE queue = ? AND due <= ? AND reason IS NULL "
            "AND delivered < ? ORDER BY due, part, num LIMIT ?",
            (queue.name, now, queue.deliveries, limit),
        )
    )
    due = now + queue.visibility
    db.executemany(
        "UPDATE messages SET delivered = delivered + 1, due = ?, lease = ?, worker = ? "
        "WHERE queue = ? AND part = ? AND num = ?",
        [(due, lease, worker, queue.name, part, offset) for part, offset, _ in rows],
    )
    return [Delivery(Ack(offset, lease, part), delivered, due) for part, offset, delivered in rows]


def delivered(
    db: apsw.Connection, queue: Declared, worker: str, lease: int, *, now: int, offsets: Mapping[int, range]
) -> list[Delivery]:
    """Gives out, for the first time, these offsets of partitions."""
    due = now + queue.visibility
    found = [Delivery(Ack(offset, lease, part), 1, due) for part, each in offsets.items() for offset in each]
    db.executemany(
        "INSERT INTO messages VALUES (?, ?, ?, ?, 1, ?, ?, ?, NULL)",
        [(queue.name, each.ack.partition, each.ack.offset, lease, due, lease, worker) for each in found],
    )
    move_fronts(db, queue.name, {part: each.stop for part, each in offsets.items()})
    return found


def move_fronts(db: apsw.Connection, queue: str, to: Mapping[int, int]) -> None:
    rows = [(queue, part, after) for part, after in to.items()]
    db.executemany("INSERT OR REPLACE INTO fronts VALUES (?, ?, ?)", rows)


def settle(db: apsw.Connection, queue: str, ack: Ack) -> bool:
    """The message is done; False if it is with somebody else by now."""
    db.execute(
        "DELETE FROM messages WHERE queue = ? AND part = ? AND num = ? AND lease = ?",
        (queue, ack.partition, ack.offset, ack.lease),
    )
    return db.changes() == 1


def give_back(db: apsw.Connection, queue: str, ack: Ack, *, due: int, uncounted: bool = False) -> bool:
    """It is delivered again from `due` on; `uncounted`, as if it had not been this time."""
    db.execute(
        "UPDATE messages SET due = ?, lease = NULL, worker = NULL, delivered = delivered - ? "
        "WHERE queue = ? AND part = ? AND num = ? AND lease = ?",
        (due, int(uncounted), queue, ack.partition, ack.offset, ack.lease),
    )
    return db.changes() == 1


def prolong(db: apsw.Connection, queue: str, ack: Ack, *, due: int) -> bool:
    db.execute(
        "UPDATE messages SET due = ? WHERE queue = ? AND part = ? AND num = ? AND lease = ?",
        (due, queue, ack.partition, ack.offset, ack.lease),
    )
    return db.changes() == 1


def doom(db: apsw.Connection, queue: str, ack: Ack, reason: str) -> bool:
    """It is not delivered again."""
    db.execute(
        "UPDATE messages SET reason = ?, due = 0, lease = NULL, worker = NULL "
        "WHERE queue = ? AND part = ? AND num = ? AND lease = ?",
        (reason, queue, ack.partition, ack.offset, ack.lease),
    )
    return db.changes() == 1


def doomed(db: apsw.Connection, queue: Declared, *, now: int, begins: Sequence[int], limit: int) -> list[Doomed]:
    """What was rejected, or delivered as often as is allowed, and is there."""
    query = (
        "SELECT num, life, delivered, reason FROM messages WHERE queue = ? AND part = ? AND num >= ? AND due <= ? "
        "AND (reason IS NOT NULL OR delivered >= ?) ORDER BY num LIMIT ?"
    )
    given_up, found = f"delivered {queue.deliveries} times, never acknowledged", list[Doomed]()
    for part, first in enumerate(begins):
        rows = db.execute(query, (queue.name, part, first, now, queue.deliveries, limit - len(found)))
        found += [Doomed(part, offset, life, times, reason or given_up) for offset, life, times, reason in rows]
    return found


def withhold_reasons(db: apsw.Connection, topic: str) -> None:
    """Messages of the topic that are rejected, and not dead letters yet, become such without the reason."""
    db.execute(
        "UPDATE messages SET reason = 'rejected' WHERE reason IS NOT NULL "
        "AND queue IN (SELECT name FROM queues WHERE topic = ?)",
        (topic,),
    )


def revive(db: apsw.Connection, queue: str, partition: int, offset: int, *, now: int) -> None:
    """It is delivered again, as if for the first time; one that was never given out will be anyway."""
    db.execute(
        "INSERT OR IGNORE INTO messages SELECT ?1, ?2, ?3, ?4, 0, ?5, NULL, NULL, NULL "
        "FROM fronts WHERE queue = ?1 AND part = ?2 AND ?3 < next",
        (queue, partition, offset, new_lease(db, queue), now),
    )


def forget(db: apsw.Connection, queue: str, offsets: Sequence[tuple[int, int]]) -> None:
    """These partitions' offsets are done, whoever has them."""
    rows = [(queue, *each) for each in offsets]
    db.executemany("DELETE FROM messages WHERE queue = ? AND part = ? AND num = ?", rows)


def gone(db: apsw.Connection, queue: str, begins: Sequence[int]) -> list[tuple[int, int]]:
    """What should be delivered again, and lies before the first offset that is there."""
    query = "SELECT part, num FROM messages WHERE queue = ? AND part = ? AND num < ?"
    return [row for part, first in enumerate(begins) if first for row in db.execute(query, (queue, part, first))]


def skip(db: apsw.Connection, queue: str, count: int) -> None:
    db.execute("UPDATE queues SET skipped = skipped + ? WHERE name = ?", (count, queue))
