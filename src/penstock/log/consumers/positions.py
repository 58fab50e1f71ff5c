"""Positions: the offset of each partition at which a group goes on, as transactions over the facts."""

from collections.abc import Mapping

import apsw

from penstock.log.consumers.assignment import Partition


def committed(db: apsw.Connection, group: str) -> dict[Partition, int]:
    """The next offset of every partition that the group has committed."""
    found = db.execute("SELECT topic, part, next FROM offsets WHERE grp = ? ORDER BY topic, part", (group,))
    return {(topic, part): after for topic, part, after in found}


def commit(db: apsw.Connection, group: str, offsets: Mapping[Partition, int], now: int) -> None:
    db.executemany(
        "INSERT OR REPLACE INTO offsets SELECT name, ?2, ?3, ?4, generation, ?5 FROM groups WHERE name = ?1",
        [(group, topic, part, after, now) for (topic, part), after in offsets.items()],
    )
