"""Running cases: all of them in one Spark session, several at once, each with a pipeline and a log of its own.

What a case costs is mostly Spark's: planning, starting a query, and the fixed cost of every batch. So the session is
tuned for many small queries: expressions are interpreted, not compiled, Java's compiler does only what is quick, and
everything lies in memory where the machine offers that. This changes how soon the answers come, not what they are.
"""

import os
import shutil
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, ThreadPoolExecutor, wait
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from threading import Lock
from time import monotonic
from typing import Any

from penstock.app.testing.case import Case, Outcome
from penstock.app.testing.crashing import reason_against_crashing
from penstock.app.testing.playing import InBatch, OnEngine, reason_against
from penstock.engine.session import session, usable_cores

MEMORY = Path("/dev/shm")
ROOM_NEEDED = 1 << 30
QUICK: Mapping[str, str] = {
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.shuffle.partitions": "2",
    # State of queries that are over is closed by Spark's maintenance.
    "spark.sql.streaming.stateStore.maintenanceInterval": "15s",
    "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
}
JAVA = "spark.driver.extraJavaOptions"


@dataclass(frozen=True)
class How:
    """Where Spark runs and with which settings beside ours; how many cases at once (as many as cores without it); in
    `batch` the cases are played by Spark's batch engine instead of ours.
    """

    master: str = "local[*]"
    conf: Mapping[str, str] = field(default_factory=dict)
    at_once: int | None = None
    batch: bool = False

    def settings(self, folder: Path) -> dict[str, str]:
        java = " ".join(filter(None, (QUICK[JAVA], self.conf.get(JAVA))))
        return {**QUICK, "spark.local.dir": str(folder / "spark"), **self.conf, JAVA: java}


def run_cases(
    cases: Sequence[Case], how: How, on_outcome: Callable[[Outcome], None], *, on_ready: Callable[[], None]
) -> None:
    """Plays the cases; `on_outcome` is told of each when it is over, `on_ready` that Spark has started."""
    with _folder() as folder:
        conf = how.settings(folder)
        with session("penstock test", master=how.master, conf=conf) as spark:
            on_ready()
            # Which pipelines are refused is the engine's own business: Spark's batch engine cannot tell.
            _Hall(spark, folder, how, conf).play([c for c in cases if not (how.batch and c.error)], on_outcome)


class _Hall:
    """Several players at once, in one session."""

    def __init__(self, spark: Any, folder: Path, how: How, conf: Mapping[str, str]) -> None:
        self._spark = spark
        self._folder = folder
        self._how = how
        self._conf = conf
        self._one_crash = Lock()  # each has a Java process of its own

    def play(self, cases: Sequence[Case], on_outcome: Callable[[Outcome], None]) -> None:
        pool = ThreadPoolExecutor(self._how.at_once or usable_cores(), thread_name_prefix="penstock-case")
        try:
            open_ = {pool.submit(self._outcome, number, case) for number, case in enumerate(cases)}
            while open_:
                done, open_ = wait(open_, return_when=FIRST_COMPLETED)
                for each in done:
                    on_outcome(each.result())
        finally:
            pool.shutdown(wait=False, cancel_futures=True)  # who is under way ends with Spark

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
            return reason_against(case, InBatch(self._spark, folder, case))
        if any(step.crash for step in case.steps):
            with self._one_crash:
                return reason_against_crashing(case, folder, self._how.master, self._conf)
        return reason_against(case, OnEngine(self._spark, folder, case))


@contextmanager
def _folder() -> Iterator[Path]:
    """In memory where there is enough of it: nothing of this need survive."""
    roomy = MEMORY.is_dir() and os.access(MEMORY, os.W_OK) and shutil.disk_usage(MEMORY).free > ROOM_NEEDED
    with tempfile.TemporaryDirectory(
        prefix="penstock-test-", dir=MEMORY if roomy else None, ignore_cleanup_errors=True
    ) as name:
        yield Path(name)
