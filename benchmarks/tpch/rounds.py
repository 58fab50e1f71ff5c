"""A view through rounds of refresh, in one run without a pause: each round comes when the one before has been read.

Nothing is restarted between loading and the rounds, so Java has compiled by then what a batch needs, and state is in
memory as far as it would be in a pipeline that is at work.
"""

import json
from bisect import bisect_right
from collections.abc import Callable
from typing import Any

from pyspark.sql.streaming.query import StreamingQuery

from penstock.engine.batches import Committed

Change = Callable[[], int]
"""Appends one round; the frame in which it is."""


class Rounds:
    """Asked again and again by the run, as whether to stop: when all that was appended is in a batch that has ended, it
    appends the next round; it says yes after so many, and has the seconds of all batches then.
    """

    def __init__(self, loaded: int, count: int, change: Change) -> None:
        self._frames = [loaded]
        self._count = count
        self._change = change
        self._read_until = 0
        self.loading: list[float] = []
        self.refreshing: list[float] = []

    def on_batch(self, batch: Committed) -> None:
        self._read_until = batch.end

    def are_over(self, query: StreamingQuery) -> bool:
        if self._read_until <= self._frames[-1] or end(query.lastProgress) <= self._frames[-1]:
            return False
        if len(self._frames) == 1 + self._count:
            self._note(query)
            return True
        self._frames.append(self._change())
        return False

    def _note(self, query: StreamingQuery) -> None:
        """All at once: to ask Spark for all its batches while one of them runs would slow it down."""
        self.refreshing = [0.0] * self._count
        for each in query.recentProgress:
            seconds = each["durationMs"]["triggerExecution"] / 1000
            found = bisect_right(self._frames, end(each) - 1) - 2
            if each["numInputRows"] and found < 0:
                self.loading.append(seconds)
            elif each["numInputRows"]:
                self.refreshing[found] += seconds


def end(progress: Any) -> int:
    """The first frame that a batch has not read; 0 before the first batch has ended."""
    return int(json.loads(progress["sources"][0]["endOffset"])["frame"]) if progress else 0
