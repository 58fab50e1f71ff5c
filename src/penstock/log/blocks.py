"""Blocks: the columns of records as they lie in frames, staged files and sealed files, checked before they are used.

Bytes whose checksum does not hold are never decoded: the error names topic, partition, offsets and frame.
"""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from zlib import crc32

import pyarrow as pa

from penstock.errors import DamagedLog
from penstock.log.columns import block_schema
from penstock.log.frame import Block, Found
from penstock.log.journal import Journal, Stretch
from penstock.log.stretch import read_block, read_exactly
from penstock.log.topic import Topic

CHUNK = 1 << 22


def block_batches(
    journal: Journal, stretch: Stretch, found: Found, block: Block, topic: Topic
) -> Iterator[tuple[int, int, pa.RecordBatch]]:
    """The block's columns, as its schema version has them, with the offset and the index in the frame where each
    batch begins.
    """
    if block.schema >= len(topic.schemas):
        raise _damaged_block(block, f"frame {found.header.frame}: the frame that declared its columns cannot be read")
    schema = block_schema(topic.schemas[block.schema], block.extras)
    if block.file is not None:
        base, index = block.base, block.index
        for batch in _staged_batches(journal, found, block):
            yield base, index, batch
            base, index = base + len(batch), index + len(batch)
        return
    data = read_block(stretch.file, found, block)
    if data is None:
        raise _damaged_block(block, f"frame {found.header.frame} of {stretch.path}: the checksum does not hold")
    yield block.base, block.index, pa.ipc.read_record_batch(pa.py_buffer(data), schema)


def _staged_batches(journal: Journal, found: Found, block: Block) -> Iterator[pa.RecordBatch]:
    path = journal.folder / "staged" / str(block.file)
    where = f"{path}, to which frame {found.header.frame} refers"
    try:
        with pa.memory_map(str(path)) as source:
            data = source.read_buffer()
    except FileNotFoundError:
        raise _damaged_block(block, f"{where}: it is missing") from None
    if data.size != block.bytes or crc32(data) != block.crc:
        raise _damaged_block(block, f"{where}: the checksum does not hold")
    reader = pa.ipc.open_file(data)
    for at in range(reader.num_record_batches):
        yield reader.get_batch(at)


def file_crc(path: str) -> int:
    crc = 0
    with open(path, "rb") as file:
        while data := file.read(CHUNK):
            crc = crc32(data, crc)
    return crc


@dataclass(frozen=True)
class SealedBatch:
    """A batch of a sealed file, which holds all that is kept of the offsets from `base` up to `end`; where it is
    damaged, the error, for the reader to raise or to pass over.
    """

    base: int
    end: int
    rows: pa.RecordBatch | DamagedLog


@contextmanager
def opened_file(path: Path) -> Iterator[int | None]:
    """A file to read from, also after it has been removed; None if it is not there."""
    try:
        file = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except FileNotFoundError:
        yield None
        return
    try:
        yield file
    finally:
        os.close(file)


def sealed_batches(
    path: Path, file: int | None, found: dict[str, Any], schema: pa.Schema, within: tuple[int, int]
) -> Iterator[SealedBatch]:
    """The batches of a sealed file that hold any of the offsets within the first up to the second. `found` is the
    file's entry in the list of files.
    """
    base = found["base"]
    for each in found["batches"]:
        base = each.get("base", base)
        end = each.get("end", base + each["count"])
        if base < within[1] and end > within[0]:
            data = b"" if file is None else read_exactly(file, each["bytes"], each["start"])
            if len(data) == each["bytes"] and crc32(data) == each["crc"]:
                yield SealedBatch(base, end, pa.ipc.read_record_batch(pa.py_buffer(data), schema))
            else:
                why = f"{path}: {'it is missing' if file is None else 'the checksum does not hold'}"
                yield SealedBatch(base, end, damaged(found["topic"], found["partition"], base, end, why=why))
        base = end


def conformed(batch: pa.RecordBatch, schema: pa.Schema) -> pa.RecordBatch:
    """The batch with exactly the columns of `schema`: what it lacks is NULL, and not deleted."""
    if batch.schema.equals(schema):
        return batch
    if not schema.names:
        return batch.select([])  # it keeps its number of rows
    arrays = []
    for field in schema:
        at = batch.schema.get_field_index(field.name)
        if at < 0:
            missing = False if field.name == "_deleted" else None
            arrays.append(pa.repeat(pa.scalar(missing, field.type), len(batch)))
        else:
            arrays.append(_grown(batch.column(at), field.type))
    return pa.RecordBatch.from_arrays(arrays, schema=schema)


def _grown(array: pa.Array, wanted: pa.DataType) -> pa.Array:
    """`_replaces` of an older schema version gets the new columns too."""
    if array.type == wanted or not pa.types.is_struct(wanted):
        return array
    children = [
        array.field(field.name) if array.type.get_field_index(field.name) >= 0 else pa.nulls(len(array), field.type)
        for field in wanted
    ]
    return pa.StructArray.from_arrays(children, fields=list(wanted), mask=array.is_null())


def _damaged_block(block: Block, why: str) -> DamagedLog:
    return damaged(block.topic, block.partition, block.base, block.end, why=why)


def damaged(topic: str, partition: int, start: int, end: int, *, why: str) -> DamagedLog:
    return DamagedLog(
        f'topic "{topic}", partition {partition}, offsets {start} to {end - 1} are damaged',
        detail=f"In {why}.",
        hint="Restore the file from a copy. Python programs can read around it: skip_damage=True",
    )
