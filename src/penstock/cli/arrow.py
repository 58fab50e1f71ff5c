"""Arrow: IPC files and streams become batches to append, and records that are read become an IPC stream."""

from collections.abc import Iterable, Iterator, Sequence
from typing import BinaryIO
from zlib import crc32

import pyarrow as pa

from penstock.cli.sources import Batch
from penstock.errors import CommandError
from penstock.log import Topic
from penstock.log.hidden import STAMPS, type_of
from penstock.schema import arrow_type


def arrow_batches(file: BinaryIO, name: str, size: int) -> Iterator[Batch]:
    """The record batches of an IPC file or stream, none longer than `size`."""
    records = crc = 0
    for batch, position in _record_batches(file, name):
        for start in range(0, len(batch), size):
            rows = batch.slice(start, size)
            crc = crc32(rows.serialize(), crc)
            spot = f"{name}, records {records} to {records + len(rows) - 1}"
            yield Batch(_without_stamps(rows), spot, crc, position)
            records += len(rows)


def stream_schema(topic: Topic, names: Sequence[str]) -> pa.Schema:
    """The columns asked for, hidden ones among them."""
    return pa.schema([pa.field(name, arrow_type(type_of(topic, name))) for name in names])


def write_stream(batches: Iterable[pa.RecordBatch], schema: pa.Schema, out: BinaryIO) -> None:
    with pa.ipc.new_stream(out, schema) as stream:
        for batch in batches:
            stream.write_batch(batch)


def _record_batches(file: BinaryIO, name: str) -> Iterator[tuple[pa.RecordBatch, int]]:
    """Each batch, and how many bytes of the file have been read with it."""
    try:
        if file.peek(1)[:1] == b"A":  # type: ignore[attr-defined]
            yield from _file_batches(file)
        else:
            with pa.ipc.open_stream(file) as stream:
                for batch in stream:
                    yield batch, 0
    except pa.ArrowInvalid as error:
        raise CommandError(
            f"{name} is not an Arrow IPC file or stream", detail=f"{error}.", hint="For text use --format json or csv."
        ) from None


def _file_batches(file: BinaryIO) -> Iterator[tuple[pa.RecordBatch, int]]:
    """A file's directory stands at its end: from a pipe it has to be read whole."""
    source = pa.PythonFile(file) if file.seekable() else pa.py_buffer(file.read())
    with pa.ipc.open_file(source) as reader:
        for at in range(reader.num_record_batches):
            yield reader.get_batch(at), source.tell() if isinstance(source, pa.PythonFile) else 0


def _without_stamps(batch: pa.RecordBatch) -> pa.RecordBatch:
    return batch.select([name for name in batch.schema.names if name not in STAMPS])
