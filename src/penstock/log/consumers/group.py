"""A group of readers: its members share the partitions of topics, and it remembers how far it has read.

Groups do not know of each other: every group gets every record.
"""

import os
import socket
import uuid
from collections.abc import Sequence
from dataclasses import dataclass

import apsw

from penstock.errors import LogError, did_you_mean
from penstock.log.consumers import membership, positions
from penstock.log.consumers.assignment import Partition
from penstock.log.consumers.member import Member, Revoked
from penstock.log.consumers.names import check_name, check_not_lost, forget, remember
from penstock.log.consumers.site import Site
from penstock.log.consumers.source import End, offsets_of
from penstock.log.consumers.terms import Terms
from penstock.log.reader import Start
from penstock.log.topic import check_partition


@dataclass(frozen=True)
class Lag:
    """How far a group is behind the end of a partition, and which member reads it."""

    topic: str
    partition: int
    committed: int
    end: int
    member: str | None = None

    @property
    def records(self) -> int:
        return max(0, self.end - self.committed)


class Group:
    """`Log.group` makes it; it is there from its first member, or its first reset, on."""

    def __init__(self, at: Site, name: str) -> None:
        check_name("group", name)
        self.name = name
        self._at = at

    def join(
        self, topics: str | Sequence[str], *, terms: Terms | None = None, revoked: Revoked | None = None
    ) -> Member:
        """A new member, which reads its share of these topics. `revoked` is called by a poll with the partitions that
        the member is to give up, while it can still commit them.
        """
        wanted = sorted({topics} if isinstance(topics, str) else set(topics))
        if not wanted:
            raise LogError(f'a member of group "{self.name}" needs topics')
        for topic in wanted:
            self._at.source.topic(topic)
        name = f"{socket.gethostname()}-{os.getpid()}-{uuid.uuid4().hex[:8]}"
        return Member(self._at, self.name, name, wanted, terms or Terms(), revoked).live()

    def committed(self) -> dict[Partition, int]:
        """The offset at which the group goes on, of every partition."""
        with self._at.facts.reading() as db:
            self._check_there(db)
            return positions.committed(db, self.name)

    def lag(self) -> list[Lag]:
        """How far the group is behind, for every partition."""
        with self._at.facts.reading() as db:
            self._check_there(db)
            known = positions.committed(db, self.name)
            owners = {each: membership.owner(db, self.name, each)[0] for each in known}
        ends = {topic: self._at.source.ends(topic) for topic, _ in known}
        return [Lag(topic, part, at, ends[topic][part], owners[topic, part]) for (topic, part), at in known.items()]

    def members(self) -> dict[str, list[Partition]]:
        """The members that are heard of, and what each reads."""
        with self._at.facts.reading() as db:
            self._check_there(db)
            found = {}
            for member in membership.living(db, self.name, self._at.clock()):
                mine = membership.share(db, self.name, member)
                found[member] = sorted(mine.owned) if mine else []
            return found

    @property
    def generation(self) -> int:
        """Rises whenever a member comes or goes, and with every reset."""
        with self._at.facts.reading() as db:
            self._check_there(db)
            return membership.generation(db, self.name) or 0

    def reset(self, topic: str, to: Start | End, *, partition: int | None = None) -> dict[Partition, int]:
        """The group goes on there: at an offset, a place, an append time, "earliest" or "latest". Refused while it has
        members.
        """
        declared = self._at.source.topic(topic)
        if partition is not None:
            check_partition(declared, partition)
        offsets = self._offsets(topic, to, partition)
        moved = {(topic, part): at for part, at in enumerate(offsets) if partition in (None, part)}
        with self._at.facts.writing() as db:
            self._check_nobody(db, "be reset")
            db.execute(
                "INSERT INTO groups VALUES (?, 1) ON CONFLICT DO UPDATE SET generation = generation + 1", (self.name,)
            )
            positions.commit(db, self.name, moved, self._at.clock())
        with self._at.facts.writing():
            remember(self._at.source, "group", self.name)
        return moved

    def delete(self) -> None:
        """Forgets the group. Refused while it has members."""
        with self._at.facts.writing() as db:
            self._check_there(db)
            self._check_nobody(db, "be deleted")
            forget(self._at.source, "group", self.name)
            for table in ("members", "shares", "offsets"):
                db.execute(f"DELETE FROM {table} WHERE grp = ?", (self.name,))
            db.execute("DELETE FROM groups WHERE name = ?", (self.name,))

    def _offsets(self, topic: str, to: Start | End, partition: int | None) -> Sequence[int]:
        if isinstance(to, str):
            if to in ("earliest", "latest"):
                return offsets_of(self._at.source, topic, to)
            raise LogError(
                f'"{to}" is no place to go on', hint='Say "earliest", "latest", an offset, a place or a time.'
            )
        begins, ends = self._at.source.begins(topic), self._at.source.ends(topic)
        found = self._at.source.offsets(topic, to, partition=partition)
        if isinstance(to, int):
            for part in range(len(ends)) if partition is None else (partition,):
                if not begins[part] <= to <= ends[part]:
                    raise LogError(
                        f'group "{self.name}" cannot go on at offset {to} of partition {part} of "{topic}"',
                        detail=f"The partition begins at {begins[part]} and ends at {ends[part]}.",
                    )
        return tuple(map(max, begins, found))

    def _check_there(self, db: apsw.Connection) -> None:
        if membership.generation(db, self.name) is not None:
            return
        check_not_lost(
            self._at.source, "group", self.name, hint=f"say where to go on: penstock log reset {self.name} TOPIC"
        )
        known = [name for (name,) in db.execute("SELECT name FROM groups ORDER BY name")]
        raise LogError(
            f'group "{self.name}" does not exist',
            detail=f"The groups are {', '.join(known)}." if known else "The log has no groups yet.",
            hint=did_you_mean(self.name, known, otherwise="A group is there when its first member has joined."),
        )

    def _check_nobody(self, db: apsw.Connection, what: str) -> None:
        """Those whose session has ended are no members."""
        membership.expel(db, self.name, self._at.clock())
        there = list(membership.members(db, self.name))
        if there:
            raise LogError(
                f'group "{self.name}" cannot {what} while it has members',
                detail=f"They are {', '.join(there)}.",
                hint="Stop them first; one that was killed counts until its session ends.",
            )
