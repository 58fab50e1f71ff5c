"""A pipeline on a log of its own, run batch by batch, with the oracle beside it."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from penstock.engine.batches import Committed
from penstock.engine.oracle import Difference, Oracle, compared
from penstock.engine.run import Run, prepared
from penstock.log import Log
from penstock.model import pipeline_of


class Bench:
    """Appends, drains, compares."""

    def __init__(self, spark: SparkSession, folder: Path, sql: str) -> None:
        self.spark = spark
        self.home = folder / "home"
        self.pipeline = pipeline_of(sql, name="test")
        self.log = Log.open(folder / "log")
        self.ready = prepared(spark, self.pipeline, self.log, self.home)
        self.batches: list[Committed] = []

    def append(self, rows: Mapping[str, Sequence[Any]]) -> None:
        self.log.append_all(rows)

    def drain(self) -> None:
        run = Run(self.spark, self.log, self.home, self.ready, self.batches.append)
        run.wait(run.start(once=True))

    def content(self, view: str) -> list[dict[str, Any]]:
        """What the view's change topic folds to."""
        topic = self.ready.lineage.topic(view)
        rows: list[dict[str, Any]] = []
        for entry in self.log.read(topic):
            if entry.replaces is not None:
                rows.remove(dict(entry.replaces))
            elif entry.deleted:
                rows.remove(dict(entry.value))  # type: ignore[arg-type]
            if not entry.deleted:
                rows.append(dict(entry.value))  # type: ignore[arg-type]
        return rows

    def difference(self, view: str) -> Difference:
        """The folded change topic against Spark batch over the prefix that was read."""
        expected = Oracle(self.spark, self.pipeline, self.log.folder, self.batches[-1].end).rows(view)
        found = pa.Table.from_pylist(self.content(view), schema=expected.schema)
        return compared(expected, found, unordered=view in self.ready.compiled.unordered)

    def check(self) -> None:
        for view in self.pipeline.views:
            difference = self.difference(view.name)
            assert not difference, (view.name, difference)


@pytest.fixture
def bench(spark: SparkSession, tmp_path: Path) -> Iterator[Callable[[str], Bench]]:
    opened: list[Bench] = []

    def make(sql: str) -> Bench:
        opened.append(Bench(spark, tmp_path / str(len(opened)), sql))
        return opened[-1]

    yield make
    for each in opened:
        each.log.close()
