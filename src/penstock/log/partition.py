"""Which partition a record goes to: a stable hash of its key.

The hash is part of the format: the same key goes to the same partition in every version and process. Equal values
hash equally (-0.0 and 0.0, every NaN). Records whose key is all NULL, and those of topics without a key, go to one
partition per append, in turn.
"""

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from penstock.log.columns import Columns
from penstock.log.topic import Topic

Hashes = np.ndarray[tuple[int, ...], np.dtype[np.uint64]]
PRIME = np.uint64(0x100000001B3)
NULL = np.uint64(0x9E3779B97F4A7C15)


def split(columns: Columns, *, partition: int | None, turn: int) -> list[tuple[int, pa.RecordBatch]]:
    """The records by partition, each part in its original order."""
    topic, batch = columns.topic, columns.batch
    if partition is not None or topic.partitions == 1 or not topic.key:
        where = partition if partition is not None else turn % topic.partitions
        return [(where, batch)] if len(batch) else []
    chosen = partitions_of(topic, batch, turn=turn)
    parts = []
    for each in range(topic.partitions):
        rows = np.flatnonzero(chosen == each)
        if len(rows):
            parts.append((each, batch if len(rows) == len(batch) else batch.take(pa.array(rows))))
    return parts


def partitions_of(topic: Topic, batch: pa.RecordBatch, *, turn: int) -> np.ndarray[tuple[int, ...], np.dtype[np.int64]]:
    hashes: Hashes = np.zeros(len(batch), np.uint64)
    missing = np.ones(len(batch), bool)
    with np.errstate(over="ignore"):
        for name in topic.key:
            array = batch.column(name)
            hashes = mixed(hashes * PRIME + column_hashes(array))
            missing &= array.is_null().to_numpy(zero_copy_only=False)
        chosen = (hashes >> np.uint64(1)).astype(np.int64) % topic.partitions
    return np.where(missing, turn % topic.partitions, chosen)


def column_hashes(array: pa.Array) -> Hashes:
    """One 64-bit hash for each value."""
    valid = array.is_valid().to_numpy(zero_copy_only=False)
    if pa.types.is_decimal(array.type):
        low, high = unscaled(array)
        found = mixed(mixed(low) * PRIME + mixed(high))
    elif pa.types.is_string(array.type) or pa.types.is_binary(array.type):
        found = mixed(byte_hashes(pc.cast(array, pa.binary())))
    elif pa.types.is_floating(array.type):
        doubles = pc.fill_null(pc.cast(array, pa.float64()), 0.0).to_numpy(zero_copy_only=False) + 0.0
        found = mixed(np.where(np.isnan(doubles), np.float64("nan"), doubles).view(np.uint64))
    else:
        found = mixed(whole_numbers(array).view(np.uint64))
    return np.where(valid, found, NULL)


def whole_numbers(array: pa.Array) -> np.ndarray[tuple[int, ...], np.dtype[np.int64]]:
    if pa.types.is_date32(array.type):
        array = array.cast(pa.int32())
    values = pc.fill_null(pc.cast(array, pa.int64()), 0).to_numpy(zero_copy_only=False)
    return np.ascontiguousarray(values, np.int64)


def unscaled(array: pa.Array) -> tuple[Hashes, Hashes]:
    """The lower and the upper 64 bits of the unscaled numbers."""
    words = np.frombuffer(array.buffers()[1], np.uint64).reshape(-1, 2)[array.offset : array.offset + len(array)]
    return np.ascontiguousarray(words[:, 0]), np.ascontiguousarray(words[:, 1])


def byte_hashes(array: pa.Array) -> Hashes:
    """A polynomial in the bytes of each value, modulo 2^64, and its length."""
    _, offsets_buffer, data_buffer = array.buffers()
    offsets = np.frombuffer(offsets_buffer, np.int32)[array.offset : array.offset + len(array) + 1].astype(np.int64)
    lengths = np.diff(offsets)
    found = lengths.astype(np.uint64) * PRIME
    if data_buffer is None or not lengths.any():
        return found
    data = np.frombuffer(data_buffer, np.uint8)[offsets[0] : offsets[-1]].astype(np.uint64) + np.uint64(1)
    starts = offsets[:-1] - offsets[0]
    powers = np.cumprod(np.full(int(lengths.max()), PRIME, np.uint64))
    within = np.arange(len(data)) - np.repeat(starts, lengths)
    some = lengths > 0
    found[some] += np.add.reduceat(data * powers[within], starts[some])
    return found


def mixed(values: Hashes) -> Hashes:
    """Spreads every bit over all (the finalizer of splitmix64)."""
    with np.errstate(over="ignore"):
        values = (values ^ (values >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        values = (values ^ (values >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        return values ^ (values >> np.uint64(31))
