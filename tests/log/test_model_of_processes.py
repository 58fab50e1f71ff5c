"""Random stories of several processes: whoever appends, every process reads what plain lists would hold."""

import multiprocessing
import os
import signal
from collections.abc import Callable
from multiprocessing.connection import Connection
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from penstock.errors import ConditionFailed
from penstock.log import Appended, EndOffset, Epoch, Limits, Log
from tests.effort import examples
from tests.log.disks import QuickDisk
from tests.log.test_places import staged

PROCESSES: Any = multiprocessing.get_context("fork")
WORKERS = 3
LIMITS = [Limits(), Limits(stretch_frames=3), Limits(stretch_bytes=1500, stretch_frames=5)]
PATIENCE_SECONDS = 60
PARTITIONS = 2

Row = dict[str, int]
who = st.integers(0, WORKERS - 1)
counts = st.integers(1, 3)


class Worker:
    """A process of its own, which opens a log when asked to, and does there what it is told."""

    def __init__(self) -> None:
        self.pipe, other = PROCESSES.Pipe()
        self.process = PROCESSES.Process(target=work, args=(other,), daemon=True)
        self.process.start()
        other.close()

    def ask(self, do: str, *given: Any, **more: Any) -> Any:
        self.pipe.send((do, given, more))
        assert self.pipe.poll(PATIENCE_SECONDS), f"{do} does not end"
        answer = self.pipe.recv()
        if isinstance(answer, Exception):
            raise answer
        return answer

    def kill(self) -> None:
        os.kill(self.process.pid, signal.SIGKILL)
        self.process.join()
        self.pipe.close()


def work(pipe: Connection) -> None:
    log: Log | None = None
    while True:
        do, given, more = pipe.recv()
        try:
            if do == "open":
                if log is not None:
                    log.close()
                folder, limits = given
                log = Log.open(folder, disk=QuickDisk(), limits=limits)
                answer: Any = None
            else:
                answer = ORDERS[do](log, *given, **more)
        except ConditionFailed as error:
            answer = ConditionFailed(error.primary)  # one that can be sent
        except Exception as error:
            answer = AssertionError(f"{do}: {error!r}")
        pipe.send(answer)


def append_file(log: Log, rows: list[Row], partition: int) -> Appended:
    return log.append_files({("t", partition): [staged(log, "t", rows)]})


def read(log: Log) -> list[tuple[int, int, Row]]:
    return [(entry.partition, entry.offset, dict(entry.value)) for entry in log.read("t")]  # type: ignore[arg-type]


ORDERS: dict[str, Callable[..., Any]] = {
    "append": Log.append,
    "append_file": append_file,
    "ends": Log.ends,
    "raise_epoch": Log.raise_epoch,
    "read": read,
    "seal": Log.seal,
}


@pytest.fixture(scope="module", autouse=True)
def workers() -> Any:
    """Started once: a story only has them open another log."""
    Story.workers = [Worker() for _ in range(WORKERS)]
    yield
    for worker in Story.workers:
        worker.kill()


class Story(RuleBasedStateMachine):
    """The processes, and beside them `records`: what must be in the log, in the order of appends."""

    workers: list[Worker]

    def __init__(self) -> None:
        super().__init__()
        self.space = TemporaryDirectory()
        self.records: list[tuple[int, int, Row]] = []
        self.sequences: dict[int, Appended] = {}
        self.epoch = self.last_id = 0

    @initialize(limits=st.sampled_from(LIMITS))
    def begin(self, limits: Limits) -> None:
        self.given = (Path(self.space.name) / "log", limits)
        with Log.open(self.given[0]) as log:
            log.create_topic("t", "id INT NOT NULL", partitions=PARTITIONS)
        for worker in self.workers:
            worker.ask("open", *self.given)

    def teardown(self) -> None:
        self.space.cleanup()

    def rows(self, count: int) -> list[Row]:
        self.last_id += count
        return [{"id": each} for each in range(self.last_id - count, self.last_id)]

    def ends(self) -> tuple[int, ...]:
        return tuple(sum(partition == each for partition, _, _ in self.records) for each in range(PARTITIONS))

    def take_in(self, done: Appended, rows: list[Row], partition: int) -> None:
        (span,) = done.spans
        assert (span.partition, span.base, span.count) == (partition, self.ends()[partition], len(rows))
        self.records += [(partition, offset, row) for offset, row in enumerate(rows, span.base)]

    @rule(who=who, count=counts, partition=st.integers(0, PARTITIONS - 1))
    def append(self, who: int, count: int, partition: int) -> None:
        rows = self.rows(count)
        self.take_in(self.workers[who].ask("append", "t", rows, partition=partition), rows, partition)

    @rule(who=who, count=counts, partition=st.integers(0, PARTITIONS - 1))
    def append_a_file(self, who: int, count: int, partition: int) -> None:
        rows = self.rows(count)
        self.take_in(self.workers[who].ask("append_file", rows, partition), rows, partition)

    @rule(who=who)
    def append_under_a_sequence(self, who: int) -> None:
        sequence, rows = len(self.sequences), self.rows(1)
        done = self.workers[who].ask("append", "t", rows, partition=0, producer="p", sequence=sequence)
        self.sequences[sequence] = done
        self.take_in(done, rows, 0)

    @precondition(lambda self: self.sequences)
    @rule(who=who, which=st.integers(0, 100))
    def repeat_a_sequence(self, who: int, which: int) -> None:
        sequence = which % len(self.sequences)
        again = self.workers[who].ask("append", "t", [{"id": -1}], producer="p", sequence=sequence)
        assert (again.spans, again.repeated) == (self.sequences[sequence].spans, True)

    @rule(who=who, off=st.integers(0, 1))
    def append_on_conditions(self, who: int, off: int) -> None:
        rows = self.rows(1)
        expect = [EndOffset("t", 0, self.ends()[0]), Epoch("e", self.epoch - off)]
        if off:
            with pytest.raises(ConditionFailed):
                self.workers[who].ask("append", "t", rows, partition=0, expect=expect)
        else:
            self.take_in(self.workers[who].ask("append", "t", rows, partition=0, expect=expect), rows, 0)

    @rule(who=who)
    def raise_the_epoch(self, who: int) -> None:
        self.epoch += 1
        assert self.workers[who].ask("raise_epoch", "e") == self.epoch

    @rule(who=who)
    def seal(self, who: int) -> None:
        assert self.workers[who].ask("seal") == 0

    @rule(who=who)
    def open_again(self, who: int) -> None:
        self.workers[who].ask("open", *self.given)

    @rule(who=who)
    def kill(self, who: int) -> None:
        self.workers[who].kill()
        self.workers[who] = Worker()
        self.workers[who].ask("open", *self.given)

    @invariant()
    def every_process_reads_the_same(self) -> None:
        for worker in self.workers:
            assert worker.ask("ends", "t") == self.ends()
            assert worker.ask("read") == self.records


TestStory = Story.TestCase
TestStory.settings = examples(5, steps=15)
