"""The reader: records of a topic from any offset, place or time, as Arrow batches.

Reads what is committed when it is asked; needs no lock and disturbs nobody. Within a partition records come in the
order of their offsets, across partitions in the order of their places. Columns that a record's schema version did not
have yet are NULL.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from penstock.errors import DamagedLog, LogError, RecordsGone
from penstock.log.blocks import block_batches, conformed, damaged, opened_file, sealed_batches
from penstock.log.columns import EXTRAS, block_schema
from penstock.log.frame import INDEX_BITS
from penstock.log.journal import Journal, Stretch
from penstock.log.records import Place, micros
from penstock.log.sealed import STAMPS, stamped
from penstock.log.topic import Topic, starts_at_offset

Places = np.ndarray[tuple[int, ...], np.dtype[np.int64]]
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
    begins: tuple[int, ...] = ()
    """The first offset of each partition that is kept."""
    compacted: int | None = None
    """Before which frame the topic was compacted when reading began; None if that does not matter."""

    @property
    def partitions(self) -> list[int]:
        return [p for p in range(len(self.ends)) if self.starts[p] < self.ends[p]]


class Progress:
    """How far each partition of a range has been read. What should have come and did not is damage, and told."""

    def __init__(self, wanted: Range) -> None:
        self.wanted = wanted
        self.next = list(wanted.starts)

    def reach(self, partition: int, offset: int, *, after: Path) -> None:
        """Reading goes on at `offset`; every wanted record before it must have come."""
        missing, until = self.next[partition], min(offset, self.wanted.ends[partition])
        if missing < until and not self.wanted.skip_damage:
            why = f"{after}: the frames that held them cannot be read"
            raise damaged(self.wanted.topic.name, partition, missing, until, why=why)
        self.next[partition] = max(missing, until)

    def pass_by(self, error: DamagedLog) -> None:
        if not self.wanted.skip_damage:
            raise error

    def pass_over(self, partition: int, offset: int) -> None:
        """Reading goes on at `offset`; what lies before it and has not come was compacted away."""
        self.next[partition] = max(self.next[partition], min(offset, self.wanted.ends[partition]))

    def taken(self, partition: int, until: int, batch: pa.RecordBatch) -> pa.RecordBatch:
        """The wanted rows of a batch that holds all offsets there are before `until`, with their partition."""
        offsets = batch.column("_offset").to_numpy()
        start, end = np.searchsorted(offsets, (self.next[partition], self.wanted.ends[partition])).tolist()
        end = max(start, end)
        self.pass_over(partition, until)
        column = pa.repeat(pa.scalar(partition, pa.int32()), end - start)
        rows = batch.slice(start, end - start)
        return pa.RecordBatch.from_arrays([column, *rows.columns], names=["_partition", *rows.schema.names])


def full_schema(topic: Topic) -> pa.Schema:
    """Offset, partition, place and append time, the topic's columns, and the reserved ones."""
    plain = block_schema(topic.schema, EXTRAS)
    return pa.schema([pa.field("_partition", pa.int32()), *STAMPS, *plain])


def offsets_at(
    journal: Journal, topic: Topic, ends: Sequence[int], start: Start, partition: int | None
) -> Sequence[int]:
    """The offset of each partition at which reading from `start` begins; `ends` where nothing lies after it yet."""
    if isinstance(start, datetime):
        return offsets_at_place(journal, topic, ends, Place(frame_at_time(journal, micros(start))))
    if isinstance(start, Place):
        return offsets_at_place(journal, topic, ends, start)
    return starts_at_offset(topic, start, partition, otherwise="a place or a time")


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


