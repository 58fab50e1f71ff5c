"""The reader: records of a topic from any offset, place or time, as Arrow batches.

Reads what is committed when it is asked; needs no lock and disturbs nobody. Within a partition records come in the
order of their offsets, across partitions in the order of their places. Columns that a record's schema version did not
have yet are NULL.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import pyarrow as pa

from penstock.errors import DamagedLog, LogError
from penstock.log.blocks import block_batches, conformed, damaged, sealed_batches
from penstock.log.catalog import Catalog
from penstock.log.columns import EXTRAS, block_schema
from penstock.log.frame import INDEX_BITS, Found
from penstock.log.journal import Journal, Stretch
from penstock.log.records import Place, micros
from penstock.log.sealed import STAMPS, stamped
from penstock.log.topic import Topic

Start = int | Place | datetime
"""Where to begin: an offset of one partition, a place, or an append time."""


@dataclass(frozen=True)
class Range:
    """What is asked for: for each partition the first offset and the one after the last; those of the other
    partitions are equal.
    """

    topic: Topic
    starts: tuple[int, ...]
    ends: tuple[int, ...]
    columns: tuple[str, ...]
    skip_damage: bool = False

    @property
    def partitions(self) -> list[int]:
        return [p for p in range(len(self.ends)) if self.starts[p] < self.ends[p]]

    def wants(self, partition: int, start: int, end: int) -> bool:
        return start < self.ends[partition] and end > self.starts[partition]


def full_schema(topic: Topic) -> pa.Schema:
    """Offset, partition, place and append time, the topic's columns, and the reserved ones."""
    plain = block_schema(topic.schema, EXTRAS)
    return pa.schema([pa.field("_partition", pa.int32()), *STAMPS, *plain])


def offsets_at(journal: Journal, catalog: Catalog, topic: Topic, start: Start, partition: int | None) -> list[int]:
    """The offset of each partition at which reading from `start` begins."""
    if isinstance(start, datetime):
        return offsets_at_place(journal, catalog, topic, Place(frame_at_time(journal, micros(start))))
    if isinstance(start, Place):
        return offsets_at_place(journal, catalog, topic, start)
    if start < 0:
        raise LogError(f"{start} is not an offset", hint="Offsets begin at 0.")
    if partition is None and topic.partitions > 1 and start > 0:
        raise LogError(
            f'an offset of "{topic.name}" needs its partition',
            detail=f"The topic has {topic.partitions} partitions.",
            hint="Name the partition, or start at a place or a time.",
        )
    return [start] * topic.partitions


def frame_at_time(journal: Journal, at: int) -> int:
    """The first frame appended at or after a time."""
    firsts = journal.firsts()
    low, high = 0, len(firsts)
    while low < high:  # the last stretch that had begun before the time
        middle = (low + high) // 2
        low, high = (middle + 1, high) if journal.catalog_before(firsts[middle]).appended_at < at else (low, middle)
    for first in firsts[max(0, low - 1) :]:
        for found in journal.stretch(first).frames:
            if found.header.at >= at:
                return found.header.frame
    return journal.mark().next_frame


def offsets_at_place(journal: Journal, catalog: Catalog, topic: Topic, place: Place) -> list[int]:
    offsets: dict[int, int] = {}
    first = journal.stretch_of(place.frame)
    for each in [f for f in journal.firsts() if first is None or f >= first]:
        for found in journal.stretch(each).frames:
            for block in found.header.blocks if found.header.frame >= place.frame else ():
                past = int(place) - (found.header.frame << INDEX_BITS | block.index)
                if block.topic == topic.name and block.partition not in offsets and past < block.count:
                    offsets[block.partition] = block.base + max(0, past)
        if len(offsets) == topic.partitions:
            break
    ends = catalog.ends(topic.name)
    return [offsets.get(p, ends[p]) for p in range(topic.partitions)]


def batches(journal: Journal, wanted: Range) -> Iterator[pa.RecordBatch]:
    """The range's records, in order, with the columns asked for."""
    full = full_schema(wanted.topic)
    schema = pa.schema([full.field(name) for name in wanted.columns])
    for batch in _all_batches(journal, wanted):
        yield conformed(batch, schema)


