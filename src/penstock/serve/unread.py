"""Unread frames: those with something for the pipeline that its answers do not know yet.

Every frame is looked at once, however often somebody asks: where other pipelines write to the same log, and this one
rests, they may be millions, and who waits for a position asks a hundred times a second.
"""

from bisect import bisect_left
from collections.abc import Collection
from threading import Lock

from penstock.log.frame import Header
from penstock.log.protocol import OrderedLog
from penstock.views.lineage import frames_between

MOST = 10_000
"""Frames that are counted."""


class Unread:
    """Can be asked by several threads."""

    def __init__(self, log: OrderedLog, topics: Collection[str], scopes: Collection[str]) -> None:
        self._log = log
        self._topics = topics
        self._scopes = scopes
        self._lock = Lock()
        self._start = self._end = 0
        self._frames: list[int] = []
        """Those of ours from the start up to the end, to which all were looked at."""

    def count(self, start: int, end: int) -> int:
        """How many there are from `start` up to, not including, `end`; no more than are counted."""
        with self._lock:
            if not self._start <= start <= self._end:
                self._frames, self._end = [], start
            self._start = start
            del self._frames[: bisect_left(self._frames, start)]
            if self._end < end:
                self._look(end)
            return bisect_left(self._frames, end)

    def _look(self, end: int) -> None:
        for header in frames_between(self._log, self._end, end):
            if len(self._frames) >= MOST:
                return
            if self._is_ours(header):
                self._frames.append(header.frame)
            self._end = header.frame + 1
        self._end = end

    def _is_ours(self, header: Header) -> bool:
        return any(block.topic in self._topics for block in header.blocks) or any(
            said.topic in self._topics and said.scope in self._scopes for said in header.punctuation
        )
