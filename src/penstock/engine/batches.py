"""Batches: what Spark computed becomes one frame of the log, once.

The frame holds the changes of all views, under the lineage and the number of the batch, with the places that the
batch has read. A batch that Spark runs again finds its frame there and changes nothing. Every append expects the
epoch that this run has raised: a run that was overtaken by a newer one ends with its next batch.
"""

import shutil
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from pathlib import Path
from time import perf_counter
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame

from penstock.engine.checkpoint import places
from penstock.engine.lineage import Lineage
from penstock.engine.sinks import Collected, Sinks
from penstock.engine.staged import remove_unused, staged_path
from penstock.engine.stages import OnStage, Stage, nobody
from penstock.errors import EngineError
from penstock.log import Epoch
from penstock.log.draft import MOST_RECORDS
from penstock.log.protocol import AnyAppended, OrderedLog


@dataclass(frozen=True)
class Committed:
    """One batch: the frames it read (`start` up to `end`), how many changes each view got, how many dead letters there
    were, how many late rows each view left out, and how many windows each has open. Its frame, if its number is known,
    when that was appended, and where its time went: `framed` is the moment, by `perf_counter`, at which it was there.
    """

    batch: int
    start: int
    end: int
    changes: Mapping[str, int]
    took: timedelta
    repeated: bool
    letters: int = 0
    late: Mapping[str, int] = field(default_factory=dict)
    open: Mapping[str, int] = field(default_factory=dict)
    frame: int | None = None
    at: datetime | None = None
    computing: float = 0.0
    appending: float = 0.0
    framed: float = 0.0


class Batches:
    def __init__(
        self, log: OrderedLog, lineage: Lineage, epoch: Epoch, sinks: Sinks, on_stage: OnStage = nobody
    ) -> None:
        self._log = log
        self._lineage = lineage
        self._epoch = epoch
        self._sinks = sinks
        self._on_stage = on_stage
        self._folder = lineage.folder / "changes"
        shutil.rmtree(self._folder, ignore_errors=True)
        self._folder.mkdir()
        remove_unused(log, lineage)

    def commit(self, frame: DataFrame, batch: int) -> Committed:
        """Computes the batch and appends its frame."""
        begun = perf_counter()
        start, end = places(self._lineage.checkpoint, batch)
        self._on_stage(Stage.PLANNED, batch)
        found = self._sinks.collected(frame._jdf, self._folder, staged_path(self._log, self._lineage, batch))
        check_size(batch, found)
        self._on_stage(Stage.STATE_COMMITTED, batch)
        computed = perf_counter()
        note: dict[str, Any] = {
            "pipeline": self._lineage.pipeline,
            "lineage": self._lineage.number,
            "batch": batch,
            "from": start,
            "until": end,
        }
        if late := {view: count for view, count in found.late.items() if count}:
            note["late"] = late
        if missed := {view: windows for view, windows in found.missed.items() if windows}:
            note["missed"] = missed
        done = self._append(found, batch, note)
        if done.repeated:
            self._check_same(batch, note)
        self._on_stage(Stage.FRAMED, batch)
        framed = perf_counter()
        return Committed(
            batch,
            start,
            end,
            found.changes,
            timedelta(seconds=framed - begun),
            done.repeated,
            found.letters,
            found.late,
            frame=getattr(done, "frame", None),
            at=done.appended_at,
            computing=computed - begun,
            appending=framed - computed,
            framed=framed,
        )

    def _append(self, found: Collected, batch: int, note: Mapping[str, Any]) -> AnyAppended:
        how: dict[str, Any] = {"producer": self._lineage.producer, "sequence": batch, "note": note}
        how |= {"expect": [self._epoch], "far_times": True}  # an answer is kept as it is
        if not found.staged:
            return self._log.append_all({topic: _table(*paths) for topic, paths in found.files.items()}, **how)
        try:
            return self._log.append_files({(topic, 0): paths for topic, paths in found.files.items()}, **how)
        finally:
            remove_unused(self._log, self._lineage)

    def _check_same(self, batch: int, note: Mapping[str, Any]) -> None:
        header = self._log.find(self._lineage.producer, batch)
        assert header is not None
        before, after = (header.note["from"], header.note["until"]), (note["from"], note["until"])
        if before != after:
            raise EngineError(
                f'batch {batch} of pipeline "{self._lineage.pipeline}" is in the log already, with other frames',
                detail=f"It read frames {before[0]} to {before[1] - 1}; now it has read {after[0]} to {after[1] - 1}.",
                hint="The checkpoint is not the one that wrote it: penstock reset PIPELINE",
            )


def check_size(batch: int, found: Collected) -> None:
    """Refuses what no frame can hold."""
    rows = found.letters + sum(found.changes.values()) + sum(found.late.values())
    if rows > MOST_RECORDS:
        raise EngineError(
            f"batch {batch} changes {rows:,} rows, and a frame holds at most {MOST_RECORDS:,}",
            detail="All views are as before this batch.",
            hint="Make batches smaller, SET max_records_per_batch = ...; then: penstock reset PIPELINE",
        )


def _table(path: Path) -> pa.Table:
    with pa.memory_map(str(path)) as source:
        return pa.ipc.open_file(source).read_all()
