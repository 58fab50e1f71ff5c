"""Staging: files written before the append that commits them.

A staged file is an Arrow IPC file with the topic's columns (the reserved ones may follow), not compressed. Nothing
refers to it until its frame is committed; one that never is can be deleted by anybody.

Every append takes a second name for the file, which no other append refers to: the same file may be appended twice,
and an append that was refused can be tried again. The name that was given goes when the append is sealed; until then
nothing may be written to it.
"""

import os
import uuid
from dataclasses import dataclass
from pathlib import Path
from struct import unpack_from

import pyarrow as pa

from penstock.errors import LogError, SchemaError
from penstock.log.blocks import file_crc
from penstock.log.checks import check
from penstock.log.columns import EXTRAS, block_schema
from penstock.log.correction import uncorrected, with_times
from penstock.log.disk import Disk
from penstock.log.draft import Part, time_range
from penstock.log.topic import Topic, check_partition


def staged_part(folder: Path, topic: Topic, partition: int, path: Path, disk: Disk, *, far_times: bool = False) -> Part:
    """What a frame says of a staged file: read once, checked against the topic, synced."""
    if path.parent.resolve() != folder.resolve():
        raise LogError(
            f'"{path}" is not a staged file of this log', hint="Write it to the path that staging_path gives."
        )
    check_partition(topic, partition)
    try:
        found = _looked_through(topic, path, far_times=far_times)
        _sync(path, disk)
        taken = _taken(path, disk)
    except FileNotFoundError:
        raise LogError(
            f'there is no staged file "{path.name}"',
            detail="It was never written, or it was appended and has been sealed since.",
            hint="Write it before it is appended.",
        ) from None
    return Part(
        topic=topic.name,
        partition=partition,
        schema=len(topic.schemas) - 1,
        count=found.count,
        bytes=taken.stat().st_size,
        crc=file_crc(str(taken)),
        file=taken.name,
        extras=found.extras,
        times=found.times,
        uncorrected=found.uncorrected,
        event_times=found.event_times,
    )


def _taken(path: Path, disk: Disk) -> Path:
    """A name of the file for one append only; it ends with the name that was given."""
    taken = path.with_name(f"{uuid.uuid4().hex}+{path.name}")
    os.link(path, taken)
    disk.sync_folder(path.parent)
    return taken


def remove_staged(taken: Path, disk: Disk) -> None:
    """Removes the file of an append, first by the name that was given."""
    disk.remove(taken.with_name(taken.name.partition("+")[2] or taken.name))
    disk.remove(taken)


@dataclass(frozen=True)
class _Content:
    """The records in a file, the reserved columns, and what is told of their event times."""

    count: int
    extras: tuple[str, ...]
    times: tuple[int, int] | None
    uncorrected: int
    event_times: tuple[pa.Array, ...]


def _looked_through(topic: Topic, path: Path, *, far_times: bool) -> _Content:
    with pa.memory_map(str(path)) as source:
        reader = _opened(path, source)
        extras = tuple(name for name in EXTRAS if name in reader.schema.names)
        wanted = block_schema(topic.schema, extras)
        if not reader.schema.equals(wanted):
            raise SchemaError(
                f'the file "{path.name}" does not have the columns of topic "{topic.name}"',
                detail=f"It has {_fields(reader.schema)}; wanted are {_fields(wanted)}.",
            )
        _check_plain(path, reader.num_record_batches)
        batches = [reader.get_batch(at) for at in range(reader.num_record_batches)]
        for batch in batches:
            _check_marks(topic, path, batch)
            _check_corrected(topic, path, batch)
            check(topic, batch, far_times=far_times)
        ranges = [found for batch in batches if (found := time_range(topic, batch)) is not None]
        return _Content(
            count=sum(map(len, batches)),
            extras=extras,
            times=(min(low for low, _ in ranges), max(high for _, high in ranges)) if ranges else None,
            uncorrected=sum(uncorrected(topic.corrected, batch) for batch in batches) if topic.corrected else 0,
            event_times=tuple(batch.column(topic.event_time) for batch in batches) if topic.event_time else (),
        )


def _check_plain(path: Path, batches: int) -> None:
    """No batch is compressed: the kernel reads columns where they lie. Arrow's readers do not tell, the messages do."""
    with pa.memory_map(str(path)) as source:
        messages = pa.ipc.MessageReader.open_stream(pa.BufferReader(source.read_buffer().slice(len(b"ARROW1\0\0"))))
        messages.read_next_message()  # the schema
        for _ in range(batches):
            if _is_compressed(messages.read_next_message().metadata.to_pybytes()):
                raise LogError(
                    f'the staged file "{path.name}" is compressed',
                    hint='Write it uncompressed: pyarrow.ipc.new_file, or write_feather(compression="uncompressed").',
                )


def _is_compressed(message: bytes) -> bool:
    """Whether the fourth field of the message's record batch is there. Flatbuffers: a table begins with the distance
    back to its list of fields, which holds, from byte 4 on, where each field lies; 0 where it is missing.
    """

    def field(table: int, number: int) -> int:
        fields = table - unpack_from("<i", message, table)[0]
        inside = 4 + 2 * number < unpack_from("<H", message, fields)[0]
        at = unpack_from("<H", message, fields + 4 + 2 * number)[0] if inside else 0
        return table + at if at else 0

    header = field(unpack_from("<I", message)[0], 2)
    return bool(field(header + unpack_from("<I", message, header)[0], 3))


def _check_marks(topic: Topic, path: Path, batch: pa.RecordBatch) -> None:
    if "_deleted" in batch.schema.names and batch.column("_deleted").null_count:
        raise SchemaError(
            f'"_deleted" is NULL in the file "{path.name}" for topic "{topic.name}"', hint="Write true or false."
        )


def _check_corrected(topic: Topic, path: Path, batch: pa.RecordBatch) -> None:
    name = topic.event_time
    if (
        topic.corrected is not None
        and name
        and with_times(topic.corrected, name, batch).column(name) != batch.column(name)
    ):
        raise SchemaError(
            f'the file "{path.name}" holds other event times than topic "{topic.name}" would make',
            detail=f"Column {name} is made from {', '.join(topic.corrected.columns)}.",
            hint="Append the records instead: the log makes the column.",
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
