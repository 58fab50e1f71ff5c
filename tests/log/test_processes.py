"""Processes append and read at once: nothing is lost, doubled, torn or out of order, while stretches close and seal."""

import multiprocessing
import signal
import time
from collections import defaultdict
from collections.abc import Iterator
from multiprocessing.process import BaseProcess
from pathlib import Path
from random import Random
from typing import Any

import pytest

from penstock.log import Entry, Limits, Log
from penstock.log.disk import Disk
from tests.effort import SOAK
from tests.log.disks import QuickDisk
from tests.log.dying import DyingDisk

PROCESSES: Any = multiprocessing.get_context("fork")
LIMITS = Limits(stretch_bytes=6000, stretch_frames=5)
APPENDERS = 3
EACH = 400 if SOAK else 40
PATIENCE_SECONDS = 120


def opened(folder: Path) -> Log:
    return Log.open(folder, disk=Disk() if SOAK else QuickDisk(), limits=LIMITS)


def text(who: str, n: int) -> str:
    return f"{who} {n} " * (n % 50)


def row(who: str, n: int) -> dict[str, Any]:
    return {"who": who, "n": n, "text": text(who, n)}


def append_all(folder: Path, who: str, disk: Disk | None = None) -> None:
    """Appends EACH rows to both topics at once, and every now and then one of them again."""
    random = Random(who)
    with Log.open(folder, disk=disk, limits=LIMITS) if disk else opened(folder) as log:
        for n in range(EACH):
            log.append_all({"many": [row(who, n)], "one": [row(who, n)]}, producer=who, sequence=n)
            if random.random() < 0.2:
                again = random.randint(0, n)
                rows = {"many": [row(who, again)], "one": [row(who, again)]}
                assert log.append_all(rows, producer=who, sequence=again).repeated


def read_all(folder: Path) -> None:
    """Reads both topics again and again, until everything is there."""
    with opened(folder) as log:
        deadline = time.monotonic() + PATIENCE_SECONDS
        while time.monotonic() < deadline:
            many = list(log.read("many"))
            one = list(log.read("one"))
            check(many)
            check(one)
            later = {each(entry) for entry in one}
            assert all(each(entry) in later for entry in many), "half of a transaction was seen"
            if len(many) == APPENDERS * EACH:
                return
            time.sleep(0.05)
    raise AssertionError("not everything came")


def each(entry: Entry) -> tuple[str, int]:
    assert isinstance(entry.value, dict)
    return entry.value["who"], entry.value["n"]


def check(entries: list[Entry]) -> None:
    """Offsets have no gaps, producers are in order and complete, append times do not go back, no row is torn."""
    offsets: dict[int, int] = defaultdict(int)
    last: dict[str, int] = defaultdict(lambda: -1)
    for before, entry in zip([None, *entries], entries, strict=False):
        who, n = each(entry)
        assert entry.value == row(who, n)
        assert entry.offset == offsets[entry.partition]
        assert n == last[who] + 1
        assert before is None or (before.place < entry.place and before.appended_at <= entry.appended_at)
        offsets[entry.partition], last[who] = entry.offset + 1, n


@pytest.fixture
def beside() -> Iterator[Any]:
    """Starts functions in processes of their own; they must all end well, or be killed by their disk."""
    started: list[BaseProcess] = []

    def start(run: Any, *given: Any) -> BaseProcess:
        started.append(PROCESSES.Process(target=run, args=given))
        started[-1].start()
        return started[-1]

    yield start
    for process in started:
        process.join(PATIENCE_SECONDS)
        if process.is_alive():
            process.kill()
    assert {process.exitcode for process in started} <= {0, -signal.SIGKILL}


@pytest.fixture
def log(folder: Path) -> Iterator[Log]:
    with opened(folder) as log:
        log.create_topic("many", "who STRING, n INT, text STRING", key=("who", "n"), partitions=3)
        log.create_topic("one", "who STRING, n INT, text STRING")
        yield log


def assert_ends_well(process: BaseProcess) -> None:
    process.join(PATIENCE_SECONDS)
    assert process.exitcode == 0


def test_processes_append_and_read_at_once(folder: Path, log: Log, beside: Any) -> None:
    reader = beside(read_all, folder)
    for who in range(APPENDERS):
        beside(append_all, folder, f"p{who}")
    tail = log.tail("one", start=0)
    check([next(tail) for _ in range(APPENDERS * EACH)])
    assert_ends_well(reader)


def test_processes_that_are_killed_and_begin_again_do_not_disturb_the_others(
    folder: Path, log: Log, beside: Any
) -> None:
    reader, other = beside(read_all, folder), beside(append_all, folder, "p0")
    random = Random(0)
    for who in range(1, APPENDERS):
        for how in ("before", "after"):
            beside(append_all, folder, f"p{who}", DyingDisk(random.randrange(1, EACH * 4), how)).join()
        assert_ends_well(beside(append_all, folder, f"p{who}"))
    assert_ends_well(other)
    assert_ends_well(reader)
    assert log.set_aside() == []


def test_processes_that_make_a_log_at_once_make_one(folder: Path, beside: Any) -> None:
    for who in range(4):
        beside(make_and_append, folder, who)
    deadline = time.monotonic() + PATIENCE_SECONDS
    while time.monotonic() < deadline:
        with opened(folder) as log:
            if [topic.name for topic in log.topics()] == ["t"] and log.ends("t") == (4,):
                break
    with opened(folder) as log:
        assert sorted(entry.value["n"] for entry in log.read("t")) == [0, 1, 2, 3]  # type: ignore[index,call-overload]


def make_and_append(folder: Path, n: int) -> None:
    with opened(folder) as log:
        log.create_topic("t", "n INT")
        log.append("t", [{"n": n}])
