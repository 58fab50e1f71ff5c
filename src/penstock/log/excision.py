"""Excision: all records with some value go from the files of a topic, for good.

They go from sealed files, and from what was staged or set aside; their offsets stay used, with nothing there. That it
happened stays in the log: when, by whom, of which topic, how many, and a hash of the value, never the value. Killed
anywhere, it is done by doing it again. What others have made of the records (views, engine state) is not known here.
"""

import hashlib
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from penstock.errors import LogError
from penstock.log.catalog import Catalog
from penstock.log.disk import Disk
from penstock.log.expiry import is_kept
from penstock.log.journal import Journal
from penstock.log.newest import comparable
from penstock.log.rewriting import records, rewrite
from penstock.log.topic import Topic

Marks = np.ndarray[tuple[int, ...], np.dtype[np.bool_]]
CHUNK = 1 << 22


@dataclass(frozen=True)
class Excised:
    """What went: so many records of a topic; `hash` stands for the value that they had."""

    topic: str
    hash: str
    records: int


@dataclass(frozen=True)
class Sought:
    """The records of a topic in which these columns have these values."""

    topic: Topic
    values: Mapping[str, Any]

    def __post_init__(self) -> None:
        if not self.values:
            raise LogError(
                f'topic "{self.topic.name}" has no key',
                hint="Name the column whose value is to go, for instance --column customer.",
            )
        for name in self.values:
            self.topic.schema.column(name)  # raises, naming it

    def in_columns(self, columns: Mapping[str, pa.Array]) -> Marks:
        """Which rows have the values."""
        length = len(next(iter(columns.values())))
        if not self.values.keys() <= columns.keys():  # a column that was added later
            return np.zeros(length, np.bool_)
        found = [_equal(columns[name], value) for name, value in self.values.items()]
        return np.asarray(np.logical_and.reduce(found))

    @property
    def needle(self) -> bytes | None:
        """Bytes that stand in every file that holds such a record; None if there are none to look for."""
        texts = [each.encode() if isinstance(each, str) else each for each in self.values.values()]
        return max((each for each in texts if isinstance(each, bytes) and each), key=len, default=None)


def hashed(identity: str, topic: str, values: Mapping[str, Any]) -> str:
    """A text that is the same for the same value in the same log."""
    text = json.dumps([identity, topic, sorted((name, repr(value)) for name, value in values.items())])
    return hashlib.sha256(text.encode()).hexdigest()


def excise(journal: Journal, catalog: Catalog, sought: Sought, disk: Disk) -> Iterator[int]:
    """Rewrites the files that hold such records, stretch by stretch; how many records went of each."""
    for first in journal.sealed():
        gone = 0
        for found in journal.stretch(first).files:
            if found["topic"] == sought.topic.name and is_kept(catalog, found):
                gone += _excise_file(journal, first, found, sought, disk)
        yield gone


def _excise_file(journal: Journal, first: int, found: dict[str, Any], sought: Sought, disk: Disk) -> int:
    stretch = journal.stretch(first)
    gone, replaced = 0, False
    for batch in records(stretch, found, sought.topic):
        gone += int(_rows(sought, batch).sum())
        replaced = replaced or bool(_replaced(sought, batch).any())
    if gone or replaced:
        rewrite(journal, stretch, found, sought.topic, partial(_without, sought), disk)
    return gone


def _without(sought: Sought, batch: pa.RecordBatch) -> pa.RecordBatch:
    rows = batch.filter(pa.array(~_rows(sought, batch)))
    replaced = _replaced(sought, rows)
    if replaced.any():  # taken anew, so that no bytes of them are left behind the NULLs
        at = rows.schema.get_field_index("_replaces")
        kept = pa.array(np.arange(len(rows)), mask=replaced)
        rows = rows.set_column(at, rows.schema.field(at), rows.column(at).take(kept))
    return rows


def _rows(sought: Sought, batch: pa.RecordBatch) -> Marks:
    return sought.in_columns(dict(zip(batch.schema.names, batch.columns, strict=True)))


def _replaced(sought: Sought, batch: pa.RecordBatch) -> Marks:
    """Where the row that a record replaces has the values."""
    if "_replaces" not in batch.schema.names:
        return np.zeros(len(batch), np.bool_)
    replaces = batch.column("_replaces")
    found = sought.in_columns({field.name: pc.struct_field(replaces, field.name) for field in replaces.type})
    return np.asarray(found & replaces.is_valid().to_numpy(zero_copy_only=False))


def _equal(array: pa.Array, value: Any) -> Marks:
    if value is None:
        return np.asarray(array.is_null().to_numpy(zero_copy_only=False))
    wanted = comparable(pa.array([value], array.type))[0]
    return np.asarray(pc.equal(comparable(array), wanted).fill_null(False).to_numpy(zero_copy_only=False))


def clear_aside(journal: Journal, sought: Sought, disk: Disk) -> None:
    """Removes what was set aside or staged and never taken, if it may hold such a record; reports of it stay."""
    taken = {
        block.file
        for first in journal.unsealed()
        for found in journal.stretch(first).frames
        for block in found.header.blocks
        if block.file is not None
    }
    given = {name.partition("+")[2] for name in taken}
    loose = [path for path in (journal.folder / "staged").iterdir() if path.name not in taken | given]
    for path in [*loose, *(journal.folder / "aside").glob("*.torn")]:
        if sought.needle is None or _holds(path, sought.needle):
            disk.remove(path)
    disk.sync_folder(journal.folder / "aside")


def _holds(path: Path, needle: bytes) -> bool:
    tail = b""
    with open(path, "rb") as file:
        while data := file.read(CHUNK):
            if needle in tail + data:
                return True
            tail = data[-len(needle) :]
    return False
