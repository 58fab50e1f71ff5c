"""Which partition a record goes to: a stable hash of its key.

The hash is part of the format: the same key goes to the same partition in every version and process. Equal values
hash equally (-0.0 and 0.0, every NaN). Records whose key is all NULL, and those of topics without a key, go to one
partition per append, in turn.
"""

from collections.abc import Sequence

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
    key = [batch.column(name) for name in topic.key]
    missing = np.ones(len(batch), bool)
    for array in key:
        missing &= array.is_null().to_numpy(zero_copy_only=False)
    chosen = (row_hashes(key, len(batch)) >> np.uint64(1)).astype(np.int64) % topic.partitions
    return np.where(missing, turn % topic.partitions, chosen)


def row_hashes(columns: Sequence[pa.Array], rows: int) -> Hashes:
    """One 64-bit hash for each row of these columns."""
    hashes: Hashes = np.zeros(rows, np.uint64)
    with np.errstate(over="ignore"):
        for array in columns:
            hashes = mixed(hashes * PRIME + column_hashes(array))
    return hashes


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
    elif pa.types.is_struct(array.type):
        found = row_hashes(array.flatten(), len(array))
    elif pa.types.is_list(array.type):
        lengths = whole_numbers(pc.list_value_length(array))
        found = mixed(sequence_hashes(column_hashes(array.flatten()), lengths))
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
    """A polynomial in the bytes of each value, and its length."""
    _, offsets_buffer, data_buffer = array.buffers()
    offsets = np.frombuffer(offsets_buffer, np.int32)[array.offset : array.offset + len(array) + 1].astype(np.int64)
    data = np.frombuffer(data_buffer or b"", np.uint8)[offsets[0] : offsets[-1]]
    return sequence_hashes(data.astype(np.uint64) + np.uint64(1), np.diff(offsets))


def sequence_hashes(items: Hashes, lengths: np.ndarray[tuple[int, ...], np.dtype[np.int64]]) -> Hashes:
    """Of sequences that lie one behind the other: a polynomial in the items of each, modulo 2^64, and its length."""
    found = lengths.astype(np.uint64) * PRIME
    if not lengths.any():
        return found
    starts = np.cumsum(lengths) - lengths
    powers = np.cumprod(np.full(int(lengths.max()), PRIME, np.uint64))
    within = np.arange(len(items)) - np.repeat(starts, lengths)
    some = lengths > 0
    found[some] += np.add.reduceat(items * powers[within], starts[some])
    return found


def mixed(values: Hashes) -> Hashes:
    """Spreads every bit over all (the finalizer of splitmix64)."""
    with np.errstate(over="ignore"):
        values = (values ^ (values >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        values = (values ^ (values >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        return values ^ (values >> np.uint64(31))