def _all_batches(journal: Journal, wanted: Range) -> Iterator[pa.RecordBatch]:
    if not wanted.partitions:
        return
    firsts = journal.firsts()
    for first in firsts[_start_stretch(journal, firsts, wanted) :]:
        ends = journal.catalog_before(first).ends(wanted.topic.name)
        if ends and all(ends[p] >= wanted.ends[p] for p in wanted.partitions):
            return
        yield from _stretch_batches(journal, first, wanted)


def _start_stretch(journal: Journal, firsts: Sequence[int], wanted: Range) -> int:
    """The index of the last stretch before which none of the wanted offsets lies."""
    low, high = 0, len(firsts)
    while low < high:
        middle = (low + high) // 2
        ends = journal.catalog_before(firsts[middle]).ends(wanted.topic.name)
        before = not ends or all(ends[p] <= wanted.starts[p] for p in wanted.partitions)
        low, high = (middle + 1, high) if before else (low, middle)
    return max(0, low - 1)


def _stretch_batches(journal: Journal, first: int, wanted: Range) -> Iterator[pa.RecordBatch]:
    stretch = journal.stretch(first)
    try:
        rows = _sealed_stretch(stretch, wanted) if stretch.sealed else _open_stretch(journal, stretch, wanted)
        yield from rows
    except FileNotFoundError:  # a staged file: the stretch was sealed while it was being read
        again = journal.stretch(first)
        if not again.sealed or stretch.sealed:
            raise
        yield from _sealed_stretch(again, wanted)


def _open_stretch(journal: Journal, stretch: Stretch, wanted: Range) -> Iterator[pa.RecordBatch]:
    for found in list(stretch.frames):
        for block in found.header.blocks:
            if block.topic == wanted.topic.name and wanted.wants(block.partition, block.base, block.end):
                try:
                    for base, index, batch in block_batches(journal, stretch, found, block, wanted.topic):
                        yield from _cut(batch, base, index, found, block.partition, wanted)
                except DamagedLog:
                    if not wanted.skip_damage:
                        raise
    if stretch.gaps and not wanted.skip_damage:
        _check_gaps(stretch, wanted)


def _cut(
    batch: pa.RecordBatch, base: int, index: int, found: Found, partition: int, wanted: Range
) -> Iterator[pa.RecordBatch]:
    start = max(0, wanted.starts[partition] - base)
    end = min(len(batch), wanted.ends[partition] - base)
    if start < end:
        yield _partitioned(stamped(batch, base, found, index).slice(start, end - start), partition)


def _check_gaps(stretch: Stretch, wanted: Range) -> None:
    """Bytes between frames cannot be read: the offsets that are missing because of them are named."""
    ends: dict[int, int] = {}
    for found in stretch.frames:
        for block in found.header.blocks:
            if block.topic == wanted.topic.name:
                missing = ends.get(block.partition, block.base)
                if missing < block.base and wanted.wants(block.partition, missing, block.base):
                    raise damaged(block.topic, block.partition, missing, block.base, where=str(stretch.path))
                ends[block.partition] = block.end


def _sealed_stretch(stretch: Stretch, wanted: Range) -> Iterator[pa.RecordBatch]:
    members = [
        _sealed_file(stretch, found, wanted)
        for found in stretch.prelude["files"]
        if found["topic"] == wanted.topic.name
    ]
    if len(members) < 2:
        for member in members:
            yield from member
        return
    held = [batch for member in members for batch in member]
    if held:
        full = full_schema(wanted.topic)
        table = pa.Table.from_batches([conformed(batch, full) for batch in held], full)
        yield from table.sort_by("_place").combine_chunks().to_batches()


def _sealed_file(stretch: Stretch, found: dict[str, Any], wanted: Range) -> Iterator[pa.RecordBatch]:
    partition = found["partition"]
    columns = block_schema(wanted.topic.schemas[found["schema"]], tuple(found["extras"]))
    schema = pa.schema([*STAMPS, *columns])
    rows = sealed_batches(stretch, found, schema, wanted.starts[partition], wanted.ends[partition])
    try:
        for batch in rows:
            yield _partitioned(batch, partition)
    except DamagedLog:
        if not wanted.skip_damage:
            raise


def _partitioned(batch: pa.RecordBatch, partition: int) -> pa.RecordBatch:
    column = pa.repeat(pa.scalar(partition, pa.int32()), len(batch))
    return pa.RecordBatch.from_arrays([column, *batch.columns], names=["_partition", *batch.schema.names])
