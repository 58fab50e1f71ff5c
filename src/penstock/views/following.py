"""Following: a store reads the log of its pipeline, from where it stands.

Frames are applied in the order of the log, each once; frames of other pipelines and lineages never are. A store that
was down, that was restored from an older copy or that is new catches up. Frames that wait together share a
transaction. When another lineage has become the current one, the store switches to it in one step, and lineages that
came and went meanwhile are passed over. A store that stands where changes have been compacted since is filled anew.

A store of files takes many records at a time, and not every moment: files should be few.
"""

import time
from collections.abc import Callable, Mapping
from dataclasses import replace

from penstock.log.protocol import OrderedLog
from penstock.views.compacted import compacted_before, gone, last_compacted
from penstock.views.lineage import batches_between, check_position, current
from penstock.views.step import Kept, Lineage, Position
from penstock.views.steps import FRAMES, RECORDS, steps_of, steps_until
from penstock.views.store import Store

POLL_SECONDS = 0.005
PACE_SECONDS: Mapping[Kept, float] = {"table": 0.0, "files": 1.0}
"""At least so long from one look at the log to the next."""
AT_ONCE: Mapping[Kept, int] = {"table": RECORDS, "files": 1_000_000}
"""Frames share a transaction as long as they have no more records than that."""
OnStep = Callable[[Position], None]


def catch_up(
    log: OrderedLog,
    pipeline: str,
    store: Store,
    *,
    on_step: OnStep = lambda _: None,
    together: int = FRAMES,
    kept: Kept = "table",
) -> Position | None:
    """Brings the store to where the log stands now; the store's position then, None while nothing is current yet.

    `on_step` is told every position that the store has reached; at most `together` frames share a transaction. The
    store is told of the views that are `kept` so, and of no others.
    """
    follower = _Follower(log, pipeline, store, on_step, together, kept)
    follower.catch_up()
    return store.position()


def follow(  # noqa: PLR0913 (what a follower is made of)
    log: OrderedLog,
    pipeline: str,
    store: Store,
    *,
    stop: Callable[[], bool],
    on_step: OnStep = lambda _: None,
    together: int = FRAMES,
    kept: Kept = "table",
) -> None:
    """Keeps the store up to date until `stop` says so. What the store raises ends it; the store is then as it was."""
    follower = _Follower(log, pipeline, store, on_step, together, kept)
    while not stop():
        due = time.monotonic() + PACE_SECONDS[kept]
        if not follower.catch_up():
            time.sleep(POLL_SECONDS)
        while time.monotonic() < due and not stop():
            time.sleep(POLL_SECONDS)


class _Follower:
    """Remembers between two looks at the log which frames it has seen, so that none is looked at twice."""

    def __init__(
        self, log: OrderedLog, pipeline: str, store: Store, on_step: OnStep, together: int, kept: Kept
    ) -> None:
        self._log = log
        self._pipeline = pipeline
        self._store = store
        self._on_step = on_step
        self._together = together
        self._kept = kept
        self._seen = -1
        self._left_at: Position | None = None
        self._passed = (0, 0)

    def catch_up(self) -> bool:
        """Applies what is new; whether the log has moved at all."""
        end = self._log.mark().next_frame
        position = self._store.position()
        if self._seen >= end and position == self._left_at:
            return False
        lineage = current(self._log, self._pipeline)
        if position is not None and (position != self._left_at or self._seen < 0):
            check_position(self._log, self._pipeline, position)
        if lineage is not None:
            self._bring_up(lineage, position, max(end, lineage.frame + 1))
        self._seen = end
        self._left_at = self._store.position()
        return True

    def _bring_up(self, lineage: Lineage, position: Position | None, end: int) -> None:
        fill = max(lineage.frame, self._last_compacted(lineage, position))
        if position is None or position.frame < fill:
            self._check_can_fill(lineage, position)
            self._store.switch(replace(lineage, frame=fill), steps_until(self._log, lineage, fill, kept=self._kept))
            position = self._store.position()
            assert position is not None
            self._on_step(position)
        start = max(position.frame + 1, self._seen if position == self._left_at else 0)
        first = 0 if position.batch is None else position.batch + 1
        batches = batches_between(self._log, lineage, start, end, first=first)
        views, most = lineage.kept_as(self._kept), AT_ONCE[self._kept]
        for steps in steps_of(self._log, lineage, batches, views=views, together=self._together, records=most):
            self._store.apply(steps)
            for step in steps:
                self._on_step(step.position)

    def _last_compacted(self, lineage: Lineage, position: Position | None) -> int:
        """The frame to which a store that stands inside a compacted stretch is filled anew; -1 if it does not."""
        views = lineage.kept_as(self._kept)
        below = compacted_before(self._log, lineage, views)
        seen, self._passed = self._passed, (lineage.number, below)
        if below == 0 or seen == self._passed:  # it has stood behind it before, and does not go back
            return -1
        after = position.frame if position is not None and position.lineage == lineage.number else -1
        return last_compacted(self._log, lineage, views, after)

    def _check_can_fill(self, lineage: Lineage, position: Position | None) -> None:
        if self._kept == "files" and position is not None and position.lineage == lineage.number:
            raise gone(lineage, compacted_before(self._log, lineage, lineage.kept_as("files")), "rows for the files")
