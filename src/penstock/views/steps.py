"""From frames to steps: the change topics of a lineage, read by ranges and cut at the frames.

Rows are read as Arrow batches of many frames at once; what others may have appended to a change topic is passed over.
"""

from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import TypeVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from penstock.log.frame import Header
from penstock.log.protocol import OrderedLog
from penstock.views.compacted import FRAME, compacted_before, compacted_steps, gone, last_compacted
from penstock.views.lineage import batches_between
from penstock.views.step import Change, Kept, Lineage, Position, Step, View

T = TypeVar("T")
Batch = tuple[Header, Position]
FRAMES = 500
RECORDS = 20_000


def steps_of(
    log: OrderedLog,
    lineage: Lineage,
    batches: Iterable[Batch],
    *,
    views: Sequence[View],
    together: int = FRAMES,
    records: int = RECORDS,
) -> Iterator[list[Step]]:
    """One step for every batch, in order, as many together as fit into one transaction: `together` frames at most,
    and no more than so many records, unless one frame has more.
    """
    topics = {lineage.topic(view): view for view in views}
    for group in grouped(batches, lambda batch: _records(batch[0], topics), together, held_at_most=records):
        parts: dict[int, list[Change]] = defaultdict(list)
        for topic, view in topics.items():
            for frame, change in _changes(log, topic, view, [header for header, _ in group]):
                parts[frame].append(change)
        yield [Step(position, tuple(parts[position.frame])) for _, position in group]


def steps_until(log: OrderedLog, lineage: Lineage, frame: int, *, kept: Kept = "table") -> Iterator[Step]:
    """What makes the lineage's tables, or its views of another kind, from nothing, up to and with `frame`; at the end a
    step without changes there.
    """
    last = Position(log.identity, lineage.number, frame)
    begin, views = log.find(lineage.producer, 0), lineage.kept_as(kept)
    if begin is not None and begin.frame <= frame:
        start, first, below = begin.frame, 0, compacted_before(log, lineage, views)
        if start < below:
            if last_compacted(log, lineage, views, frame) > frame:
                raise gone(lineage, below, f"what the views held at frame {frame}")
            for step in compacted_steps(log, lineage, start, below, views):
                yield step
                last = replace(step.position, frame=frame)
            start, first = below, 0 if last.batch is None else last.batch + 1
        batches = batches_between(log, lineage, start, frame + 1, first=first)
        for steps in steps_of(log, lineage, batches, views=views):
            yield from steps
            last = replace(steps[-1].position, frame=frame)
    yield Step(last)


def grouped(
    items: Iterable[T], records: Callable[[T], int], most: int = FRAMES, *, held_at_most: int = RECORDS
) -> Iterator[list[T]]:
    """The items in groups of at most `most`, and of no more records than are handled at once, unless one has more."""
    group: list[T] = []
    held = 0
    for item in items:
        count = records(item)
        if group and (len(group) >= most or held + count > held_at_most):
            yield group
            group, held = [], 0
        group.append(item)
        held += count
    if group:
        yield group


def _records(header: Header, topics: Collection[str]) -> int:
    return sum(block.count for block in header.blocks if block.topic in topics)


def _changes(log: OrderedLog, topic: str, view: View, headers: Sequence[Header]) -> Iterator[tuple[int, Change]]:
    """What these frames do to a view, frame by frame; a frame with very many rows in several pieces."""
    spans: dict[int, tuple[int, int]] = {}
    frames: set[int] = set()
    for header in headers:
        for block in header.blocks:
            if block.topic == topic:
                start, _ = spans.get(block.partition, (block.base, block.end))
                spans[block.partition] = start, block.end
                frames.add(header.frame)
    columns = [*view.schema.names, "_place", "_deleted", "_replaces"]
    for partition, (start, end) in spans.items():
        batches = log.batches(topic, partition=partition, start=start, end=end, columns=columns)
        for rows in _merged(batches):
            yield from ((frame, change) for frame, change in _cut(view, rows) if frame in frames)


def _merged(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Small batches as few large ones: what Arrow does costs as much for one row as for a thousand."""
    for group in grouped(batches, len, most=FRAMES):
        yield from pa.Table.from_batches(group).combine_chunks().to_batches() if len(group) > 1 else group


def _cut(view: View, rows: pa.RecordBatch) -> Iterator[tuple[int, Change]]:
    old, new = _old_and_new(view, rows)
    frames = rows.column("_place").to_numpy() // FRAME
    bounds = [0, *(np.flatnonzero(np.diff(frames)) + 1).tolist(), len(rows)]
    for start, end in pairwise(bounds):
        yield int(frames[start]), Change(view.name, old.slice(start, end - start), new.slice(start, end - start))


def _old_and_new(view: View, rows: pa.RecordBatch) -> tuple[pa.StructArray, pa.StructArray]:
    deleted = rows.column("_deleted").fill_null(False)
    replaces = rows.column("_replaces")
    columns = [rows.column(name) for name in view.schema.names]
    new = pa.StructArray.from_arrays(columns, fields=list(replaces.type), mask=deleted)
    if view.key:
        return replaces, new
    return pa.StructArray.from_arrays(columns, fields=list(replaces.type), mask=pc.invert(deleted)), new
