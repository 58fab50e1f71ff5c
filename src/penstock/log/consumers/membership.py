"""Membership: who is in a group, and who has which partition, as transactions over the facts.

A change of who is in it begins a new *generation*: all partitions are assigned anew, at once, for everybody. What is
*wanted* is one thing, who *owns* a partition another: a member that is to give a partition up owns it until it says
so, or until its session ends, and only then does the next one read it. Commits are taken from the owner only.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import apsw

from penstock.log.consumers.assignment import Partition, assigned


@dataclass(frozen=True)
class Share:
    """What a member is to have, what it owns, with the generations in which it got it, and what is free for it."""

    generation: int
    wanted: frozenset[Partition]
    owned: Mapping[Partition, int]
    free: frozenset[Partition]


def enter(db: apsw.Connection, group: str, member: str, topics: Sequence[str], session: int) -> None:
    """A new member; it has no deadline yet: `beat` gives it one."""
    db.execute("INSERT OR IGNORE INTO groups VALUES (?, 0)", (group,))
    db.execute("INSERT INTO members VALUES (?, ?, ?, ?, 0)", (group, member, json.dumps(sorted(topics)), session))


def beat(db: apsw.Connection, group: str, member: str, now: int) -> bool:
    """The member lives for another session; False if it is none any more."""
    db.execute("UPDATE members SET deadline = ? + session WHERE grp = ? AND member = ?", (now, group, member))
    return db.changes() == 1


def members(db: apsw.Connection, group: str) -> dict[str, list[str]]:
    """The topics that each member has asked for."""
    found = db.execute("SELECT member, topics FROM members WHERE grp = ? ORDER BY member", (group,))
    return {member: json.loads(topics) for member, topics in found}


def living(db: apsw.Connection, group: str, now: int) -> list[str]:
    return [name for (name,) in db.execute("SELECT member FROM members WHERE grp = ? AND deadline > ?", (group, now))]


def has_dead(db: apsw.Connection, group: str, now: int) -> bool:
    return bool(db.execute("SELECT count(*) FROM members WHERE grp = ? AND deadline <= ?", (group, now)).get)


def remove(db: apsw.Connection, group: str, member: str) -> bool:
    db.execute("DELETE FROM members WHERE grp = ? AND member = ?", (group, member))
    gone = db.changes() == 1
    db.execute("UPDATE shares SET owner = NULL WHERE grp = ? AND owner = ?", (group, member))
    return gone


def expel(db: apsw.Connection, group: str, now: int) -> list[str]:
    """Those whose session has ended are members no more, and own nothing."""
    dead = "SELECT member FROM members WHERE grp = ? AND deadline <= ?"
    gone = [member for (member,) in db.execute(dead, (group, now))]
    for member in gone:
        remove(db, group, member)
    return gone


def rebalance(db: apsw.Connection, group: str, partitions: Mapping[str, int]) -> None:
    """A new generation; `partitions` has the number of partitions of each topic that anybody has asked for."""
    asked = members(db, group)
    every = [
        (topic, part) for topic in {t for topics in asked.values() for t in topics} for part in range(partitions[topic])
    ]
    now = db.execute("SELECT topic, part, wanted FROM shares WHERE grp = ? AND wanted IS NOT NULL", (group,))
    wanted = assigned(asked, every, {(topic, part): member for topic, part, member in now})
    db.execute("UPDATE groups SET generation = generation + 1 WHERE name = ?", (group,))
    db.execute("UPDATE shares SET wanted = NULL WHERE grp = ?", (group,))
    db.executemany(
        "INSERT INTO shares VALUES (?, ?, ?, ?, NULL, NULL) ON CONFLICT DO UPDATE SET wanted = excluded.wanted",
        [(group, topic, part, member) for (topic, part), member in wanted.items()],
    )
    db.execute("DELETE FROM shares WHERE grp = ? AND wanted IS NULL AND owner IS NULL", (group,))


def generation(db: apsw.Connection, group: str) -> int | None:
    """The group's generation; None if there is no such group."""
    found = db.execute("SELECT generation FROM groups WHERE name = ?", (group,)).get
    return None if found is None else int(found)


def share(db: apsw.Connection, group: str, member: str) -> Share | None:
    """What a member has and is to have; None if it is none any more."""
    if not db.execute("SELECT count(*) FROM members WHERE grp = ? AND member = ?", (group, member)).get:
        return None
    rows = list(
        db.execute(
            "SELECT topic, part, wanted, owner, since FROM shares WHERE grp = ?1 AND (wanted = ?2 OR owner = ?2)",
            (group, member),
        )
    )
    return Share(
        generation(db, group) or 0,
        frozenset((topic, part) for topic, part, wanted, _, _ in rows if wanted == member),
        {(topic, part): since for topic, part, _, owner, since in rows if owner == member},
        frozenset((topic, part) for topic, part, wanted, owner, _ in rows if wanted == member and owner is None),
    )


def give_up(db: apsw.Connection, group: str, member: str) -> None:
    """The member owns nothing any more that it is not to have."""
    db.execute(
        "UPDATE shares SET owner = NULL WHERE grp = ?1 AND owner = ?2 AND wanted IS NOT ?2",
        (group, member),
    )
    db.execute("DELETE FROM shares WHERE grp = ? AND wanted IS NULL AND owner IS NULL", (group,))


def take_over(db: apsw.Connection, group: str, member: str) -> None:
    """The member owns what it is to have and nobody else still has."""
    db.execute(
        "UPDATE shares SET owner = ?2, since = (SELECT generation FROM groups WHERE name = ?1) "
        "WHERE grp = ?1 AND wanted = ?2 AND owner IS NULL",
        (group, member),
    )


def owner(db: apsw.Connection, group: str, partition: Partition) -> tuple[str | None, int | None]:
    """Who owns a partition, and since which generation."""
    found = list(
        db.execute("SELECT owner, since FROM shares WHERE grp = ? AND topic = ? AND part = ?", (group, *partition))
    )
    return found[0] if found else (None, None)
