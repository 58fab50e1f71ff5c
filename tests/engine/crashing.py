"""Runs of a pipeline in process groups of their own, Python and Java, that die: as a whole, or Python alone."""

import json
import os
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from time import monotonic
from typing import Any

from penstock.engine.stages import Stage
from penstock.log import Log
from tests.engine.business import Business

PENSTOCK = [sys.executable, "-c", "from penstock.cli import main; main()", "run"]
VICTIM = [sys.executable, "-m", "tests.engine.victim"]
SOON = 300.0
"""Seconds until a run must have come to its point, on a machine that has other things to do too."""
FRAMES, PACE = 30, 0.05


@dataclass(frozen=True)
class Death:
    """Where a run dies: at a stage of the `count`-th batch that reaches it, or so many seconds after it was ready.

    Where Python dies `alone`, Java is still there for a while.
    """

    stage: Stage | None = None
    count: int = 0
    seconds: float = SOON
    alone: bool = False

    def told(self) -> dict[str, Any]:
        if self.stage is None:
            return {"at": "any moment", "seconds": round(self.seconds, 3), "Python alone": self.alone}
        return {"at": self.stage.value, "count": self.count, "Python alone": self.alone}


@dataclass(frozen=True)
class Running:
    """A process that leads a group of its own. What it says goes to files: pipes would end with its Java process."""

    process: subprocess.Popen[bytes]
    folder: Path

    def said(self) -> list[str]:
        return (self.folder / "out").read_text().splitlines()

    def errors(self) -> str:
        return (self.folder / "err").read_text()

    def wait(self, seconds: float = SOON) -> int:
        """Its exit code, soon."""
        return self.process.wait(seconds)

    def until(self, holds: Callable[[], bool], seconds: float = SOON) -> None:
        """Waits until that is so; fails if the process ends before."""
        until = monotonic() + seconds
        while not holds():
            assert self.process.poll() is None and monotonic() < until, self.errors()
            self.lives(PACE)

    def lives(self, seconds: float) -> bool:
        """Whether it still does after that time."""
        with suppress(subprocess.TimeoutExpired):
            self.process.wait(seconds)
            return False
        return True

    def kill(self, *, alone: bool = False) -> None:
        with suppress(ProcessLookupError):
            os.kill(self.process.pid, signal.SIGKILL) if alone else os.killpg(self.process.pid, signal.SIGKILL)


@contextmanager
def started(*command: str, alone: bool = False) -> Iterator[Running]:
    """A process; in the end it is killed, with its group unless it is to die `alone`."""
    with TemporaryDirectory() as folder, open(f"{folder}/out", "wb") as out, open(f"{folder}/err", "wb") as err:
        process = subprocess.Popen(command, stdout=out, stderr=err, start_new_session=True)
        run = Running(process, Path(folder))
        try:
            yield run
        finally:
            run.kill(alone=alone)
            process.wait()


def run_and_die(business: Business, log: Log, death: Death, *, frames: int = FRAMES) -> int | None:
    """Runs until it dies, while frames come in. The batch that it died at; if that was at any moment, the last one
    that it said was in the store, if there was one.
    """
    place = [(death.stage or Stage.STORED).value, str(death.count), "alone" if death.alone else "together"]
    with started(*VICTIM, str(business.folder), *place, alone=death.alone) as run:
        # A store that is behind catches up before the run is ready, and may die of it.
        run.until(lambda: "ready" in run.said() or run.process.poll() == -signal.SIGKILL)
        feed(business, log, run, death.seconds, frames)
        if death.stage is None:
            run.kill(alone=death.alone)
        assert run.wait() == -signal.SIGKILL, run.errors()
        batches = [int(line) for line in run.said() if line.isdecimal()]
        return batches[-1] if batches else None


def feed(business: Business, log: Log, run: Running, seconds: float, frames: int) -> None:
    """Appends while the run lives, and waits until it is dead or the time is over."""
    over_at = monotonic() + seconds
    for _ in range(frames):
        business.append(log)
        if not run.lives(PACE) or monotonic() > over_at:
            return
    run.lives(max(0.0, over_at - monotonic()))


def drained(business: Business, *, max_records_per_batch: int = 1000) -> tuple[int, str]:
    """A run that nobody kills, to the end of the log, by default in large steps; its exit code and what it said."""
    business.declare(max_records_per_batch=max_records_per_batch)
    with started(*PENSTOCK, str(business.folder), "--once") as run:
        return run.wait(), run.errors()


def write_stories(path: Path, stories: Sequence[Mapping[str, Any]]) -> None:
    """For the record: how often runs died where, and all stories."""
    hits = Counter(kill["at"] for story in stories for kill in story["kills"])
    path.parent.mkdir(exist_ok=True)
    path.write_text(json.dumps({"hits": hits, "stories": stories}, indent=1) + "\n")
