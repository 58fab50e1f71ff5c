"""Sealed stretches: closed stretches of the journal as one Arrow file per topic and partition.

`seal` works on a closed stretch, which never changes, beside writers and readers: it builds the whole folder under
another name, syncs it, renames it into place and only then removes the journal file. Killed anywhere, it leaves
either the journal file or the complete folder, and the next run clears away the rest. A stretch with damage in it is
left in the journal, where the damage can be seen.
"""

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from zlib import crc32

import numpy as np
import pyarrow as pa

from penstock.errors import DamagedLog
from penstock.log.blocks import block_batches, conformed
from penstock.log.columns import EXTRAS, block_schema
from penstock.log.disk import Disk
from penstock.log.frame import INDEX_BITS, Found, encode
from penstock.log.journal import Journal, Member, Stretch
from penstock.log.staging import remove_staged
from penstock.log.stretch import encode_prelude
from penstock.log.topic import Topic

BATCH_ROWS = 1 << 16
STAMPS = pa.schema([("_offset", pa.int64()), ("_place", pa.int64()), ("_appended_at", pa.timestamp("us", "UTC"))])


def seal(journal: Journal, first: int, disk: Disk) -> bool:
    """Seals one closed stretch; False if damage in it forbids that."""
    stretch = journal.stretch(first)
    if stretch.sealed:  # an earlier run was killed before it had cleared away
        if stretch.prelude:
            _clear_away(journal, stretch, disk)
        return bool(stretch.prelude)
    if stretch.gaps or not stretch.prelude or not _unharmed(journal, stretch):
        return False
    unfinished = journal.folder / "sealed" / f".{first:020}.new"
    disk.remove(unfinished)
    unfinished.mkdir(parents=True)
    catalog = journal.catalog_after(first)
    files = [
        _write_file(journal, stretch, unfinished, catalog.topic(key[0]), members, disk)
        for key, members in stretch.members.items()
    ]
    _write_headers(stretch, unfinished / "headers.journal", files, disk)
    disk.sync_folder(unfinished)
    disk.rename(unfinished, unfinished.with_name(f"{first:020}"))
    disk.sync_folder(unfinished.parent)
    _clear_away(journal, stretch, disk)
    return True


def _unharmed(journal: Journal, stretch: Stretch) -> bool:
    topics = journal.catalog_after(stretch.first).topics
    try:
        for found in stretch.frames:
            for block in found.header.blocks:
                for _ in block_batches(journal, stretch, found, block, topics[block.topic]):
                    pass
    except (DamagedLog, KeyError):  # or a topic whose creation is damaged
        return False
    return True


def _write_file(
    journal: Journal, stretch: Stretch, folder: Path, topic: Topic, members: list[Member], disk: Disk
) -> dict[str, Any]:
    partition = members[0].block.partition
    extras = tuple(name for name in EXTRAS if any(name in member.block.extras for member in members))
    schema = pa.schema([*STAMPS, *block_schema(topic.schema, extras)])
    path = folder / f"{topic.name}.{partition}.arrow"
    with pa.OSFile(str(path), "wb") as sink:
        ends = write_batches(sink, schema, _rows(journal, stretch, topic, members, schema))
    return {
        "topic": topic.name,
        "partition": partition,
        "name": path.name,
        "schema": len(topic.schemas) - 1,
        "extras": list(extras),
        "base": members[0].block.base,
        "count": sum(member.block.count for member in members),
        "batches": checked(path, ends, disk),
    }


def _rows(
    journal: Journal, stretch: Stretch, topic: Topic, members: list[Member], schema: pa.Schema
) -> Iterator[pa.RecordBatch]:
    """The members' records in batches of even size."""
    held: list[pa.RecordBatch] = []
    count = 0
    for member in members:
        for base, index, batch in block_batches(journal, stretch, member.found, member.block, topic):
            held.append(conformed(stamped(batch, base, member.found, index), schema))
            count += len(batch)
        if count >= BATCH_ROWS:
            yield from combined(held, schema)
            held, count = [], 0
    yield from combined(held, schema)


def combined(held: list[pa.RecordBatch], schema: pa.Schema) -> Iterator[pa.RecordBatch]:
    """The batches as few of even size."""
    if held:
        yield from pa.Table.from_batches(held, schema).combine_chunks().to_batches(max_chunksize=BATCH_ROWS)


def stamped(batch: pa.RecordBatch, base: int, found: Found, index: int) -> pa.RecordBatch:
    """The batch with offset, place and append time before its columns."""
    place = found.header.frame << INDEX_BITS | index
    stamps = [
        pa.array(np.arange(base, base + len(batch), dtype=np.int64)),
        pa.array(np.arange(place, place + len(batch), dtype=np.int64)),
        pa.array(np.full(len(batch), found.header.at, np.int64)).cast(STAMPS.field(2).type),
    ]
    return pa.RecordBatch.from_arrays([*stamps, *batch.columns], schema=pa.schema([*STAMPS, *batch.schema]))


def write_batches(
    sink: pa.NativeFile, schema: pa.Schema, batches: Iterator[pa.RecordBatch]
) -> list[tuple[int, int, int]]:
    """Writes the Arrow file; where each batch begins and ends in it, and its rows."""
    ends = []
    with pa.ipc.new_file(sink, schema) as writer:
        for batch in batches:
            writer.write_batch(batch)
            end = sink.tell()
            ends.append((end - pa.ipc.get_record_batch_size(batch), end, len(batch)))
    return ends


def checked(path: Path, ends: list[tuple[int, int, int]], disk: Disk) -> list[dict[str, int]]:
    """What the list of files says of each batch, once the file is synced."""
    file = disk.open(path)
    try:
        disk.sync(file)
        return [
            {"start": start, "bytes": end - start, "count": count, "crc": crc32(os.pread(file, end - start, start))}
            for start, end, count in ends
        ]
    finally:
        os.close(file)


def _write_headers(stretch: Stretch, path: Path, files: list[dict[str, Any]], disk: Disk) -> None:
    pieces = [encode_prelude(stretch.prelude | {"files": files})]
    for found in stretch.frames:
        pieces += encode(found.header, [])
    disk.write_whole(path, b"".join(pieces))


def _clear_away(journal: Journal, stretch: Stretch, disk: Disk) -> None:
    """Removes what the sealed folder stands for. The journal file goes last: while it is there, a run killed here is
    finished by the next one."""
    for found in stretch.frames:
        for block in found.header.blocks:
            if block.file is not None:
                remove_staged(journal.folder / "staged" / block.file, disk)
    disk.remove(journal.folder / "journal" / f"{stretch.first:020}.journal")
