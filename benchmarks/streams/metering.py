"""What the batches of a Spark query took, the first ones left out: those start Python, compile, and fill caches.

Spark's progress says when a batch began and how long it took; what the processes had used of the processor by then is
looked up in samples that are taken all the while.
"""

import threading
import time
from collections.abc import Sequence
from datetime import datetime
from typing import Any, Self

import numpy as np

from benchmarks._batches import records_read
from benchmarks._processes import cpu_seconds
from penstock.log import Log

EVERY_SECONDS = 0.1


class Samples:
    """Of the processor's time, while inside."""

    def __init__(self) -> None:
        self._found: list[tuple[float, float]] = []
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._take, daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join()

    def _take(self) -> None:
        while not self._over.wait(EVERY_SECONDS):
            self._sample()
        self._sample()

    def _sample(self) -> None:
        self._found.append((time.time(), cpu_seconds()))

    def between(self, start: float, end: float) -> float:
        at, taken = zip(*self._found, strict=True)
        return float(np.interp(end, at, taken) - np.interp(start, at, taken))


def figures(progress: Sequence[Any], samples: Samples, warm: int, log: Log) -> dict[str, float]:
    """Rows, seconds and processor time from the batch number `warm` on, counting those that had rows."""
    batches = [(each, records_read(each, log)) for each in progress if each["durationMs"].get("addBatch")]
    fed = [at for at, (_, rows) in enumerate(batches) if rows]
    measured = batches[fed[min(warm, len(fed) - 1)] :]
    first, last = measured[0][0], measured[-1][0]
    start, end = _began(first), _began(last) + last["durationMs"]["triggerExecution"] / 1000
    return {
        "rows": sum(rows for _, rows in measured),
        "seconds": end - start,
        "cpu_seconds": samples.between(start, end),
    }


def _began(progress: Any) -> float:
    return datetime.fromisoformat(progress["timestamp"]).timestamp()
