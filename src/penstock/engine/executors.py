"""Executors: the processes of a cluster that do the work. They are waited for, missed, and asked what they see.

Spark itself waits for them without a word and without an end. Here a run that gets none is an error after a while, one
that has lost all of them says so and goes on when others come, and one whose folders they do not see does not begin.
"""

from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from time import monotonic, sleep
from typing import Any, Final

from py4j.protocol import Py4JError
from pyspark.sql import SparkSession

from penstock.errors import EngineError
from penstock.log.protocol import OrderedLog
from penstock.model import duration_text
from penstock.model.duration import parse_duration

PATIENCE: Final = "spark.penstock.patience"
"""The setting that says how long executors are waited for."""
USUAL: Final = "1 minute"
POLL: Final = timedelta(milliseconds=50)
LOOK: Final = timedelta(seconds=1)
IDENTITY: Final = "identity.json"


def executors(spark: SparkSession) -> int:
    """How many there are now."""
    context: Any = spark.sparkContext._jsc.sc()
    return len(context.statusTracker().getExecutorInfos()) - 1  # the driver is counted too


def await_executors(spark: SparkSession) -> None:
    """Returns when there is one; raises after the patience that the session's settings have."""
    patience = parse_duration(str(spark.conf.get(PATIENCE, USUAL)))
    until = monotonic() + patience.total_seconds()
    while executors(spark) < 1:
        if monotonic() > until:
            raise _none_has_come(spark, patience)
        sleep(POLL.total_seconds())


def _none_has_come(spark: SparkSession, patience: timedelta) -> EngineError:
    memory, cores = spark.conf.get("spark.executor.memory", "1g"), spark.conf.get("spark.executor.cores", None)
    wanted = f"{memory} of memory and {cores or 'any number of'} cores"
    host = spark.conf.get("spark.driver.host", "this machine")
    return EngineError(
        f"no executor has come from {spark.sparkContext.master} within {duration_text(patience)}",
        detail=f"An executor needs {wanted}, and has to reach the driver at {host}.",
        hint="Are there workers, with so much to spare? Do they find the driver, or is spark.driver.host another? "
        f"To wait longer: --conf {PATIENCE}='10 minutes'",
    )


class Attendance:
    """Whether there are executors, said when there are none any more, and when there are again."""

    def __init__(self, spark: SparkSession, say: Callable[[str], None]) -> None:
        self._spark = spark
        self._say = say
        self._missed = False
        self._next = monotonic()

    def look(self) -> None:
        """Call it as often as you like."""
        if monotonic() < self._next:
            return
        self._next = monotonic() + LOOK.total_seconds()
        try:
            count = executors(self._spark)
        except Py4JError:  # Spark has ended; whoever waits for the query is told why
            return
        if (count < 1) != self._missed:
            self._missed = count < 1
            master = self._spark.sparkContext.master
            self._say(f"waiting for {master}: no executor is left" if self._missed else f"{master} goes on")


def check_sees_checkpoints(spark: SparkSession, lock: Path, pipeline: str) -> None:
    """Refuses a folder of checkpoints that executors do not share with this process; `lock` is a file in it."""
    if found := _unseen(spark, lock, writes=True):
        host, what = found
        raise EngineError(
            f'the checkpoints of pipeline "{pipeline}" are not shared with the worker {host}',
            detail=f"On that machine, {what}",
            hint="Name a folder that all machines have under the same path: SET checkpoints = '/mnt/shared/penstock'",
        )


def check_sees_log(spark: SparkSession, log: OrderedLog) -> None:
    """Refuses an embedded log that executors cannot read."""
    if found := _unseen(spark, log.folder / IDENTITY, writes=False):
        host, what = found
        raise EngineError(
            f'the log in "{log.folder}" is not shared with the worker {host}',
            detail=f"On that machine, {what}",
            hint="Put the log on Kafka: SET log = 'kafka://HOST:PORT/PREFIX'. One in a folder is for workers on its "
            "own machine.",
        )


def _unseen(spark: SparkSession, file: Path, *, writes: bool) -> tuple[str, str] | None:
    """A host on which the file is not what it is here, and how that shows; None if all executors see it."""
    jvm: Any = spark._jvm
    context: Any = spark.sparkContext._jsc.sc()
    told = list(jvm.penstock.kernel.engine.Shared.unseen(context, str(file.absolute()), writes))
    return (str(told[0]._1()), str(told[0]._2())) if told else None
