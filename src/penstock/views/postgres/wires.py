"""Wires: columns as PostgreSQL takes them in a binary COPY, made for whole columns at once.

A `Wire` is the lengths of the values, -1 for NULL, and their bytes one after another. `copied` puts wires of the same
number of rows side by side, row by row, as the format wants it.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

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
    """Rows side by side: where in `data` each begins, the end of the last included; `ends` are those of its values."""

    data: Numbers
    starts: Numbers
    ends: Numbers

    def pieces(self, columns: int) -> list[bytes]:
        """Of each row the bytes of its first columns."""
        held = self.data.tobytes()
        ends = self.ends[:, columns - 1].tolist()
        return [held[start:end] for start, end in zip(self.starts[:-1].tolist(), ends, strict=True)]


def rows_of(wires: Sequence[Wire]) -> Rows:
    """The rows as they stand in a COPY: for each the number of values, then length and bytes of each."""
    count = len(wires[0])
    sizes = np.stack([np.maximum(wire.lengths, 0) + 4 for wire in wires], axis=1)
    starts = np.concatenate([[0], np.cumsum(sizes.sum(axis=1) + 2)])
    ends = starts[:-1, None] + 2 + np.cumsum(sizes, axis=1)
    data = np.zeros(int(starts[-1]), np.uint8)
    _scatter(data, starts[:-1], _big(np.full(count, len(wires)), ">i2"), 2)
    for at, wire in enumerate(wires):
        begins = ends[:, at] - sizes[:, at]
        _scatter(data, begins, _big(wire.lengths, ">i4"), 4)
        _scatter_pieces(data, begins + 4, np.maximum(wire.lengths, 0), wire.data)
    return Rows(data, starts, ends)


def copied(wires: Sequence[Wire]) -> bytes:
    """All that a COPY is sent."""
    return HEADER + (rows_of(wires).data.tobytes() if len(wires[0]) else b"") + TRAILER


def _big(values: Numbers, type_: str) -> Numbers:
    return values.astype(type_).view(np.uint8)


def _scatter(data: Numbers, starts: Numbers, values: Numbers, width: int) -> None:
    data[starts[:, None] + np.arange(width)] = values.reshape(-1, width)


def _scatter_pieces(data: Numbers, starts: Numbers, lengths: Numbers, values: Numbers) -> None:
    """Pieces that lie one after another go where they belong."""
    if not len(values):
        return
    if len(lengths) * lengths[0] == len(values) and (lengths == lengths[0]).all():
        _scatter(data, starts, values, int(lengths[0]))
        return
    before = np.cumsum(lengths) - lengths
    data[np.repeat(starts - before, lengths) + np.arange(len(values))] = values
