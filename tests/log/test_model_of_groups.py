"""Random stories of groups: members that come, go, die and come back, against plain dictionaries."""

from collections import defaultdict
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from penstock.errors import Fenced, LogError
from penstock.log import Log
from penstock.log.consumers import Member, Terms
from penstock.log.consumers.assignment import Partition
from tests.effort import examples
from tests.log.disks import QuickDisk

TOPICS = {"one": 1, "three": 3}
GROUPS = ("g", "h")
SESSION = 10_000_000
groups = st.sampled_from(GROUPS)
which = st.integers(0, 5)


class Model:
    """A group: what it has committed, and of each member what it has polled since, in order."""

    def __init__(self) -> None:
        self.committed: dict[Partition, int] = {}
        self.members: dict[str, Member] = {}
        self.zombies: list[Member] = []
        self.seen: dict[str, int] = {}
        """When each member was last heard of."""


class Story(RuleBasedStateMachine):
    """Two handles of one log, and two groups of members that live by a clock that the story turns."""

    def __init__(self) -> None:
        super().__init__()
        self.space = TemporaryDirectory()
        self.now = 1_000_000
        self.logs: list[Log] = []
        self.ends: dict[Partition, int] = {(topic, part): 0 for topic, count in TOPICS.items() for part in range(count)}
        self.groups = {name: Model() for name in GROUPS}
        self.born = 0

    @initialize()
    def begin(self) -> None:
        folder = Path(self.space.name) / "log"
        self.logs = [Log.open(folder, disk=QuickDisk(), clock=lambda: self.now) for _ in range(2)]
        for topic, count in TOPICS.items():
            self.logs[0].create_topic(topic, "n INT", partitions=count)

    def teardown(self) -> None:
        for log in self.logs:
            log.close()
        self.space.cleanup()

    # What is done

    @rule(topic=st.sampled_from(sorted(TOPICS)), part=st.integers(0, 2), count=st.integers(1, 4))
    def append(self, topic: str, part: int, count: int) -> None:
        partition = (topic, part % TOPICS[topic])
        self.logs[0].append(topic, [{"n": 0}] * count, partition=partition[1])
        self.ends[partition] += count

    @rule(name=groups, handle=st.integers(0, 1), topics=st.sets(st.sampled_from(sorted(TOPICS)), min_size=1))
    def join(self, name: str, handle: int, topics: set[str]) -> None:
        group = self.groups[name]
        self.bury(group)
        self.born += 1
        at = self.logs[handle].consumers._at
        member = Member(at, name, f"m{self.born}", sorted(topics), Terms(), None)
        group.members[member.name], group.seen[member.name] = member, self.now
        for partition in self.ends:
            if partition[0] in topics:
                group.committed.setdefault(partition, 0)

    def bury(self, group: Model) -> None:
        """Whoever acts takes the dead out."""
        for name in [name for name, seen in group.seen.items() if self.now >= seen + SESSION]:
            group.zombies.append(group.members.pop(name))
            del group.seen[name]

    def chosen(self, name: str, at: int) -> tuple[Model, Member] | None:
        group = self.groups[name]
        names = sorted(group.members)
        return (group, group.members[names[at % len(names)]]) if names else None

    @rule(name=groups, at=which, limit=st.integers(1, 6))
    def poll(self, name: str, at: int, limit: int) -> None:
        if found := self.chosen(name, at):
            self.polled(*found, limit)

    def polled(self, group: Model, member: Member, limit: int) -> None:
        if any(self.now >= seen + SESSION for seen in group.seen.values()):
            group.seen[member.name] = self.now  # it noticed, and told that it lives itself
            self.bury(group)
        before = member.positions
        entries = member.poll(limit)
        assert len(entries) <= limit
        expected = {each: before.get(each, group.committed[each]) for each in member.partitions}
        for entry in entries:
            partition = (entry.topic, entry.partition)
            assert entry.offset == expected[partition], "not the next record"
            expected[partition] += 1
        assert member.positions == expected
        left = sum(self.ends[each] - expected[each] for each in expected)
        assert len(entries) == limit or left == 0, "records were held back"

    @rule(name=groups, at=which)
    def commit(self, name: str, at: int) -> None:
        if found := self.chosen(name, at):
            group, member = found
            changed = {p: at for p, at in member.positions.items() if group.committed[p] != at}
            member.commit()
            group.committed |= changed
            if changed:
                group.seen[member.name] = self.now

    @rule(name=groups, at=which)
    def beat(self, name: str, at: int) -> None:
        if found := self.chosen(name, at):
            self.beaten(*found)

    def beaten(self, group: Model, member: Member) -> None:
        group.seen[member.name] = self.now
        assert member.beat()
        self.bury(group)

    @rule(name=groups, at=which)
    def leave(self, name: str, at: int) -> None:
        if found := self.chosen(name, at):
            group, member = found
            member.leave()
            del group.members[member.name], group.seen[member.name]

    @rule(by=st.sampled_from([1, SESSION // 2, SESSION]))
    def pass_time(self, by: int) -> None:
        self.now += by

    @precondition(lambda self: any(group.zombies for group in self.groups.values()))
    @rule(name=groups, at=which)
    def let_a_zombie_commit(self, name: str, at: int) -> None:
        zombies = self.groups[name].zombies
        changed = zombies and any(
            self.groups[name].committed[p] != after for p, after in zombies[at % len(zombies)].positions.items()
        )
        if changed:
            zombie = zombies[at % len(zombies)]
            told = {p: after for p, after in zombie.positions.items() if self.groups[name].committed[p] != after}
            with pytest.raises(Fenced):
                zombie.commit(told)

    @precondition(lambda self: any(group.zombies for group in self.groups.values()))
    @rule(name=groups, at=which)
    def let_a_zombie_come_back(self, name: str, at: int) -> None:
        group = self.groups[name]
        if group.zombies:
            zombie = group.zombies.pop(at % len(group.zombies))
            self.bury(group)
            zombie.poll(1)
            group.members[zombie.name], group.seen[zombie.name] = zombie, self.now
            assert set(zombie.positions) <= {each for each in self.ends if each[0] in zombie.topics}

    @rule(name=groups, topic=st.sampled_from(sorted(TOPICS)), to=st.sampled_from(["earliest", "latest"]))
    def reset(self, name: str, topic: str, to: str) -> None:
        group = self.groups[name]
        self.bury(group)
        if group.members:
            with pytest.raises(LogError, match="while it has members"):
                self.logs[1].group(name).reset(topic, to)  # type: ignore[arg-type]
        else:
            self.logs[1].group(name).reset(topic, to)  # type: ignore[arg-type]
            for part in range(TOPICS[topic]):
                group.committed[topic, part] = 0 if to == "earliest" else self.ends[topic, part]

    @rule(name=groups)
    def settle(self, name: str) -> None:
        """When all have polled twice, every partition that somebody asked for is read by one of them, fairly."""
        group = self.groups[name]
        for member in list(group.members.values())[:1]:
            self.beaten(group, member)
        for _ in range(2):
            for member in list(group.members.values()):
                self.polled(group, member, 1)
        owned = defaultdict(list)
        for member in group.members.values():
            for partition in member.partitions:
                owned[partition].append(member.name)
        asked = {topic for member in group.members.values() for topic in member.topics}
        assert owned.keys() == {each for each in self.ends if each[0] in asked}

    # What must hold

    @invariant()
    def committed_offsets_are_those_of_the_model(self) -> None:
        for name, group in self.groups.items():
            if group.committed:
                assert self.logs[1].group(name).committed() == group.committed
                lags = self.logs[1].group(name).lag()
                assert {(lag.topic, lag.partition): lag.end for lag in lags}.items() <= self.ends.items()

    @invariant()
    def no_partition_has_two_owners(self) -> None:
        for name, group in self.groups.items():
            if group.committed:
                owned = [each for mine in self.logs[0].group(name).members().values() for each in mine]
                assert len(owned) == len(set(owned))

    @invariant()
    def the_lowest_offset_is_the_least_committed(self) -> None:
        for topic, count in TOPICS.items() if self.logs else ():
            every = {
                part: [g.committed[topic, part] for g in self.groups.values() if (topic, part) in g.committed]
                for part in range(count)
            }
            want = {part: min(found) for part, found in every.items() if found}
            assert self.logs[1].consumers.lowest(topic) == want


TestStory = Story.TestCase
TestStory.settings = examples(40, steps=40)
