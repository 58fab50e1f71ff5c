"""Compacted stretches of change topics: of every key the newest record is left, and what it replaced is not told.

So what happened there frame by frame is gone, and all of it is one step: from nothing to what the views hold after
the last batch before the frame up to which their topics are compacted. Bags are not compacted; their changes up to
there are part of that step, so that all views move together.
"""

from collections.abc import Iterator, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from penstock.errors import ViewError
from penstock.log import Place
from penstock.log.newest import Newest, Places, among
from penstock.log.protocol import OrderedLog
from penstock.views.lineage import batches_between
from penstock.views.step import Change, Lineage, Step, View

FRAME = int(Place(1))
"""Places of one frame."""


def compacted_before(log: OrderedLog, lineage: Lineage, views: Sequence[View]) -> int:
    """The frame before which changes of these views are compacted; 0 if they are not."""
    return max((log.compacted(lineage.topic(view)) for view in views if view.key), default=0)


def last_compacted(log: OrderedLog, lineage: Lineage, views: Sequence[View], after: int) -> int:
    """The frame of the last batch behind `after` whose changes may be compacted; -1 if there is none."""
    below = compacted_before(log, lineage, views)
    batches = batches_between(log, lineage, after + 1, below, first=None) if after + 1 < below else iter(())
    return max((header.frame for header, _ in batches), default=-1)


def compacted_steps(log: OrderedLog, lineage: Lineage, begin: int, below: int, views: Sequence[View]) -> Iterator[Step]:
    """What the batches from frame `begin` up to `below`, all that there are, add up to: pieces of one step."""
    frames, last = [], None
    for header, position in batches_between(log, lineage, begin, below, first=0):
        frames.append(header.frame)
        last = position
    if last is None:
        return
    for view in views:
        for change in _changes(log, lineage.topic(view), view, (begin, below), np.array(frames)):
            yield Step(last, (change,))
    yield Step(last)


def _changes(log: OrderedLog, topic: str, view: View, within: tuple[int, int], frames: Places) -> Iterator[Change]:
    newest = _newest(log, topic, view, within) if view.key else None
    columns = [*view.schema.names, "_place", "_deleted"]
    for batch in log.batches(topic, start=Place(within[0]), end=Place(within[1]), columns=columns):
        places = batch.column("_place").to_numpy()
        ours = among(places // FRAME, frames)
        rows = batch.filter(pa.array(ours & among(places, newest) if newest is not None else ours))
        if len(rows):
            yield _change(view, rows)


def _newest(log: OrderedLog, topic: str, view: View, within: tuple[int, int]) -> Places:
    """A run of compaction that has not ended may have left older records."""
    found = Newest(view.key)
    for batch in log.batches(topic, start=Place(within[0]), end=Place(within[1]), columns=[*view.key, "_place"]):
        found.add(batch)
    return found.places()


def _change(view: View, rows: pa.RecordBatch) -> Change:
    if view.key:  # what is deleted has never been there
        rows = rows.filter(pc.invert(rows.column("_deleted")))
    deleted = rows.column("_deleted")
    columns = [rows.column(name) for name in view.schema.names]
    fields = [pa.field(name, column.type) for name, column in zip(view.schema.names, columns, strict=True)]
    new = pa.StructArray.from_arrays(columns, fields=fields, mask=deleted)
    old = pa.StructArray.from_arrays(columns, fields=fields, mask=pc.invert(deleted))
    return Change(view.name, old, new)


def gone(lineage: Lineage, below: int, what: str) -> ViewError:
    return ViewError(
        f'{what} of lineage {lineage.number} of "{lineage.pipeline}" cannot be told: the changes are compacted',
        detail=f"Before frame {below} only the newest row of each key is left.",
        hint="Read the view as it is now, and go on from its position.",
    )
