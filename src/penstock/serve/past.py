"""The past: what a view held at an older frame, folded from its change topic into memory.

So are views answered that the store does not keep as tables. Folding takes as long as all changes up to there; the last
few that were asked for are kept. What was compacted or let go since is refused, with the reason.
"""

from collections import OrderedDict
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from threading import BoundedSemaphore, Lock
from time import monotonic
from uuid import uuid4

from penstock.errors import RecordsGone, ServeError, TooSlow, ViewError
from penstock.serve.positions import Asked
from penstock.serve.source import Served
from penstock.views import Lineage, SqliteStore, Step, ViewReader
from penstock.views.lineage import current_before
from penstock.views.steps import steps_until

KEPT = 4
WAITING = 8
"""Who may ask at once for what is not folded yet."""
Name = tuple[str, int, int | None]
"""A view, a frame, and the lineage that whoever asks takes it to be of."""


class Past:
    """One is folded at a time. Few wait for it, and no longer than they have time: each takes a thread meanwhile."""

    def __init__(self, served: Served) -> None:
        self._served = served
        self._lock = Lock()
        self._folding = Lock()
        self._waiting = BoundedSemaphore(WAITING)
        self._closed = False
        self._readers: OrderedDict[Name, ViewReader] = OrderedDict()

    def close(self) -> None:
        """What is being folded meanwhile is forgotten when it is done."""
        with self._lock:
            self._closed = True
            while self._readers:
                self._readers.popitem()[1].close()

    def reader(self, view: str, at: Asked | None, seconds: float) -> ViewReader:
        """A reader of one view as it was at a position, or as it is now."""
        if at is not None:
            self._served.check_exists(at)
        frame = self._served.log.mark().next_frame - 1 if at is None else at.frame
        name, until = (view.lower(), frame, None if at is None else at.lineage), monotonic() + seconds
        if (found := self._known(name)) is not None:
            return found
        with self._turn(seconds):
            return self._known(name) or self._keep(name, self._folded(view, frame, at, (until, seconds)))

    def _known(self, name: Name) -> ViewReader | None:
        with self._lock:
            if name in self._readers:
                self._readers.move_to_end(name)
            return self._readers.get(name)

    def _keep(self, name: Name, reader: ViewReader) -> ViewReader:
        with self._lock:
            if not self._closed:
                self._readers[name] = reader
            while len(self._readers) > KEPT:
                self._readers.popitem(last=False)  # with the last who reads it, its memory goes
        return reader

    @contextmanager
    def _turn(self, seconds: float) -> Iterator[None]:
        if not self._waiting.acquire(blocking=False):
            raise ServeError(
                "too many ask at once for what must be folded from the log", hint="Try again later.", status=503
            )
        try:
            if not self._folding.acquire(timeout=seconds):
                raise _too_slow(seconds)
            try:
                yield
            finally:
                self._folding.release()
        finally:
            self._waiting.release()

    def _folded(self, view: str, frame: int, at: Asked | None, time: tuple[float, float]) -> ViewReader:
        lineage = self._lineage(frame, at)
        try:
            alone = replace(lineage, views=(replace(lineage.view(view), kept="table"),))
            path = f"file:/penstock-{uuid4().hex}?vfs=memdb"
            with SqliteStore(path) as store:
                store.switch(alone, _timely(steps_until(self._served.log, alone, frame), *time))
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


def _timely(steps: Iterator[Step], until: float, seconds: float) -> Iterator[Step]:
    for step in steps:
        if monotonic() > until:
            raise _too_slow(seconds)
        yield step


def _too_slow(seconds: float) -> TooSlow:
    return TooSlow(
        f"folding the view's changes takes longer than {seconds:g} seconds",
        hint="Read the view as it is now; views that are read often should be kept as tables.",
    )
