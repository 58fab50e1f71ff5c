"""Random stories of a queue: workers that take, settle, are late, die and leave, against a plain dictionary."""

from collections import Counter
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from penstock.errors import Fenced
from penstock.log import Log
from penstock.log.consumers import Delivering, Message, Queue, Worker
from penstock.log.consumers.acks import Ack
from tests.effort import examples
from tests.log.disks import QuickDisk

VISIBILITY = 10_000_000
DELIVERIES = 3
PARTITIONS = 2
which = st.integers(0, 7)
times = st.sampled_from([0, 1, VISIBILITY // 2, VISIBILITY, 2 * VISIBILITY])
Key = tuple[int, int]


@dataclass
class Row:
    """A message that was given out and is not done."""

    due: int
    delivered: int = 0
    ack: Ack | None = None


def forsake(worker: Worker) -> None:
    """As if its process had been killed."""
    worker._acks.close()
    worker._closed = True


class Story(RuleBasedStateMachine):
    """Two handles of one log with a queue, workers at both, and beside them `rows`: what is not done."""

    def __init__(self) -> None:
        super().__init__()
        self.space = TemporaryDirectory()
        self.now = 1_000_000
        self.logs: list[Log] = []
        self.workers: list[Worker] = []
        self.held: list[Message] = []
        """Messages that workers have not tried to settle."""
        self.rows: dict[Key, Row] = {}
        self.fronts, self.ends = [0] * PARTITIONS, [0] * PARTITIONS
        self.dead = Counter[Key]()
        self.waiting_dead: list[Key] = []

    @initialize()
    def begin(self) -> None:
        folder = Path(self.space.name) / "log"
        self.logs = [Log.open(folder, disk=QuickDisk(), clock=lambda: self.now) for _ in range(2)]
        self.logs[0].create_topic("jobs", "n INT", partitions=PARTITIONS)
        how = Delivering(timedelta(microseconds=VISIBILITY), DELIVERIES)
        self.logs[0].create_queue("q", "jobs", how)
        self.workers = [self.queue(at).worker() for at in (0, 0, 1)]

    def teardown(self) -> None:
        for log in self.logs:
            log.close()
        self.space.cleanup()

    def queue(self, handle: int) -> Queue:
        return self.logs[handle].queue("q")

    # What is done

    @rule(partition=st.integers(0, PARTITIONS - 1), count=st.integers(1, 5))
    def append(self, partition: int, count: int) -> None:
        self.logs[0].append("jobs", [{"n": 0}] * count, partition=partition)
        self.ends[partition] += count

    @rule(at=which, limit=st.integers(1, 6))
    def take(self, at: int, limit: int) -> None:
        self.bury()
        due = {key for key, row in self.rows.items() if row.due <= self.now}
        fresh = {(part, offset) for part in range(PARTITIONS) for offset in range(self.fronts[part], self.ends[part])}
        messages = self.workers[at % len(self.workers)].take(limit)
        taken = {(message.entry.partition, message.entry.offset): message for message in messages}
        assert len(taken) == len(messages) == min(limit, len(due) + len(fresh))
        assert taken.keys() <= due | fresh
        assert len(taken.keys() & due) == min(limit, len(due)), "what has waited comes first"
        for key, message in taken.items():
            row = self.rows.setdefault(key, Row(0))
            row.delivered, row.due, row.ack = row.delivered + 1, self.now + VISIBILITY, message.ack
            assert message.deliveries == row.delivered
            self.fronts[key[0]] = max(self.fronts[key[0]], key[1] + 1)
        self.held += messages

    def bury(self) -> None:
        for key, row in list(self.rows.items()):
            if row.due <= self.now and row.delivered >= DELIVERIES:
                self.die(key)

    def die(self, key: Key) -> None:
        del self.rows[key]
        self.dead[key] += 1
        self.waiting_dead.append(key)

    def settle(self, at: int, how: str, by: int = 0) -> Key | None:
        """The message that was settled, if it was still its worker's."""
        message = self.held.pop(at % len(self.held))
        if message.worker._closed:
            return None
        key = (message.entry.partition, message.entry.offset)
        more = {"extend": (timedelta(microseconds=by),), "reject": ("bad",)}.get(how, ())
        keywords = {"after": timedelta(microseconds=by)} if how == "release" else {}
        ours = key in self.rows and self.rows[key].ack == message.ack
        if ours:
            getattr(message, how)(*more, **keywords)
            return key
        with pytest.raises(Fenced):
            getattr(message, how)(*more, **keywords)
        return None

    @precondition(lambda self: self.held)
    @rule(at=which)
    def acknowledge(self, at: int) -> None:
        if key := self.settle(at, "acknowledge"):
            del self.rows[key]

    @precondition(lambda self: self.held)
    @rule(at=which, after=times)
    def release(self, at: int, after: int) -> None:
        if key := self.settle(at, "release", after):
            self.rows[key].due, self.rows[key].ack = self.now + after, None

    @precondition(lambda self: self.held)
    @rule(at=which)
    def reject(self, at: int) -> None:
        if key := self.settle(at, "reject"):
            self.die(key)
            self.bury()

    @precondition(lambda self: self.held)
    @rule(at=which, by=times)
    def extend(self, at: int, by: int) -> None:
        message = self.held[at % len(self.held)]
        if key := self.settle(at, "extend", by):
            self.rows[key].due = self.now + by
            self.held.append(message)

    @rule(by=times)
    def pass_time(self, by: int) -> None:
        self.now += by

    @rule(at=which, handle=st.integers(0, 1))
    def kill(self, at: int, handle: int) -> None:
        forsake(self.workers.pop(at % len(self.workers)))
        self.workers.append(self.queue(handle).worker())

    @rule(at=which, handle=st.integers(0, 1))
    def close(self, at: int, handle: int) -> None:
        worker = self.workers.pop(at % len(self.workers))
        for message in self.held:
            key = (message.entry.partition, message.entry.offset)
            if message.worker is worker and key in self.rows and self.rows[key].ack == message.ack:
                self.rows[key].due, self.rows[key].ack = self.now, None
        worker.close()
        self.workers.append(self.queue(handle).worker())

    @rule(at=which)
    def sync(self, at: int) -> None:
        self.workers[at % len(self.workers)].sync()

    @rule(handle=st.integers(0, 1), limit=st.one_of(st.none(), st.integers(0, 3)))
    def redrive(self, handle: int, limit: int | None) -> None:
        self.bury()
        count = len(self.waiting_dead) if limit is None else min(limit, len(self.waiting_dead))
        assert self.queue(handle).redrive(limit=limit) == count
        order = [
            (int(entry.headers["penstock.partition"]), int(entry.headers["penstock.offset"]))
            for entry in self.logs[0].read("q.dead-letters")
        ]
        for key in order[len(order) - len(self.waiting_dead) :][:count]:
            self.waiting_dead.remove(key)
            self.rows[key] = Row(self.now)

    # What must hold

    @rule(handle=st.integers(0, 1))
    def describe(self, handle: int) -> None:
        state = self.queue(handle).describe()
        flying = sum(row.ack is not None and row.due > self.now for row in self.rows.values())
        unseen = sum(self.ends) - sum(self.fronts)
        assert (state.waiting, state.in_flight) == (unseen + len(self.rows) - flying, flying)
        assert state.dead == len(self.waiting_dead)

    @invariant()
    def every_dead_letter_is_there_once(self) -> None:
        if self.logs:
            letters = self.logs[1].read("q.dead-letters")
            found = Counter((int(e.headers["penstock.partition"]), int(e.headers["penstock.offset"])) for e in letters)
            assert found == self.dead

    @invariant()
    def what_is_not_done_is_not_below_the_lowest_offset(self) -> None:
        for part, lowest in self.logs[1].consumers.lowest("jobs").items() if self.logs else ():
            assert lowest <= self.fronts[part]
            assert all(offset >= lowest for where, offset in self.rows if where == part)


TestStory = Story.TestCase
TestStory.settings = examples(40, steps=40)
