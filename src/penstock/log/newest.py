"""The newest record of every key, by place.

Keys are equal as Spark compares them: NULL is a key, -0.0 is 0.0, every NaN is the same. Exact, and over any number of
partitions: the same key may lie in several, where somebody chose the partition.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

Places = np.ndarray[tuple[int, ...], np.dtype[np.int64]]
PENDING = 1 << 20
"""Records that are looked at together."""


class Newest:
    """Takes batches with the columns of the key and `_place`, in any order."""

    def __init__(self, key: Sequence[str]) -> None:
        self._key = list(key)
        self._names = [f"key {at}" for at in range(len(self._key))]
        self._pending: list[pa.Table] = []
        self._rows = 0
        self._found: pa.Table | None = None

    def add(self, batch: pa.RecordBatch) -> None:
        columns = [comparable(batch.column(name)) for name in self._key]
        self._pending.append(pa.table([*columns, batch.column("_place")], names=[*self._names, "_place"]))
        self._rows += len(batch)
        if self._rows >= max(PENDING, self._found.num_rows if self._found else 0):
            self._merge()

    def _merge(self) -> None:
        tables = [*([self._found] if self._found else []), *self._pending]
        if tables:
            grouped = pa.concat_tables(tables).group_by(self._names).aggregate([("_place", "max")])
            self._found = grouped.select([*self._names, "_place_max"]).rename_columns([*self._names, "_place"])
        self._pending, self._rows = [], 0

    def places(self) -> Places:
        """The places of the newest records, ascending."""
        self._merge()
        return np.sort(self._found["_place"].to_numpy()) if self._found else np.zeros(0, np.int64)


def among(places: Places, chosen: Places) -> np.ndarray[tuple[int, ...], np.dtype[np.bool_]]:
    """Which of `places` are in `chosen`, which ascends."""
    if not len(chosen):
        return np.zeros(len(places), np.bool_)
    at = np.minimum(np.searchsorted(chosen, places), len(chosen) - 1)
    return np.asarray(chosen[at] == places)


def comparable(array: pa.Array) -> pa.Array:
    """The values in a form in which equal ones have equal bytes."""
    if pa.types.is_floating(array.type):
        plain = pc.add(pc.cast(array, pa.float64()), 0.0)
        same = pc.if_else(pc.is_nan(plain), float("nan"), plain)
        bits = pc.fill_null(same, 0.0).to_numpy(zero_copy_only=False).view(np.int64)
        return pa.array(bits, mask=array.is_null().to_numpy(zero_copy_only=False))
    if pa.types.is_nested(array.type):
        return pa.array([None if value is None else repr(_plain(value)) for value in array.to_pylist()], pa.string())
    return array


def _plain(value: Any) -> Any:
    if isinstance(value, float):
        return "NaN" if value != value else value + 0.0
    if isinstance(value, dict):
        return {name: _plain(each) for name, each in value.items()}
    return [_plain(each) for each in value] if isinstance(value, list) else value