def offsets_at_place(journal: Journal, topic: Topic, ends: Sequence[int], place: Place) -> Sequence[int]:
    offsets: dict[int, int] = {}
    first = journal.stretch_of(place.frame)
    for each in [f for f in journal.firsts() if first is None or f >= first]:
        for found in journal.stretch(each).frames:
            for block in found.header.blocks if found.header.frame >= place.frame else ():
                past = int(place) - (found.header.frame << INDEX_BITS | block.index)
                if block.topic == topic.name and block.partition not in offsets and past < block.end - block.base:
                    offsets[block.partition] = block.base + max(0, past)
        if len(offsets) == topic.partitions:
            break
    return [offsets.get(p, ends[p]) for p in range(topic.partitions)]


def batches(journal: Journal, wanted: Range) -> Iterator[pa.RecordBatch]:
    """The range's records, in order, with the columns asked for."""
    full = full_schema(wanted.topic)
    schema = pa.schema([full.field(name) for name in wanted.columns])
    for batch in _all_batches(journal, wanted):
        if batch.num_rows:
            yield conformed(batch, schema)


def _all_batches(journal: Journal, wanted: Range) -> Iterator[pa.RecordBatch]:
    if not wanted.partitions:
        return
    for partition in wanted.partitions:
        check_kept(wanted.topic.name, partition, wanted.starts[partition], wanted.begins[partition])
    progress = Progress(wanted)
    firsts = journal.firsts()
    before = journal.folder
    for first in firsts[_start_stretch(journal, firsts, wanted) :]:
        for partition, end in enumerate(journal.catalog_before(first).ends(wanted.topic.name)):
            progress.reach(partition, end, after=before)
        if all(progress.next[p] >= wanted.ends[p] for p in wanted.partitions):
            return
        stretch = journal.stretch(first)
        before = stretch.path
        rows = _sealed_stretch if stretch.sealed else _open_stretch
        yield from rows(journal, stretch, progress)
    for partition in wanted.partitions:
        progress.reach(partition, wanted.ends[partition], after=before)


def _start_stretch(journal: Journal, firsts: Sequence[int], wanted: Range) -> int:
    """The index of the last stretch before which none of the wanted offsets lies."""
    low, high = 0, len(firsts)
    while low < high:
        middle = (low + high) // 2
        ends = journal.catalog_before(firsts[middle]).ends(wanted.topic.name)
        before = not ends or all(ends[p] <= wanted.starts[p] for p in wanted.partitions)
        low, high = (middle + 1, high) if before else (low, middle)
    return max(0, low - 1)


def _open_stretch(journal: Journal, stretch: Stretch, progress: Progress) -> Iterator[pa.RecordBatch]:
    topic = progress.wanted.topic
    wanted = progress.wanted
    members = [
        member
        for partition in wanted.partitions
        for member in stretch.members_between(topic.name, partition, progress.next[partition], wanted.ends[partition])
    ]
    for member in sorted(members, key=lambda member: member.place):
        found, block = member.found, member.block
        progress.reach(block.partition, block.base, after=stretch.path)
        try:
            for base, index, batch in block_batches(journal, stretch, found, block, topic):
                yield progress.taken(block.partition, base + len(batch), stamped(batch, base, found, index))
        except DamagedLog as error:
            again = journal.stretch(stretch.first)
            if again.sealed:  # meanwhile, and with it a staged file has gone
                yield from _sealed_stretch(journal, again, progress)
                return
            progress.pass_by(error)


def _sealed_stretch(journal: Journal, stretch: Stretch, progress: Progress) -> Iterator[pa.RecordBatch]:
    name = progress.wanted.topic.name
    files = [found for found in stretch.files if found["topic"] == name]
    rows = [_sealed_file(journal, stretch, found, progress) for found in files]
    if len(rows) < 2:
        yield from chain(*rows)
        return
    full = full_schema(progress.wanted.topic)
    needed = pa.schema([field for field in full if field.name in ("_place", *progress.wanted.columns)])
    yield from _merged([(conformed(batch, needed) for batch in each) for each in rows])


