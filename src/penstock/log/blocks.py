"""Blocks: the columns of records as they lie in frames, staged files and sealed files, checked before they are used.

Bytes whose checksum does not hold are never decoded: the error names topic, partition, offsets and frame.
"""

import os
from collections.abc import Iterator
from typing import Any
from zlib import crc32

import pyarrow as pa

from penstock.errors import DamagedLog
from penstock.log.columns import block_schema
from penstock.log.frame import Block, Found
from penstock.log.journal import Journal, Stretch
from penstock.log.stretch import read_block
from penstock.log.topic import Topic

CHUNK = 1 << 22


def block_batches(
    journal: Journal, stretch: Stretch, found: Found, block: Block, topic: Topic
) -> Iterator[tuple[int, int, pa.RecordBatch]]:
    """The block's columns, as its schema version has them, with the offset and the index in the frame where each
    batch begins.
    """
    schema = block_schema(topic.schemas[block.schema], block.extras)
    if block.file is not None:
        base, index = block.base, block.index
        for batch in _staged_batches(journal, found, block):
            yield base, index, batch
            base, index = base + len(batch), index + len(batch)
        return
    data = read_block(stretch.file, found, block)
    if data is None:
        raise damaged(
            block.topic, block.partition, block.base, block.end, where=f"frame {found.header.frame} of {stretch.path}"
        )
    yield block.base, block.index, pa.ipc.read_record_batch(pa.py_buffer(data), schema)


def _staged_batches(journal: Journal, found: Found, block: Block) -> Iterator[pa.RecordBatch]:
    path = journal.folder / "staged" / str(block.file)
    if path.stat().st_size != block.bytes or file_crc(str(path)) != block.crc:
        raise damaged(
            block.topic,
            block.partition,
            block.base,
            block.end,
            where=f"{path}, to which frame {found.header.frame} refers",
        )
    with pa.memory_map(str(path)) as source:
        reader = pa.ipc.open_file(source)
        for at in range(reader.num_record_batches):
            yield reader.get_batch(at)


def file_crc(path: str) -> int:
    crc = 0
    with open(path, "rb") as file:
        while data := file.read(CHUNK):
            crc = crc32(data, crc)
    return crc


def sealed_batches(
    stretch: Stretch, found: dict[str, Any], schema: pa.Schema, start: int, end: int
) -> Iterator[pa.RecordBatch]:
    """Offsets `start` to `end` of a sealed file, batch by batch; `found` is its entry in the prelude."""
    file = os.open(stretch.folder / found["name"], os.O_RDONLY | os.O_CLOEXEC)
    try:
        base = found["base"]
        for each in found["batches"]:
            if base < end and base + each["count"] > start:
                data = os.pread(file, each["bytes"], each["start"])
                if len(data) != each["bytes"] or crc32(data) != each["crc"]:
                    raise damaged(
                        found["topic"],
                        found["partition"],
                        base,
                        base + each["count"],
                        where=str(stretch.folder / found["name"]),
                    )
                batch = pa.ipc.read_record_batch(pa.py_buffer(data), schema)
                yield batch.slice(max(0, start - base), min(end, base + len(batch)) - max(start, base))
            base += each["count"]
    finally:
        os.close(file)


def conformed(batch: pa.RecordBatch, schema: pa.Schema) -> pa.RecordBatch:
    """The batch with exactly the columns of `schema`: what it lacks is NULL, and not deleted."""
    if batch.schema.equals(schema):
        return batch
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


def damaged(topic: str, partition: int, start: int, end: int, *, where: str) -> DamagedLog:
    return DamagedLog(
        f'topic "{topic}", partition {partition}, offsets {start} to {end - 1} are damaged',
        detail=f"The checksum does not hold in {where}.",
        hint="Restore the file from a copy, or read around it (skip_damage).",
    )
