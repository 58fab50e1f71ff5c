"""Changes: how a view's answer moves, row by row, for those who want to see it move.

The rows of a view at some place and its changes from there on make the rows at every later frame. That holds across a
reset too: when another lineage becomes the current one, the changes are the difference between the two answers. The
place of a change is its frame and its number in that frame; whoever stops after one goes on with the next place.
"""

import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

import pyarrow as pa

from penstock.log import Place
from penstock.log.protocol import OrderedLog
from penstock.views.compacted import compacted_before, compacted_steps, gone, last_compacted
from penstock.views.lineage import announced, batches_between, current, current_before, frames_between
from penstock.views.query import python_rows
from penstock.views.step import Lineage, Position, Row, View
from penstock.views.steps import steps_of, steps_until
from penstock.views.values import Values, decoded_rows, encoded_columns

POLL_SECONDS = 0.005


@dataclass(frozen=True)
class RowChange:
    """A row that came (`weight` 1) or left (-1), and the position of its frame; `view` is the view whose row it is or
    was: in another lineage it may have other columns.
    """

    weight: int
    row: Row
    position: Position
    index: int
    view: View

    @property
    def place(self) -> Place:
        return Place(self.position.frame, self.index)

    @property
    def batch(self) -> int | None:
        return self.position.batch


def changes(
    log: OrderedLog, pipeline: str, view: str, start: Place | int = 0, *, stop: Callable[[], bool] | None = None
) -> Iterator[RowChange]:
    """The changes of a view from a place (or frame) on: those that are committed now, or with `stop` those that come,
    until it says so.
    """
    lineage = current(log, pipeline)
    if lineage is not None:
        lineage.view(view)  # raises where there is no such view
    place = Place(start) if isinstance(start, int) else start
    return _from(ViewChanges(log, pipeline, view, place.frame), place, stop)


def _from(reading: "ViewChanges", place: Place, stop: Callable[[], bool] | None) -> Iterator[RowChange]:
    while stop is None or not stop():
        moved = False
        for change in reading.fresh():
            moved = True
            if change.place >= place:
                yield change
            if stop is not None and stop():
                return
        if stop is None:
            return
        if not moved:
            time.sleep(POLL_SECONDS)


class ViewChanges:
    """The changes of a view from a frame on, whenever it is asked for those that are new: it remembers how far it has
    read, and whose frames count there. A view that is not there yet has none. With `whole`, nothing counts that was
    before the frame: a lineage that becomes the current one there begins with all its rows.
    """

    def __init__(self, log: OrderedLog, pipeline: str, view: str, frame: int, *, whole: bool = False) -> None:
        self._log = log
        self._pipeline = pipeline
        self._view = view
        self._frame = frame
        self._lineage = None if whole else current_before(log, pipeline, frame)

    @property
    def frame(self) -> int:
        """Everything before it was told, once `fresh` has come to its end."""
        return self._frame

    def fresh(self) -> Iterator[RowChange]:
        """What was committed since the last time."""
        end = self._log.mark().next_frame
        for header in frames_between(self._log, self._frame, end) if self._frame < end else ():
            made = announced(self._log, self._pipeline, header)
            if made is not None:
                yield from self._until(header.frame)
                yield from self._switched(made)
                self._lineage, self._frame = made, header.frame + 1
        yield from self._until(end)

    def _until(self, end: int) -> Iterator[RowChange]:
        view = self._found(self._lineage)
        if self._lineage is not None and view is not None and self._frame < end:
            yield from self._compacted(self._lineage, view)
            batches = batches_between(self._log, self._lineage, self._frame, end, first=None)
            for steps in steps_of(self._log, self._lineage, batches, views=[view]):
                for step in steps:
                    rows = ((w, row) for change in step.changes for w, row in _signed(change.pairs()))
                    yield from (RowChange(w, row, step.position, at, view) for at, (w, row) in enumerate(rows))
        self._frame = max(self._frame, end)

    def _compacted(self, lineage: Lineage, view: View) -> Iterator[RowChange]:
        """What a compacted stretch adds up to, read from its first batch on; from elsewhere it cannot be read."""
        last = last_compacted(self._log, lineage, [view], self._frame - 1)
        begin = self._log.find(lineage.producer, 0)
        if last < 0 or begin is None:
            return
        below = compacted_before(self._log, lineage, [view])
        if begin.frame < self._frame:
            raise gone(lineage, below, f'what happened to view "{view.name}" after frame {self._frame - 1}')
        steps = compacted_steps(self._log, lineage, begin.frame, below, [view])
        signed = ((step, w, row) for step in steps for change in step.changes for w, row in _signed(change.pairs()))
        yield from (RowChange(weight, row, step.position, at, view) for at, (step, weight, row) in enumerate(signed))
        self._frame = below

    def _switched(self, lineage: Lineage) -> Iterator[RowChange]:
        before, after = self._found(self._lineage), self._found(lineage)
        old, _ = self._content(self._lineage, before, lineage.frame)
        new, position = self._content(lineage, after, lineage.frame)
        both = old & new if before and after and before.schema == after.schema else Counter()
        rows = [*_python(-1, before, old - both), *_python(1, after, new - both)]
        yield from (RowChange(weight, row, position, at, view) for at, (weight, row, view) in enumerate(rows))

    def _found(self, lineage: Lineage | None) -> View | None:
        views = lineage.views if lineage else ()
        return next((view for view in views if view.name.lower() == self._view.lower()), None)

    def _content(self, lineage: Lineage | None, view: View | None, frame: int) -> tuple[Counter[Values], Position]:
        """How often each row occurs after a frame."""
        rows: Counter[Values] = Counter()
        position = Position(self._log.identity, lineage.number if lineage else 0, frame)
        if lineage is None or view is None:
            return rows, position
        alone = replace(lineage, views=(replace(view, kept="table"),))
        for step in steps_until(self._log, alone, frame):
            for change in step.changes:
                rows.update(_encoded(view, change.new))
                rows.subtract(_encoded(view, change.old))
            position = step.position
        return +rows, position


def _signed(pairs: Iterator[tuple[Row | None, Row | None]]) -> Iterator[tuple[int, Row]]:
    """What leaves goes first: whoever saw both rows for an instant would count twice."""
    for old, new in pairs:
        if old is not None:
            yield -1, old
        if new is not None:
            yield 1, new


def _encoded(view: View, rows: pa.StructArray) -> Iterator[Values]:
    return zip(*encoded_columns(view.schema, rows.filter(rows.is_valid())), strict=True)


def _python(weight: int, view: View | None, rows: Counter[Values]) -> list[tuple[int, Row, View]]:
    """In an order of their own: that in which they came is another one when their topic is compacted."""
    if view is None:
        return []
    ordered = sorted(rows.elements(), key=repr)
    return [(weight, row, view) for row in python_rows(view, decoded_rows(view.schema, ordered))]
