"""Output: rows of views go into Parquet files, partition by partition.

Rows are gathered, so that files have few and large row groups: at most some, then they are written. At most some
files are open at a time; a partition whose file was closed gets another one. Files are synced when they are closed.
"""

import os
from collections import OrderedDict
from collections.abc import Callable
from io import RawIOBase
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from penstock.log.disk import Disk
from penstock.schema import arrow_schema
from penstock.views.folders import parted
from penstock.views.step import View

ROWS = 1 << 18
BYTES = 1 << 26
OPEN = 100
"""How many rows, and how many bytes of them, wait to be written; how many files are written to at a time."""


class Output:
    """The files of one call. `file_for` is told where a file belongs, and says where it is to be written."""

    def __init__(self, disk: Disk, file_for: Callable[[str], Path], *, name: str) -> None:
        self.places: list[str] = []
        self._disk = disk
        self._file_for = file_for
        self._name = name
        self._waiting: dict[str, tuple[View, list[pa.StructArray]]] = {}
        self._rows = self._bytes = 0
        self._open: OrderedDict[tuple[str, str], _File] = OrderedDict()

    def add(self, view: View, rows: pa.StructArray) -> None:
        self._waiting.setdefault(view.name, (view, []))[1].append(rows)
        self._rows += len(rows)
        self._bytes += rows.nbytes
        if self._rows >= ROWS or self._bytes >= BYTES:
            self._write()

    def finish(self) -> None:
        """All rows are in files, and all files on disk."""
        self._write()
        while self._open:
            self._open.popitem(last=False)[1].finish()

    def abandon(self) -> None:
        """Nothing is finished; what was written stays where it is."""
        while self._open:
            self._open.popitem()[1].abandon()

    def _write(self) -> None:
        for view, rows in self._waiting.values():
            schema = arrow_schema(view.schema)
            table = pa.Table.from_batches([pa.RecordBatch.from_struct_array(each) for each in rows], schema=schema)
            for folder, part in parted(view, table):
                self._file(view, folder, part.schema).write(part)
        self._waiting, self._rows, self._bytes = {}, 0, 0

    def _file(self, view: View, folder: str, schema: pa.Schema) -> "_File":
        key = view.name, folder
        if key not in self._open:
            if len(self._open) >= OPEN:
                self._open.popitem(last=False)[1].finish()
            place = "/".join(part for part in (view.name, folder, f"{self._name}-{len(self.places)}.parquet") if part)
            self._open[key] = _File(self._disk, self._file_for(place), schema)
            self.places.append(place)
        self._open.move_to_end(key)
        return self._open[key]


class _File:
    """One Parquet file that is being written."""

    def __init__(self, disk: Disk, path: Path, schema: pa.Schema) -> None:
        self._disk = disk
        self._sink = _Sink(disk, path)
        self._writer = pq.ParquetWriter(self._sink, schema, compression="snappy")

    def write(self, rows: pa.Table) -> None:
        self._writer.write_table(rows)

    def finish(self) -> None:
        try:
            self._writer.close()
            self._disk.sync(self._sink.file)
        finally:
            self._sink.release()

    def abandon(self) -> None:
        self._sink.release()
        self._writer.close()


class _Sink(RawIOBase):
    """What pyarrow writes goes to the disk, where tests can see it."""

    def __init__(self, disk: Disk, path: Path) -> None:
        self.file = disk.open(path, create=True)
        self._disk = disk
        self._at = 0

    def release(self) -> None:
        """What is still written goes nowhere: pyarrow ends every file, also one that has failed."""
        os.close(self.file)
        self.file = -1

    def writable(self) -> bool:
        return True

    def tell(self) -> int:
        return self._at

    def write(self, data: Any) -> int:
        if self.file >= 0:
            self._disk.write(self.file, [data], self._at)
        self._at += len(data)
        return len(data)
