"""Threads and processes of one log do not disturb each other, and nobody is told what is not committed yet."""

import fcntl
import sys
import time
from collections.abc import Callable, Iterator
from functools import partial
from threading import Event, Thread
from typing import Any

import pytest

from penstock.errors import LogError
from penstock.log import Appended, EndOffset, Epoch, Limits, Log, Place
from tests.effort import SOAK
from tests.log.disks import QuickDisk, WaitingDisk

Opener = Callable[..., Log]


class Task(Thread):
    """A thread that has begun, and what its function returned or raised."""

    def __init__(self, run: Callable[[], Any]) -> None:
        super().__init__(daemon=True)
        self._do = run
        self._answer: Any = None
        self._error: BaseException | None = None
        self.start()

    def run(self) -> None:
        try:
            self._answer = self._do()
        except BaseException as error:
            self._error = error

    def answer(self) -> Any:
        self.join(30)
        assert not self.is_alive()
        if self._error:
            raise self._error
        return self._answer


@pytest.fixture
def impatient() -> Iterator[None]:
    """Threads that are interrupted all the time."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(before)


def held_log(open_log: Opener, disk: WaitingDisk | None = None) -> tuple[Log, WaitingDisk, Task]:
    """A log in the middle of an append: written, not yet synced."""
    disk = disk or WaitingDisk()
    log = open_log(disk=disk)
    log.create_topic("t", "id INT")
    disk.hold.set()
    task = Task(lambda: log.append("t", [{"id": 0}]))
    assert disk.held.wait(20)
    return log, disk, task


def waiting(log: Log, *runs: Callable[[], Any]) -> list[Task]:
    """Tasks that append, all of them in the queue."""
    tasks = [Task(run) for run in runs]
    while len(log._writer._queue) < len(tasks):
        time.sleep(0.001)
    return tasks


def test_appends_that_wait_for_the_same_turn_become_one_group(open_log: Opener) -> None:
    log, disk, task = held_log(open_log)
    tasks = waiting(log, *[lambda: log.raise_epoch("e")] * 3)
    disk.release.set()
    task.answer()
    assert sorted(each.answer() for each in tasks) == [1, 2, 3]
    assert [header.frame - header.group for header in log.frames(2)] == [0, 1, 2]


def test_a_sequence_that_two_threads_append_at_once_is_appended_once(open_log: Opener) -> None:
    log, disk, task = held_log(open_log)
    tasks = waiting(log, *[lambda: log.append_all({}, producer="p", sequence=1)] * 2)
    disk.release.set()
    task.answer()
    answers: list[Appended] = [each.answer() for each in tasks]
    assert sorted(each.repeated for each in answers) == [False, True]
    assert len({each.frame for each in answers}) == 1


def test_an_append_that_is_refused_does_not_take_others_with_it(open_log: Opener) -> None:
    log, disk, task = held_log(open_log)
    good, bad = waiting(
        log,
        lambda: log.raise_epoch("e"),
        lambda: log.append_all({}, producer="p", sequence=1, expect=[EndOffset("t", 9, 0)]),
    )
    disk.release.set()
    task.answer()
    assert good.answer() == 1
    with pytest.raises(LogError, match="has no partition 9"):
        bad.answer()


def test_an_append_that_fails_unexpectedly_does_not_take_others_with_it(open_log: Opener) -> None:
    log, disk, task = held_log(open_log)
    nonsense: Any = []
    good, bad = waiting(
        log,
        lambda: log.raise_epoch("e"),
        lambda: log.append_all({}, producer="p", sequence=1, expect=[Epoch(nonsense, 0)]),
    )
    disk.release.set()
    task.answer()
    assert good.answer() == 1
    with pytest.raises(TypeError):
        bad.answer()


class InterruptedDisk(WaitingDisk):
    """Its sync after the one that waits is interrupted."""

    def sync(self, file: int) -> None:
        if self.held.is_set() and self.hold.is_set():
            self.hold.clear()
            raise KeyboardInterrupt
        super().sync(file)


def test_an_interrupt_of_the_thread_that_writes_is_not_an_interrupt_of_the_others(open_log: Opener) -> None:
    log, disk, task = held_log(open_log, InterruptedDisk())
    tasks = waiting(log, *[lambda: log.raise_epoch("e")] * 3)
    disk.release.set()
    task.answer()
    errors = []
    for each in tasks:
        with pytest.raises((LogError, KeyboardInterrupt)) as raised:
            each.answer()
        errors.append(raised.value)
    told = [error for error in errors if isinstance(error, LogError)]
    assert len(told) == 2 and {error.detail for error in told} == {"The append may or may not be kept."}
    assert log.raise_epoch("e") == log.epoch("e")


def test_who_reads_does_not_wait_for_an_append_that_waits_for_another_process(open_log: Opener) -> None:
    log = open_log()
    log.create_topic("t", "id INT")
    log.append("t", [{"id": 0}])
    with open(log.folder / "lock") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        append = Task(lambda: log.append("t", [{"id": 1}]))
        while not log._writer._turn.locked():
            time.sleep(0.001)
        assert Task(lambda: [entry.offset for entry in log.read("t")]).answer() == [0]
        assert [topic.name for topic in Task(log.topics).answer()] == ["t"]
    append.answer()
    assert log.ends("t") == (2,)


class SlowName(str):
    """A name that takes a moment to look up."""

    asked = Event()

    def __hash__(self) -> int:
        self.asked.set()
        time.sleep(0.2)
        return str.__hash__(self)


def test_ends_that_are_not_committed_yet_are_told_to_nobody(open_log: Opener) -> None:
    disk = WaitingDisk()
    log = open_log(disk=disk)
    log.create_topic("t", "id INT")
    disk.hold.set()
    ends = Task(lambda: log.ends(SlowName("t")))
    assert SlowName.asked.wait(20)
    append = Task(lambda: log.append("t", [{"id": 0}]))
    assert ends.answer() == (0,)
    disk.release.set()
    append.answer()


class SlowPlace(Place):
    """A place during whose lookup somebody appends."""

    def __int__(self) -> int:
        if not self.log.ends("t")[0] > 1:  # type: ignore[attr-defined]
            self.log.append("t", [{"id": 1}])  # type: ignore[attr-defined]
        return super().__int__()


def test_a_follower_misses_nothing_that_is_appended_while_its_start_is_looked_up(open_log: Opener) -> None:
    log = open_log(disk=QuickDisk())
    log.create_topic("t", "id INT")
    done = log.append("t", [{"id": 0}])
    SlowPlace.log = log  # type: ignore[attr-defined]
    entry = next(iter(log.tail("t", start=SlowPlace(done.frame, 1))))
    assert entry.offset == 1


def test_readers_in_many_threads_share_a_handle(open_log: Opener, impatient: None) -> None:
    log = open_log(disk=QuickDisk(), limits=Limits(stretch_frames=1))
    log.create_topic("t", "id INT")
    for each in range(12):
        log.append("t", [{"id": each}])
    log.seal()

    def read(start: int) -> bool:
        wanted = list(range(start, 12))
        return all([entry.offset for entry in log.read("t", start=start)] == wanted for _ in range(200 if SOAK else 10))

    assert all(task.answer() for task in [Task(partial(read, start)) for start in range(10)])


def test_a_follower_and_a_writer_share_a_handle_while_the_schema_grows(open_log: Opener, impatient: None) -> None:
    log = open_log(disk=QuickDisk(), limits=Limits(stretch_frames=4))
    log.create_topic("t", "id INT")
    seen: list[int] = []

    def follow() -> None:
        for entry in log.tail("t", start=0, stop=lambda: len(seen) == 60):
            seen.append(entry.offset)

    follower, schema = Task(follow), "id INT"
    for each in range(60):
        if each % 6 == 0:
            schema += f", c{each} INT"
            log.change_schema("t", schema)
        log.append("t", [{"id": each}])
    follower.answer()
    assert seen == list(range(60))
