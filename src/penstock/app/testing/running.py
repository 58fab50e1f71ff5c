"""Running cases: all of them in one Spark session, several at once, each with a pipeline and a log of its own.

A case that fails, however it does, is an outcome and does not end the others.
"""

import os
import shutil
import tempfile
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, ThreadPoolExecutor, wait
from contextlib import contextmanager
from pathlib import Path
from time import monotonic

from penstock.app.testing.bench import Ground
from penstock.app.testing.case import Case, Outcome
from penstock.app.testing.crashing import Crashes
from penstock.app.testing.how import How
from penstock.app.testing.playing import InBatch, OnEngine, reason_against
from penstock.engine.session import usable_cores

MEMORY = Path("/dev/shm")
ROOM_NEEDED = 1 << 30
OnOutcome = Callable[[Outcome], None]


def run_cases(cases: Sequence[Case], how: How, on_outcome: OnOutcome, *, on_ready: Callable[[], None]) -> None:
    """Plays the cases; `on_outcome` is told of each when it is over, `on_ready` that Spark has started."""
    with room() as folder, how.session(folder) as ground:
        on_ready()
        # Which pipelines are refused is the engine's own business: Spark's batch engine cannot tell.
        Hall(ground, folder, how).play([case for case in cases if not (how.batch and case.error)], on_outcome)


class Hall:
    """Several players at once, in one session."""

    def __init__(self, ground: Ground, folder: Path, how: How) -> None:
        self._ground = ground
        self._folder = folder
        self._how = how
        self._crashes = Crashes(how)

    def play(self, cases: Sequence[Case], on_outcome: OnOutcome) -> None:
        pool = ThreadPoolExecutor(self._how.at_once or usable_cores(), thread_name_prefix="penstock-case")
        try:
            waiting = {pool.submit(self._outcome, number, case) for number, case in enumerate(cases)}
            while waiting:
                done, waiting = wait(waiting, return_when=FIRST_COMPLETED)
                for each in done:
                    on_outcome(each.result())
        finally:
            pool.shutdown(wait=False, cancel_futures=True)  # who is under way ends with Spark
            self._crashes.end()

    def _outcome(self, number: int, case: Case) -> Outcome:
        folder = self._folder / str(number)
        folder.mkdir()
        begun = monotonic()
        reason = self._reason(folder, case)
        seconds = monotonic() - begun
        shutil.rmtree(folder, ignore_errors=True)
        return Outcome(case, reason, seconds)

    def _reason(self, folder: Path, case: Case) -> str:
        if self._how.batch:
            return reason_against(case, InBatch(self._ground, folder, case))
        if any(step.crash for step in case.steps):
            return self._crashes.reason_against(case, folder)
        return reason_against(case, OnEngine(self._ground, folder, case))


@contextmanager
def room() -> Iterator[Path]:
    """A folder for a while; in memory where there is enough of it, for nothing of this need survive."""
    roomy = MEMORY.is_dir() and os.access(MEMORY, os.W_OK) and shutil.disk_usage(MEMORY).free > ROOM_NEEDED
    with tempfile.TemporaryDirectory(
        prefix="penstock-test-", dir=MEMORY if roomy else None, ignore_cleanup_errors=True
    ) as name:
        yield Path(name)
