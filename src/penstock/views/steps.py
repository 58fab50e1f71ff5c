"""From frames to steps: the change topics of a lineage, read by ranges and cut at the frames.

Rows are read as Arrow batches of many frames at once; what others may have appended to a change topic is passed over.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from penstock.log import Log, Place
from penstock.log.frame import Header
from penstock.views.lineage import batches_between
from penstock.views.step import Change, Lineage, Position, Step, View

Batch = tuple[Header, Position]
FRAMES = 500
RECORDS = 20_000
FRAME = int(Place(1))
"""Places of one frame."""


def steps_of(
    log: Log, lineage: Lineage, batches: Iterable[Batch], *, views: Sequence[View], together: int = FRAMES
) -> Iterator[list[Step]]:
    """One step for every batch, in order, as many together as fit into one transaction: `together` frames at most,
    and no more than some records, unless one frame has more.
    """
    topics = {lineage.topic(view): view for view in views}
    for group in _groups(batches, topics.keys(), together):
        parts: dict[int, list[Change]] = defaultdict(list)
        for topic, view in topics.items():
            for frame, rows in _rows(log, topic, view, [header for header, _ in group]):
                parts[frame].append(_change(view, rows))
        yield [Step(position, tuple(parts[position.frame])) for _, position in group]


def steps_until(log: Log, lineage: Lineage, frame: int) -> Iterator[Step]:
    """What makes the lineage's tables from nothing, up to and with `frame`; at the end a step without changes there."""
    last = Position(log.identity, lineage.number, frame)
    begin = log.find(lineage.producer, 0)
    if begin is not None:
        batches = batches_between(log, lineage, begin.frame, frame + 1, first=0)
        for steps in steps_of(log, lineage, batches, views=lineage.tables):
            yield from steps
            last = replace(steps[-1].position, frame=frame)
    yield Step(last)


def _groups(batches: Iterable[Batch], topics: Iterable[str], together: int) -> Iterator[list[Batch]]:
    group: list[Batch] = []
    records = 0
    wanted = frozenset(topics)
    for header, position in batches:
        count = sum(block.count for block in header.blocks if block.topic in wanted)
        if group and (len(group) >= together or records + count > RECORDS):
            yield group
            group, records = [], 0
        group.append((header, position))
        records += count
    if group:
        yield group


def _rows(log: Log, topic: str, view: View, headers: Sequence[Header]) -> Iterator[tuple[int, pa.RecordBatch]]:
    """The topic's rows in these frames, cut at the frames."""
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
        for batch in log.batches(topic, partition=partition, start=start, end=end, columns=columns):
            yield from ((frame, rows) for frame, rows in _cut(batch) if frame in frames)


def _cut(batch: pa.RecordBatch) -> Iterator[tuple[int, pa.RecordBatch]]:
    frames = batch.column("_place").to_numpy() // FRAME
    bounds = [0, *(np.flatnonzero(np.diff(frames)) + 1).tolist(), len(batch)]
    for start, end in pairwise(bounds):
        yield int(frames[start]), batch.slice(start, end - start)


def _change(view: View, rows: pa.RecordBatch) -> Change:
    deleted = rows.column("_deleted").fill_null(False)
    replaces = rows.column("_replaces")
    fields = list(replaces.type)
    columns = [rows.column(name) for name in view.schema.names]
    new = pa.StructArray.from_arrays(columns, fields=fields, mask=deleted)
    if view.key:
        return Change(view.name, replaces, new)
    return Change(view.name, pa.StructArray.from_arrays(columns, fields=fields, mask=pc.invert(deleted)), new)
