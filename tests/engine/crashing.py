"""Runs of a pipeline in process groups of their own, Python and Java together, that die as a whole."""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from time import monotonic

from penstock.engine.stages import Stage
from penstock.log import Log
from tests.engine.shop import Shop

PENSTOCK = [sys.executable, "-c", "from penstock.cli import main; main()", "run"]
VICTIM = [sys.executable, "-m", "tests.engine.victim"]
SOON = 300.0
"""Seconds until a run must have come to its point, on a machine that has other things to do too."""
FRAMES, PACE = 30, 0.05
Process = subprocess.Popen[str]


@dataclass(frozen=True)
class Death:
    """Where a run dies: at a stage of the `count`-th batch that reaches it, or so many seconds after it was ready."""

    stage: Stage | None = None
    count: int = 0
    seconds: float = SOON

    def __str__(self) -> str:
        return f"{self.stage.value}, batch {self.count}" if self.stage else f"after {self.seconds:.2f} seconds"


@contextmanager
def started(*command: str) -> Iterator[Process]:
    """A process that leads a group of its own; nobody of the group is left behind."""
    run = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True)
    with run:
        try:
            yield run
        finally:
            kill(run)


def kill(run: Process) -> None:
    """The whole group, at once."""
    with suppress(ProcessLookupError):
        os.killpg(run.pid, signal.SIGKILL)


def run_and_die(shop: Shop, log: Log, death: Death) -> int | None:
    """Runs until it dies, while records come in; the batch that it died at, if it died at a stage."""
    stage = death.stage or Stage.PLANNED
    with started(*VICTIM, str(shop.folder), stage.value, str(death.count)) as run:
        assert run.stdout is not None and run.stderr is not None
        ready = run.stdout.readline()
        feed(shop, log, run, death.seconds)
        kill(run)
        said, errors = run.stdout.read(), run.stderr.read()
    assert (ready, run.returncode) == ("ready\n", -signal.SIGKILL), errors
    return int(said.split()[-1]) if death.stage else None


def feed(shop: Shop, log: Log, run: Process, seconds: float) -> None:
    """Appends some frames while the run lives, and waits until it is dead or the time is over."""
    over_at = monotonic() + seconds
    for frame in range(FRAMES):
        shop.append(log)
        left = max(0.0, over_at - monotonic())
        with suppress(subprocess.TimeoutExpired):
            run.wait(timeout=left if frame == FRAMES - 1 else min(PACE, left))
            return


def drained(shop: Shop) -> tuple[int, str]:
    """A run that nobody kills, to the end of the log, in large steps; its exit code and what it said."""
    shop.declare(max_records_per_batch=1000)
    with started(*PENSTOCK, str(shop.folder), "--once") as run:
        _, errors = run.communicate(timeout=SOON)
    return run.returncode, errors
