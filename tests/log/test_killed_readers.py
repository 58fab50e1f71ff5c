"""Readers in processes of their own are killed: nothing is lost, and what was acknowledged does not come again."""

import multiprocessing
import os
import signal
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from datetime import timedelta
from multiprocessing.process import BaseProcess
from pathlib import Path
from random import Random
from typing import Any

import pytest

from penstock.log import Log
from penstock.log.bound import Bound
from penstock.log.consumers import Delivering, Terms
from tests.effort import SOAK, sample
from tests.log.disks import QuickDisk
from tests.log.dying import DyingDisk, in_child

PROCESSES: Any = multiprocessing.get_context("fork")
RECORDS = 4000 if SOAK else 400
KILLS = 40 if SOAK else 6
PATIENCE_SECONDS = 120
SHORT = timedelta(milliseconds=400)
LONGER = timedelta(seconds=2)
"""A worker that stands still for so long loses what it has: then it may seem that something came again."""
MOMENT = timedelta(milliseconds=20)


def opened(folder: Path) -> Log:
    return Log.open(folder, disk=QuickDisk())


class Diary:
    """Lines that several processes write, in the order in which they wrote them; never half a line."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND)

    def write(self, *words: object) -> None:
        os.write(self._file, (" ".join(map(str, words)) + "\n").encode())

    def lines(self) -> list[list[str]]:
        return [line.split() for line in self.path.read_text().splitlines()]


@pytest.fixture
def diary(tmp_path: Path) -> Diary:
    return Diary(tmp_path / "diary")


@pytest.fixture
def log(folder: Path) -> Iterator[Log]:
    with opened(folder) as log:
        log.create_topic("jobs", "n INT NOT NULL", partitions=4)
        yield log


class Crew:
    """Processes that all do the same; some are killed, and others take their place."""

    def __init__(self, size: int, work: Callable[..., None], *given: Any) -> None:
        self._work, self._given = work, given
        self.alive: list[BaseProcess] = [self._hired() for _ in range(size)]

    def _hired(self) -> BaseProcess:
        process: BaseProcess = PROCESSES.Process(target=self._work, args=self._given, daemon=True)
        process.start()
        return process

    def lose_one(self, random: Random) -> None:
        victim = self.alive.pop(random.randrange(len(self.alive)))
        assert victim.pid
        os.kill(victim.pid, signal.SIGKILL)
        victim.join()
        assert victim.exitcode == -signal.SIGKILL, "it had ended by itself"
        self.alive.append(self._hired())

    def dismiss(self) -> None:
        for process in self.alive:
            process.kill()
            process.join()


def kill_some(crew: Crew, log: Log, is_done: Callable[[], bool]) -> None:
    """Appends while the crew is at work and some of it are killed; then waits until all is done."""
    random = Random(1)
    until = time.monotonic() + PATIENCE_SECONDS
    step = RECORDS // KILLS
    for first in range(0, RECORDS, step):
        for n in range(first, min(first + step, RECORDS)):
            log.append("jobs", [{"n": n}])
        time.sleep(random.random() * 0.1)
        crew.lose_one(random)
    while not is_done():
        assert time.monotonic() < until, "it does not end"
        assert all(process.is_alive() for process in crew.alive)
        time.sleep(0.02)
    crew.dismiss()


# Groups


def read_in_group(folder: Path, diary: Diary) -> None:
    with opened(folder) as log, log.group("g").join("jobs", terms=Terms(session=SHORT)) as member:
        while True:
            for entry in member.poll(5, wait=MOMENT):
                diary.write("read", entry.partition, entry.offset)
            member.commit()
            diary.write("committed", *(word for (_, p), after in member.positions.items() for word in (p, after)))


def test_members_that_are_killed_lose_nothing(folder: Path, log: Log, diary: Diary) -> None:
    group = log.group("g")
    group.reset("jobs", "earliest")
    crew = Crew(3, read_in_group, folder, diary)
    kill_some(crew, log, lambda: all(lag.records == 0 for lag in group.lag()))
    read = defaultdict[int, set[int]](set)
    for what, *numbers in diary.lines():
        if what == "read":
            partition, offset = map(int, numbers)
            read[partition].add(offset)
        else:
            for partition, after in zip(map(int, numbers[::2]), map(int, numbers[1::2]), strict=True):
                assert read[partition] >= {*range(after)}, "committed, and never read"
    assert {partition: len(offsets) for partition, offsets in read.items()} == dict(enumerate(log.ends("jobs")))


def test_a_killed_member_is_noticed(folder: Path, log: Log, diary: Diary) -> None:
    crew = Crew(1, read_in_group, folder, diary)
    until = time.monotonic() + PATIENCE_SECONDS
    while not diary.lines() or not log.group("g").lag()[0].member:
        assert time.monotonic() < until
    crew.dismiss()
    with log.group("g").join("jobs") as member:
        while len(member.partitions) < 4 and time.monotonic() < until:
            member.poll(wait=MOMENT)
        assert len(member.partitions) == 4


def append_in_steps(folder: Path, count: int) -> None:
    with opened(folder) as log:
        for n in range(count):
            log.append("jobs", [{"n": n}] * 3)


def test_producers_wait_for_members_that_are_killed(folder: Path, log: Log, diary: Diary) -> None:
    group, random = log.group("g"), Random(2)
    group.reset("jobs", "earliest")
    log.set_bound("jobs", Bound(30, "block", timeout=timedelta(seconds=PATIENCE_SECONDS)))
    crew = Crew(2, read_in_group, folder, diary)
    producers = [PROCESSES.Process(target=append_in_steps, args=(folder, RECORDS // 6)) for _ in range(2)]
    for producer in producers:
        producer.start()
    kills, until = 0, time.monotonic() + PATIENCE_SECONDS
    while any(producer.is_alive() for producer in producers) or any(lag.records for lag in group.lag()):
        assert time.monotonic() < until, "it does not end"
        ends = sum(log.ends("jobs"))
        assert ends - sum(group.committed().values()) <= 30
        if ends > (kills + 1) * RECORDS // 4:
            crew.lose_one(random)
            kills += 1
    crew.dismiss()
    assert [producer.exitcode for producer in producers] == [0, 0]
    assert kills == 3 and sum(log.ends("jobs")) == RECORDS // 6 * 6


# Queues


def work_at_queue(folder: Path, diary: Diary) -> None:
    with opened(folder) as log, log.queue("q").worker() as worker:
        for message in worker.messages(ahead=50):
            time.sleep(0.002)  # so that most are killed in the middle of what they have taken
            name = f"{message.entry.partition}/{message.entry.offset}"
            diary.write("got", name)
            if message.entry.value["n"] % 10 == 3:  # type: ignore[index,call-overload]
                message.reject("ends in three")
                diary.write("done", name)
            else:
                message.acknowledge()
                diary.write("done", name)


def dead_letters(log: Log) -> list[int]:
    return sorted(entry.value["n"] for entry in log.read("q.dead-letters"))  # type: ignore[index,call-overload]


def test_workers_that_are_killed_lose_nothing_and_settle_once(folder: Path, log: Log, diary: Diary) -> None:
    log.create_queue("q", "jobs", Delivering(visibility=LONGER, deliveries=1000))
    crew = Crew(4, work_at_queue, folder, diary)
    kill_some(crew, log, lambda: log.consumers.lowest("jobs") == dict(enumerate(log.ends("jobs"))))
    got, done = set(), set()
    for what, name in diary.lines():
        if what == "done":
            done.add(name)
        else:
            assert name not in done, "what was settled came again"
            got.add(name)
    assert len(got) == RECORDS
    assert dead_letters(log) == [n for n in range(RECORDS) if n % 10 == 3]


def test_what_kills_every_worker_is_a_dead_letter(folder: Path, log: Log) -> None:
    queue = log.create_queue("q", "jobs", Delivering(visibility=timedelta(milliseconds=50), deliveries=3))
    log.append("jobs", [{"n": 1}])
    for _ in range(3):
        assert in_child(die_of_a_message, folder)[1]
    with queue.worker() as worker:
        assert worker.take(wait=timedelta(seconds=1)) == []
    assert dead_letters(log) == [1]


def die_of_a_message(tell: Callable[[int], None], folder: Path) -> None:
    with opened(folder) as log, log.queue("q").worker() as worker:
        assert len(worker.take(wait=timedelta(seconds=30))) == 1
        os.kill(os.getpid(), signal.SIGKILL)


def reject_all(tell: Callable[[int], None], folder: Path, nth: int, how: str) -> None:
    disk = DyingDisk(nth, how)
    with Log.open(folder, disk=disk) as log, log.queue("q").worker() as worker:
        for message in worker.messages(ahead=2):
            message.reject("bad")
            tell(disk.done)
            if log.ends("q.dead-letters") >= (4,):
                return


@pytest.mark.parametrize("how", ["before", "half", "after"])
def test_a_message_is_a_dead_letter_once_whenever_its_worker_dies(tmp_path: Path, how: str) -> None:
    steps = operations(tmp_path / "all")
    for nth in sample(range(1, steps + 1), 5):
        folder = tmp_path / str(nth)
        made(folder)
        assert in_child(reject_all, folder, nth, how)[1]
        with opened(folder) as log, log.queue("q").worker() as worker:
            while log.ends("q.dead-letters") < (4,):
                for message in worker.take(9, wait=timedelta(seconds=1)):
                    message.reject("bad")
            assert dead_letters(log) == [0, 1, 2, 3]
            assert log.queue("q").describe().dead == 4


def made(folder: Path) -> None:
    with opened(folder) as log:
        log.create_topic("jobs", "n INT NOT NULL")
        log.append("jobs", [{"n": n} for n in range(4)])
        log.create_queue("q", "jobs", Delivering(visibility=timedelta(milliseconds=50), deliveries=9))


def operations(folder: Path) -> int:
    """How many operations of the disk it takes to reject all."""
    made(folder)
    done, killed = in_child(reject_all, folder, 0, "before")
    assert not killed
    return done