def _merged(sources: Sequence[Iterator[pa.RecordBatch]]) -> Iterator[pa.RecordBatch]:
    """The batches of all sources, each of which is in the order of places, as batches in that order. At most one batch
    of each source is held at a time.
    """
    rows = [filter(len, source) for source in sources]
    heads = {at: first for at, source in enumerate(rows) if (first := next(source, None))}
    while heads:
        until = min(_places(head)[-1] for head in heads.values())
        taken = []
        for at, head in list(heads.items()):
            count = int(np.searchsorted(_places(head), until, "right"))
            taken.append(head[:count])
            rest = head[count:] if count < len(head) else next(rows[at], None)
            if rest is None:
                del heads[at]
            else:
                heads[at] = rest
        yield from pa.Table.from_batches(taken).sort_by("_place").combine_chunks().to_batches()


def _places(batch: pa.RecordBatch) -> Places:
    return batch.column("_place").to_numpy()  # type: ignore[no-any-return]


def _sealed_file(
    journal: Journal, stretch: Stretch, found: dict[str, Any], progress: Progress
) -> Iterator[pa.RecordBatch]:
    partition, wanted = found["partition"], progress.wanted
    within = progress.next[partition], wanted.ends[partition]
    end = found["base"] + found["count"]
    if within[0] >= end or within[1] <= found["base"]:
        return
    _check_compacted(journal, found, wanted)
    path = stretch.folder / found["name"]
    with opened_file(path) as file:
        if file is None and found["batches"] and (again := _elsewhere(journal, stretch, found, progress)):
            yield from _sealed_file(journal, *again, progress)
            return
        for batch in sealed_batches(path, file, found, _file_schema(journal, stretch, found, wanted.topic), within):
            if isinstance(batch.rows, DamagedLog):
                progress.pass_by(batch.rows)
            else:
                if not found.get("sparse"):
                    progress.reach(partition, batch.base, after=stretch.path)
                yield progress.taken(partition, batch.end, batch.rows)
    if found.get("sparse"):
        progress.pass_over(partition, end)


def _elsewhere(
    journal: Journal, stretch: Stretch, found: dict[str, Any], progress: Progress
) -> tuple[Stretch, dict[str, Any]] | None:
    """Where the records of a file that has gone lie now; None if it should be there. They may be kept no longer."""
    topic, partition = found["topic"], found["partition"]
    check_kept(topic, partition, progress.next[partition], journal.catalog_now().begins(topic)[partition])
    again = journal.reopened(stretch.first)
    for each in again.files:
        if (each["topic"], each["partition"]) == (topic, partition) and each["name"] != found["name"]:
            return again, each
    return None


def _check_compacted(journal: Journal, found: dict[str, Any], wanted: Range) -> None:
    """Refuses a file from which records may have gone since reading began, for newer ones that lie after its end."""
    if wanted.compacted is None or found.get("below", 0) <= wanted.compacted:
        return
    ends = journal.catalog_before(found["below"]).ends(wanted.topic.name)
    if any(ends[partition] > wanted.ends[partition] for partition in wanted.partitions):
        raise LogError(
            f'topic "{wanted.topic.name}" was compacted while it was read',
            detail="Records that were to be read have gone for newer ones, which came after reading began.",
            hint="Read it again.",
        )


def _file_schema(journal: Journal, stretch: Stretch, found: dict[str, Any], topic: Topic) -> pa.Schema:
    if found["schema"] >= len(topic.schemas):  # columns that were added after reading began
        topic = journal.catalog_after(stretch.first).topic(topic.name)
    return pa.schema([*STAMPS, *block_schema(topic.schemas[found["schema"]], tuple(found["extras"]))])


def check_kept(topic: str, partition: int, offset: int, begin: int) -> None:
    """Refuses to read from an offset that is kept no longer."""
    if offset < begin:
        raise RecordsGone(
            f'topic "{topic}", partition {partition}, offset {offset} is kept no longer',
            detail=f"The first offset that is there is {begin}.",
            hint="Read from there on. How long records are kept: penstock log describe",
        )
