"""Locks: one run at a time works on the checkpoints of a pipeline.

There are two, because a run is two processes, and either may outlive the other: Python's, on the pipeline's folder, and
Java's, on the checkpoint that it writes. They hold on folders that several machines share too, where the share has
locks; those of NFS go some time after the machine of the holder has. A newer run waits a while for the older to leave,
then names who holds it.
"""

import fcntl
import os
import socket
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path
from time import monotonic, sleep

from pyspark.sql import SparkSession

from penstock.engine.lineage import Lineage
from penstock.engine.nodes import Handle
from penstock.errors import EngineError

LOCK = "lock"
"""The file in a folder that is locked."""
PATIENCE = timedelta(seconds=30)
POLL = timedelta(milliseconds=20)


@contextmanager
def locked(home: Path, pipeline: str, *, patience: timedelta = PATIENCE) -> Iterator[None]:
    """Inside, no other Python process works on the pipeline's folder."""
    home.mkdir(parents=True, exist_ok=True)
    with open(home / LOCK, "a+") as file:
        _wait(lambda: _taken(file.fileno()), Path(file.name), pipeline, patience)
        file.truncate(0)
        file.write(f"{os.getpid()} on {socket.gethostname()}")
        file.flush()
        yield


def _taken(file: int) -> bool:
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def hold(spark: SparkSession, lineage: Lineage, *, patience: timedelta = PATIENCE) -> None:
    """From now on, until it ends, no other Java process works on the lineage's checkpoint."""
    jvm: Handle = spark._jvm
    path = lineage.folder / LOCK
    take, host = jvm.penstock.kernel.engine.Held.take, socket.gethostname()
    _wait(lambda: bool(take(str(path), host)), path, lineage.pipeline, patience)


def _wait(taken: Callable[[], bool], path: Path, pipeline: str, patience: timedelta) -> None:
    until = monotonic() + patience.total_seconds()
    while not taken():
        if monotonic() > until:
            raise EngineError(
                f'pipeline "{pipeline}" is held by another process',
                detail=f"Process {path.read_text().strip()} has not left within {patience.total_seconds():g} seconds.",
                hint="Stop it, then try again.",
            )
        sleep(POLL.total_seconds())
