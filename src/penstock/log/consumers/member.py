"""A member of a group: it reads the partitions that are its share, and commits how far it has come.

Every record of the group's topics is given to a member at least once. What a member has read and not committed comes
again when it dies, is taken for dead, or leaves. Between two members a partition changes hands when the first one polls
again; a commit from a member that has lost the partition is refused, and writes nothing.
"""

import time
from collections.abc import Callable, Mapping, Sequence
from datetime import timedelta
from types import TracebackType
from typing import Self

import apsw

from penstock.errors import Fenced, LogError
from penstock.log.consumers import membership, positions
from penstock.log.consumers.assignment import Partition
from penstock.log.consumers.heart import Heart
from penstock.log.consumers.names import check_not_lost, remember
from penstock.log.consumers.site import Site
from penstock.log.consumers.source import offsets_of
from penstock.log.consumers.terms import MICROSECOND, Terms, check_limit
from penstock.log.records import Entry

POLL_SECONDS = 0.005
Revoked = Callable[[Sequence[Partition]], None]


class Member:
    """`Group.join` makes it; use it in a `with`, or call `leave`. One thread uses it."""

    def __init__(
        self, at: Site, group: str, name: str, topics: Sequence[str], terms: Terms, revoked: Revoked | None
    ) -> None:
        self.group = group
        self.name = name
        self.topics = tuple(topics)
        self.terms = terms
        self._at = at
        self._revoked = revoked
        self._since: dict[Partition, int] = {}
        self._next: dict[Partition, int] = {}
        self._told: dict[Partition, int] = {}
        """What the group has committed, as far as this member knows."""
        self._turn = 0
        self._left = False
        self._heart: Heart | None = None
        self.polled_at = time.monotonic()
        self._enter()

    def live(self) -> Self:
        """From now on a thread tells that this member lives."""
        self._heart = Heart(self)
        return self

    @property
    def is_over(self) -> bool:
        """Whether it has left, or its log is closed."""
        return self._left or self._at.facts.closed

    @property
    def partitions(self) -> list[Partition]:
        """What this member reads now."""
        return sorted(self._since)

    @property
    def positions(self) -> dict[Partition, int]:
        """The next offset of each partition that this member reads."""
        return dict(self._next)

    def poll(self, limit: int = 500, *, wait: timedelta = timedelta(0)) -> list[Entry]:
        """The next records, at most `limit`, as soon as there are any; none if none come while it waits.

        Takes on and gives up partitions. A member that was taken for dead joins again.
        """
        if self._left:
            raise LogError(f'"{self.name}" has left group "{self.group}"', hint="Join again.")
        check_limit(limit)
        until = time.monotonic() + wait / timedelta(seconds=1)
        while True:
            seen = self._news()
            self._settle()
            if (found := self._read(limit)) or time.monotonic() >= until:
                return found
            while self._news() == seen and not self._is_due() and time.monotonic() < until:
                time.sleep(POLL_SECONDS)

    def commit(self, offsets: Mapping[Partition, int] | None = None) -> None:
        """The group goes on at these offsets; without them, after all that was polled. Durable when it returns."""
        wanted = dict(self._next if offsets is None else offsets)
        changed = {each: after for each, after in wanted.items() if self._told.get(each) != after}
        if not changed:
            return
        self._check(changed)
        with self._at.facts.writing() as db:
            for each in changed:
                self._check_owned(db, each)
            positions.commit(db, self.group, changed, self._at.clock())
            membership.beat(db, self.group, self.name, self._at.clock())
        self._told |= changed

    def beat(self) -> bool:
        """Tells that this member lives, and takes the dead out; False if it was taken out itself."""
        with self._at.facts.writing() as db:
            lives = membership.beat(db, self.group, self.name, self._at.clock())
            if membership.expel(db, self.group, self._at.clock()):
                self._rebalance(db)
            return lives

    def leave(self) -> None:
        """Gives everything up at once. What was not committed comes again, elsewhere."""
        if self._left:
            return
        self._left = True
        if self._heart:
            self._heart.stop()
        self._drop(self._since)
        with self._at.facts.writing() as db:
            if membership.remove(db, self.group, self.name):
                self._rebalance(db)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.leave()

    # Taking part

    def _enter(self) -> None:
        source, now = self._at.source, self._at.clock()
        starts = {topic: offsets_of(source, topic, self.terms.start) for topic in self.topics}
        with self._at.facts.writing() as db:
            if membership.generation(db, self.group) is None:
                check_not_lost(
                    source, "group", self.group, hint=f"say where to go on: penstock log reset {self.group} TOPIC"
                )
            membership.enter(db, self.group, self.name, self.topics, self.terms.session // MICROSECOND)
            membership.beat(db, self.group, self.name, now)
            membership.expel(db, self.group, now)
            known = positions.committed(db, self.group)
            every = {(topic, part): start for topic in self.topics for part, start in enumerate(starts[topic])}
            positions.commit(db, self.group, {each: at for each, at in every.items() if each not in known}, now)
            self._rebalance(db)
        with self._at.facts.writing():
            remember(source, "group", self.group)

    def _rebalance(self, db: apsw.Connection) -> None:
        topics = {topic for each in membership.members(db, self.group).values() for topic in each}
        membership.rebalance(db, self.group, {topic: self._at.source.topic(topic).partitions for topic in topics})

    def _news(self) -> object:
        """Another value when there may be records, or partitions, that were not there before."""
        self.polled_at = time.monotonic()
        return self._at.source.mark(), self._at.facts.version

    def _is_due(self) -> bool:
        """Whether somebody's session may have ended."""
        with self._at.facts.reading() as db:
            return membership.has_dead(db, self.group, self._at.clock())

    def _settle(self) -> None:
        """Takes on what is this member's share by now, and gives up what is not."""
        if self._is_due():
            self.beat()
        with self._at.facts.reading() as db:
            mine = membership.share(db, self.group, self.name)
        if mine is None:  # taken for dead
            self._drop(self._since)
            self._enter()
            return self._settle()
        lost = [each for each in self.partitions if each not in mine.wanted]
        if lost and self._revoked:
            self._revoked(lost)
        if lost or mine.free:
            with self._at.facts.writing() as db:
                membership.give_up(db, self.group, self.name)
                membership.take_over(db, self.group, self.name)
                mine = membership.share(db, self.group, self.name) or mine
        if mine.owned != self._since:
            self._take_on(mine.owned)
        return None

    def _take_on(self, owned: Mapping[Partition, int]) -> None:
        self._drop([each for each, since in self._since.items() if owned.get(each) != since])
        with self._at.facts.reading() as db:
            known = positions.committed(db, self.group)
        for each, since in owned.items():
            if each not in self._since:
                self._since[each] = since
                self._told[each] = self._next[each] = known[each]

    def _drop(self, partitions: Sequence[Partition] | Mapping[Partition, int]) -> None:
        for each in list(partitions):
            del self._since[each], self._next[each], self._told[each]

    # Reading and committing

    def _read(self, limit: int) -> list[Entry]:
        """From every partition in turn, so that none is left behind. Where one cannot be read, none counts as read."""
        found: list[Entry] = []
        after: dict[Partition, int] = {}
        mine = self.partitions
        self._turn += 1
        for at in range(len(mine)):
            topic, part = mine[(self._turn + at) % len(mine)]
            start, end = self._position(topic, part), self._at.source.ends(topic)[part]
            while start < end and len(found) < limit:  # compaction may have taken all of a range
                until = min(end, start + limit - len(found))
                found += self._at.source.read(topic, partition=part, start=start, end=until)
                after[topic, part] = start = until
        self._next |= after
        return found

    def _position(self, topic: str, part: int) -> int:
        """The next offset; where that is not there, what the terms say."""
        at, first, end = self._next[topic, part], self._at.source.begins(topic)[part], self._at.source.ends(topic)[part]
        if not first <= at <= end:
            if self.terms.missing == "fail":
                raise LogError(
                    f'group "{self.group}" cannot go on at offset {at} of partition {part} of "{topic}"',
                    detail=f"The partition has {first} to {end - 1}." if first < end else f"It ends at {end}, empty.",
                    hint=f"Say where to go on: penstock log reset {self.group} {topic}, or join with missing.",
                )
            at = self._next[topic, part] = first if self.terms.missing == "earliest" else end
        return at

    def _check(self, offsets: Mapping[Partition, int]) -> None:
        for (topic, part), after in offsets.items():
            end = self._at.source.ends(topic)[part] if part < self._at.source.topic(topic).partitions else -1
            if not 0 <= after <= end:
                raise LogError(
                    f'offset {after} of partition {part} of "{topic}" cannot be committed',
                    detail=f"The partition ends at {end}." if end >= 0 else "There is no such partition.",
                )

    def _check_owned(self, db: apsw.Connection, partition: Partition) -> None:
        owner, since = membership.owner(db, self.group, partition)
        if owner == self.name and since == self._since.get(partition):
            return
        mine = self._since.get(partition)
        had = f"this member had it in generation {mine}" if mine is not None else "this member does not have it"
        raise Fenced(
            f'a commit of "{self.name}" to group "{self.group}" was refused',
            detail=f'Partition {partition[1]} of "{partition[0]}" is '
            + (f'owned by "{owner}" since generation {since}; {had}.' if owner else f"owned by nobody; {had}."),
            hint="Poll again. What was not committed comes again, to whoever has the partition.",
        )
