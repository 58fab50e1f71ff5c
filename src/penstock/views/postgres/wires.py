"""Wires: columns as PostgreSQL takes them in a binary COPY, made for whole columns at once.

A `Wire` is the lengths of the values, -1 for NULL, and their bytes one after another. `copied` puts wires of the same
number of rows side by side, row by row, as the format wants it.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

Numbers = np.ndarray[Any, np.dtype[Any]]
NULL = -1
HEADER = b"PGCOPY\n\xff\r\n\0" + bytes(8)
TRAILER = b"\xff\xff"


@dataclass(frozen=True)
class Wire:
    lengths: Numbers
    data: Numbers

    def __len__(self) -> int:
        return len(self.lengths)


def fixed(values: Numbers, is_valid: Numbers | None = None) -> Wire:
    """Numbers of a big-endian type; where they are not valid, NULL."""
    width = values.dtype.itemsize
    if is_valid is None or is_valid.all():
        data = np.ascontiguousarray(values).view(np.uint8)
        return Wire(np.full(len(values), width, np.int64), data.reshape(-1))
    data = np.ascontiguousarray(values[is_valid]).view(np.uint8).reshape(-1)
    return Wire(np.where(is_valid, width, NULL), data)


def of_bytes(values: Sequence[bytes | None]) -> Wire:
    lengths = np.fromiter((NULL if value is None else len(value) for value in values), np.int64, len(values))
    return Wire(lengths, np.frombuffer(b"".join(value for value in values if value is not None), np.uint8))


def of_binary(array: pa.Array) -> Wire:
    """An Arrow array of strings or bytes; what lies beneath a NULL is left out."""
    plain = array.cast(pa.large_binary())
    if plain.null_count:
        lengths = np.full(len(plain), NULL, np.int64)
        is_valid = valid(plain)
        inner = of_binary(plain.filter(pa.array(is_valid)))
        lengths[is_valid] = inner.lengths
        return Wire(lengths, inner.data)
    _, offsets, data = plain.buffers()
    bounds = np.frombuffer(offsets, np.int64, len(plain) + 1, plain.offset * 8) if len(plain) else np.zeros(1, np.int64)
    found = np.frombuffer(data, np.uint8) if data is not None else np.empty(0, np.uint8)
    return Wire(np.diff(bounds), found[bounds[0] : bounds[-1]])


def valid(array: pa.Array) -> Numbers:
    return np.asarray(array.is_valid())


@dataclass(frozen=True)
class Rows:
    """Rows side by side: where in `data` each begins, the end of the last included."""

    wires: Sequence[Wire]
    data: bytes
    starts: Numbers

    def pieces(self, columns: int) -> list[bytes]:
        """Of each row the bytes of its first columns."""
        starts, ends = self.starts[:-1], self.starts[:-1] + 2 + _sizes(self.wires[:columns])
        return [self.data[start:end] for start, end in zip(starts.tolist(), ends.tolist(), strict=True)]


def rows_of(wires: Sequence[Wire]) -> Rows:
    """The rows as they stand in a COPY: for each the number of values, then length and bytes of each."""
    count = len(wires[0])
    starts = np.concatenate([[0], np.cumsum(_sizes(wires) + 2)])
    joined = pc.binary_join_element_wise(*_pieces(wires, count), pa.scalar(b"", pa.large_binary()))
    return Rows(wires, joined.buffers()[2].to_pybytes()[: int(starts[-1])], starts)


def copied(wires: Sequence[Wire]) -> bytes:
    """All that a COPY is sent."""
    return HEADER + (rows_of(wires).data if len(wires[0]) else b"") + TRAILER


def _sizes(wires: Sequence[Wire]) -> Numbers:
    """How many bytes the values of each row have, with their lengths."""
    found: Numbers = sum(np.maximum(wire.lengths, 0) + 4 for wire in wires)  # type: ignore[assignment]
    return found


def _pieces(wires: Sequence[Wire], count: int) -> Iterator[pa.Array]:
    """What a row is made of, from left to right: columns of bytes, of which each is as wide as can be."""
    even: list[Numbers] = [_big(np.full(count, len(wires)), ">i2")]
    for wire in wires:
        even.append(_big(wire.lengths, ">i4"))
        if (wire.lengths == wire.lengths[0]).all():
            even.append(wire.data.reshape(count, -1))
        elif len(wire.data):
            yield _even(even)
            yield _column(np.maximum(wire.lengths, 0), wire.data)
            even = []
    if even:
        yield _even(even)


def _big(values: Numbers, type_: str) -> Numbers:
    return values.astype(type_).view(np.uint8).reshape(len(values), -1)


def _even(parts: Sequence[Numbers]) -> pa.Array:
    data = np.concatenate(parts, axis=1)
    return _column(np.full(len(data), data.shape[1]), data)


def _column(lengths: Numbers, data: Numbers) -> pa.Array:
    """Pieces that lie one after another."""
    bounds = np.concatenate([[0], np.cumsum(lengths)])
    return pa.Array.from_buffers(pa.large_binary(), len(lengths), [None, pa.py_buffer(bounds), pa.py_buffer(data)])
