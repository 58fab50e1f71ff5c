"""A view through rounds of refresh, in one run without a pause: each round comes when the one before has been read.

Nothing is restarted between loading and the rounds, so Java has compiled by then what a batch needs, and state is in
memory as far as it would be in a pipeline that is at work.
"""

import json
from collections.abc import Callable
from typing import Any

from pyspark.sql.streaming.query import StreamingQuery

from penstock.engine.batches import Committed

Change = Callable[[], int]
"""Appends one round; the frame in which it is."""


class Rounds:
    """Asked again and again by the run, as whether to stop: when all that was appended is in a batch that has ended, it
    notes the batch's seconds and appends the next round; it says yes after so many.
    """

    def __init__(self, loaded: int, count: int, change: Change) -> None:
        self._frame = loaded
        self._left = count
        self._change = change
        self._read_until = 0
        self.loading: list[float] = []
        self.refreshing: list[float] = []

    def on_batch(self, batch: Committed) -> None:
        self._read_until = batch.end

    def are_over(self, query: StreamingQuery) -> bool:
        if self._read_until <= self._frame or not (ended := ended_since(query, self._frame)):
            return False
        if self.loading:
            self.refreshing.append(ended[-1])
        else:
            self.loading = ended
        if len(self.refreshing) == self._left:
            return True
        self._frame = self._change()
        return False


def ended_since(query: StreamingQuery, frame: int) -> list[float]:
    """The seconds of all batches, once one that has read the frame has ended: Spark tells of it after its commit."""
    fed: list[Any] = [each for each in query.recentProgress if each["numInputRows"]]
    if not fed or json.loads(fed[-1]["sources"][0]["endOffset"])["frame"] <= frame:
        return []
    return [each["durationMs"]["triggerExecution"] / 1000 for each in fed]
