"""Batches: what Spark computed becomes one frame of the log, once.

The frame holds the changes of all views, under the lineage and the number of the batch, with the places that the
batch has read. A batch that Spark runs again finds its frame there and changes nothing. Every append expects the
epoch that this run has raised: a run that was overtaken by a newer one ends with its next batch.
"""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from time import perf_counter
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame

from penstock.engine.catalyst import Handle
from penstock.engine.lineage import Lineage
from penstock.errors import EngineError
from penstock.log import Epoch, Log


@dataclass(frozen=True)
class Committed:
    """One batch: the frames it read (`start` up to `end`), and how many changes each view got."""

    batch: int
    start: int
    end: int
    changes: Mapping[str, int]
    took: timedelta
    repeated: bool


class Batches:
    def __init__(
        self, log: Log, lineage: Lineage, epoch: Epoch, collect: "Callable[[Handle, str], Mapping[str, int]]"
    ) -> None:
        self._log = log
        self._lineage = lineage
        self._epoch = epoch
        self._collect = collect
        self._folder = lineage.folder / "changes"
        self._folder.mkdir(exist_ok=True)

    def commit(self, frame: DataFrame, batch: int) -> Committed:
        """Computes the batch and appends its frame."""
        begun = perf_counter()
        start, end = places(self._lineage.checkpoint, batch)
        counts = self._collect(frame._jdf, str(self._folder))
        rows = {self._lineage.topic(view): _table(self._folder / f"{view}.arrow") for view in counts}
        note = {
            "pipeline": self._lineage.pipeline,
            "lineage": self._lineage.number,
            "batch": batch,
            "from": start,
            "until": end,
        }
        done = self._log.append_all(
            rows, producer=self._lineage.producer, sequence=batch, expect=[self._epoch], note=note
        )
        if done.repeated:
            self._check_same(batch, note)
        return Committed(batch, start, end, dict(counts), timedelta(seconds=perf_counter() - begun), done.repeated)

    def _check_same(self, batch: int, note: Mapping[str, Any]) -> None:
        header = self._log.find(self._lineage.producer, batch)
        assert header is not None
        before, after = (header.note["from"], header.note["until"]), (note["from"], note["until"])
        if before != after:
            raise EngineError(
                f'batch {batch} of pipeline "{self._lineage.pipeline}" is in the log already, with other frames',
                detail=f"It read frames {before[0]} to {before[1] - 1}; now it has read {after[0]} to {after[1] - 1}.",
                hint=f"The checkpoint is not the one that wrote it: penstock reset {self._lineage.pipeline}",
            )


def _table(path: Path) -> pa.Table:
    with pa.memory_map(str(path)) as source:
        return pa.ipc.open_file(source).read_all()


def places(checkpoint: Path, batch: int) -> tuple[int, int]:
    """The frames that a batch reads, from its offsets in the checkpoint and those of the batch before."""
    end = _frame(checkpoint / "offsets" / str(batch))
    return (_frame(checkpoint / "offsets" / str(batch - 1)) if batch else 0), end


def _frame(path: Path) -> int:
    """All sources of a query stand at the same frame."""
    version, _, *sources = path.read_text().splitlines()
    frames = {json.loads(source)["frame"] for source in sources if source.startswith("{")}
    if version != "v1" or len(frames) != 1:
        raise EngineError("the sources of the query do not stand at the same place", detail=f"In {path}: {sources}.")
    return int(frames.pop())
