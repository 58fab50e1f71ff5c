"""The past: what a view held at an older frame, folded from its change topic into memory.

So are views answered that the store does not keep as tables. Folding takes as long as all changes up to there; the last
few that were asked for are kept. What was compacted or let go since is refused, with the reason.
"""

from collections import OrderedDict
from collections.abc import Iterator
from dataclasses import replace
from threading import Lock
from time import monotonic
from uuid import uuid4

from penstock.errors import RecordsGone, ServeError, TooSlow, ViewError
from penstock.serve.positions import Asked
from penstock.serve.source import Served
from penstock.views import Lineage, SqliteStore, Step, ViewReader
from penstock.views.lineage import current_before
from penstock.views.steps import steps_until

KEPT = 4


class Past:
    """One is folded at a time."""

    def __init__(self, served: Served, seconds: float) -> None:
        self._served = served
        self._seconds = seconds
        self._lock = Lock()
        self._readers: OrderedDict[tuple[str, int], ViewReader] = OrderedDict()

    def close(self) -> None:
        with self._lock:
            while self._readers:
                self._readers.popitem()[1].close()

    def reader(self, view: str, at: Asked | None) -> ViewReader:
        """A reader of one view as it was at a position, or as it is now."""
        if at is not None:
            self._served.check_exists(at)
        frame = self._served.log.mark().next_frame - 1 if at is None else at.frame
        with self._lock:
            name = view.lower()
            if (name, frame) not in self._readers:
                self._readers[name, frame] = self._folded(view, frame, at)
            self._readers.move_to_end((name, frame))
            while len(self._readers) > KEPT:
                self._readers.popitem(last=False)  # with the last who reads it, its memory goes
            return self._readers[name, frame]

    def _folded(self, view: str, frame: int, at: Asked | None) -> ViewReader:
        lineage = self._lineage(frame, at)
        try:
            alone = replace(lineage, views=(replace(lineage.view(view), kept="table"),))
            path = f"file:/penstock-{uuid4().hex}?vfs=memdb"
            with SqliteStore(path) as store:
                store.switch(alone, self._timely(steps_until(self._served.log, alone, frame)))
                return ViewReader(path)
        except TooSlow:
            raise
        except (ViewError, RecordsGone) as error:
            raise ServeError(error.primary, detail=error.detail, hint=error.hint, status=410) from error

    def _lineage(self, frame: int, at: Asked | None) -> Lineage:
        lineage = current_before(self._served.log, self._served.pipeline.name, frame + 1)
        if lineage is None or (at is not None and at.lineage not in (None, lineage.number)):
            was = "no views" if lineage is None else f"those of lineage {lineage.number}"
            raise ServeError(
                f"there is nothing at position {at}",
                detail=f"At frame {frame} readers saw {was}.",
                hint="Give a position that an answer has told.",
                status=410,
            )
        return lineage

    def _timely(self, steps: Iterator[Step]) -> Iterator[Step]:
        until = monotonic() + self._seconds
        for step in steps:
            if monotonic() > until:
                raise TooSlow(
                    f"folding the view's changes takes longer than {self._seconds:g} seconds",
                    hint="Read the view as it is now; views that are read often should be kept as tables.",
                )
            yield step
