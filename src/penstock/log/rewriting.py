"""Rewriting: a file of a sealed stretch is replaced by one with fewer records.

The new file is written under a name of its own and synced; then the stretch's list of files, which takes the old one's
place in one rename; then the old file goes. Killed anywhere, the stretch is as before or as after, and `tidy` removes
what is left over. Offsets stay: where records went, there are gaps. Runs under the sealers' lock.
"""

from collections.abc import Callable, Iterator
from typing import Any

import pyarrow as pa

from penstock.errors import DamagedLog
from penstock.log.blocks import opened_file, sealed_batches
from penstock.log.columns import block_schema
from penstock.log.disk import Disk
from penstock.log.journal import LIST, Journal, Stretch
from penstock.log.sealed import STAMPS, checked, combined, write_batches
from penstock.log.stretch import encode_prelude
from penstock.log.topic import Topic

Keep = Callable[[pa.RecordBatch], pa.RecordBatch]
"""What is kept of a batch: some of its rows, perhaps without a column."""


def records(stretch: Stretch, found: dict[str, Any], topic: Topic) -> Iterator[pa.RecordBatch]:
    """All records of a sealed file; raises where they are damaged."""
    schema = pa.schema([*STAMPS, *block_schema(topic.schemas[found["schema"]], tuple(found["extras"]))])
    path = stretch.folder / found["name"]
    with opened_file(path) as file:
        within = found["base"], found["base"] + found["count"]
        for batch in sealed_batches(path, file, found, schema, within):
            if isinstance(batch.rows, DamagedLog):
                raise batch.rows
            yield batch.rows


def rewrite(journal: Journal, stretch: Stretch, found: dict[str, Any], topic: Topic, keep: Keep, disk: Disk) -> None:
    """Replaces a file of a sealed stretch by what is kept of it."""
    fresh = _rewritten(stretch, found, topic, keep, disk)
    disk.sync_folder(stretch.folder)  # the new name is there before the list names it
    listed = [fresh if each["name"] == found["name"] else each for each in stretch.files]
    disk.write_whole(stretch.folder / LIST, encode_prelude({"files": listed}))
    disk.remove(stretch.folder / found["name"])
    journal.reopened(stretch.first)


def _rewritten(stretch: Stretch, found: dict[str, Any], topic: Topic, keep: Keep, disk: Disk) -> dict[str, Any]:
    """The entry of the new file; without any records there is none."""
    held = [rows for batch in records(stretch, found, topic) if len(rows := keep(batch))]
    entry = found | {"name": _next_name(found["name"]), "sparse": True, "batches": []}
    if not held:
        return entry
    extras = [name for name in found["extras"] if name in held[0].schema.names]
    path = stretch.folder / entry["name"]
    disk.remove(path)  # a run that was killed may have left it
    batches = list(combined(held, held[0].schema))
    with pa.OSFile(str(path), "wb") as sink:
        ends = write_batches(sink, held[0].schema, iter(batches))
    bounds = [_bounds(batch) for batch in batches]
    written = [each | bound for each, bound in zip(checked(path, ends, disk), bounds, strict=True)]
    return entry | {"extras": extras, "batches": written}


def _bounds(batch: pa.RecordBatch) -> dict[str, int]:
    offsets = batch.column("_offset")
    return {"base": offsets[0].as_py(), "end": offsets[-1].as_py() + 1}


def _next_name(name: str) -> str:
    """`orders.0+1.arrow`  =>  `orders.0+2.arrow`; no topic has a plus in its name"""
    stem, _, number = name.removesuffix(".arrow").partition("+")
    return f"{stem}+{int(number or 0) + 1}.arrow"
