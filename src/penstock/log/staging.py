"""Staging: files written before the append that commits them.

A staged file is an Arrow IPC file with the topic's columns (the reserved ones may follow). Nothing refers to it until
its frame is committed; one that never is can be deleted by anybody.
"""

import os
from pathlib import Path

import pyarrow as pa

from penstock.errors import LogError, SchemaError
from penstock.log.blocks import file_crc
from penstock.log.columns import EXTRAS, Columns, block_schema, check_nulls
from penstock.log.disk import Disk
from penstock.log.draft import Part, time_range
from penstock.log.topic import Topic, check_partition


def staged_part(folder: Path, topic: Topic, partition: int, path: Path, disk: Disk) -> Part:
    """What a frame says of a staged file: read once, checked against the topic, synced."""
    if path.parent.resolve() != folder.resolve():
        raise LogError(
            f'"{path}" is not a staged file of this log', hint="Write it to the path that staging_path gives."
        )
    check_partition(topic, partition)
    if not path.exists():
        raise LogError(f'there is no staged file "{path.name}"', hint="Write it before it is appended.")
    count, times, extras = _looked_through(topic, path)
    _sync(path, disk)
    return Part(
        topic=topic.name,
        partition=partition,
        schema=len(topic.schemas) - 1,
        count=count,
        bytes=path.stat().st_size,
        crc=file_crc(str(path)),
        file=path.name,
        extras=extras,
        times=times,
    )


def _looked_through(topic: Topic, path: Path) -> tuple[int, tuple[int, int] | None, tuple[str, ...]]:
    """The records in the file, the range of their event times, and the reserved columns."""
    count, times = 0, None
    with pa.memory_map(str(path)) as source:
        reader = _opened(path, source)
        extras = tuple(name for name in EXTRAS if name in reader.schema.names)
        wanted = block_schema(topic.schema, extras)
        if not reader.schema.equals(wanted):
            raise SchemaError(
                f'the file "{path.name}" does not have the columns of topic "{topic.name}"',
                detail=f"It has {_fields(reader.schema)}; wanted are {_fields(wanted)}.",
            )
        for at in range(reader.num_record_batches):
            batch = reader.get_batch(at)
            _check_marks(topic, path, batch)
            check_nulls(Columns(topic, batch))
            found = time_range(topic, batch)
            times = (
                found
                if times is None
                else times
                if found is None
                else (min(times[0], found[0]), max(times[1], found[1]))
            )
            count += len(batch)
    return count, times, extras


def _check_marks(topic: Topic, path: Path, batch: pa.RecordBatch) -> None:
    if "_deleted" in batch.schema.names and batch.column("_deleted").null_count:
        raise SchemaError(
            f'"_deleted" is NULL in the file "{path.name}" for topic "{topic.name}"', hint="Write true or false."
        )


def _opened(path: Path, source: pa.NativeFile) -> pa.RecordBatchFileReader:
    try:
        return pa.ipc.open_file(source)
    except pa.ArrowInvalid as error:
        raise LogError(f'"{path.name}" is not an Arrow IPC file', detail=str(error)) from error


def _fields(schema: pa.Schema) -> str:
    return ", ".join(f"{field.name} {field.type}" for field in schema)


def _sync(path: Path, disk: Disk) -> None:
    file = disk.open(path)
    try:
        disk.sync(file)
    finally:
        os.close(file)
    disk.sync_folder(path.parent)
