"""A pipeline on a log of its own, run batch by batch, with the oracle beside it."""

import sys
from collections.abc import Callable, Container, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, SparkSession

from penstock.engine.batches import Committed
from penstock.engine.oracle import Difference, Oracle, compared
from penstock.engine.run import Run, prepared
from penstock.log import Log
from penstock.model import Pipeline, Stream, Table, pipeline_of
from penstock.views import Position, SqliteStore, ViewReader, catch_up
from tests.engine.folded import Folded
from tests.engine.power import compile_watched_disk

QUICK = {
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.shuffle.partitions": "1",
}
"""Over a few rows most of Spark's time would go into compiling."""


class Bench:
    """Appends, drains, compares."""

    def __init__(self, spark: SparkSession, folder: Path, sql: str, **options: Any) -> None:
        """The options are the pipeline's."""
        self.home = folder / "home"
        self.store = folder / "views.sqlite"
        self.log = self.opened(folder / "log")
        self.batches: list[Committed] = []
        self.checked = 0
        self._root = spark
        self._sql = sql
        self._folded: dict[str, Folded] = {}
        self._due: Container[int] = ()
        self.start(**options)

    def opened(self, folder: Path) -> Log:
        return Log.open(folder)

    def start(self, **options: Any) -> None:
        """As another process would: planned anew from the text, state read from the checkpoint."""
        self._root._jvm.org.apache.spark.sql.execution.streaming.state.StateStore.stop()  # type: ignore[union-attr]
        self.pipeline = self.declared(options)
        self.spark = self._root.newSession()
        self.spark.conf.set("spark.sql.ansi.enabled", str(self.pipeline.options.ansi).lower())
        if self.pipeline.options.shuffle_partitions is not None:
            self.spark.conf.set("spark.sql.shuffle.partitions", self.pipeline.options.shuffle_partitions)
        self.ready = prepared(self.spark, self.pipeline, self.log, self.home)

    def declared(self, options: Mapping[str, Any]) -> Pipeline:
        return pipeline_of(self._sql, name="test", options=options)

    def declare(self, sql: str) -> None:
        """The user writes it otherwise, and starts it again."""
        self._sql = sql
        self.start()

    def append(self, rows: Mapping[str, Sequence[Any]]) -> None:
        self.log.append_all(rows)

    def drain(self) -> None:
        self.log.settle()
        run = self.run()
        run.wait(run.start(once=True))

    def run(self) -> Run:
        return Run(self.spark, self.log, self.home, self.ready, self.batches.append)

    def content(self, view: str) -> list[dict[str, Any]]:
        """What the view's change topic folds to, as far as it was checked."""
        return self._folded[view].rows()

    def check(self, every: int = 1, *, only: Container[int] | None = None) -> None:
        """Every batch since the last check, or one of `every`, or `only` these: folded changes = store = Spark batch,
        for all views.
        """
        self._due = range(0, sys.maxsize, every) if only is None else only
        with SqliteStore(self.store) as store:
            catch_up(self.log, "test", store, on_step=self._check_step, together=1)

    def _check_step(self, position: Position) -> None:
        if position.batch is None:
            kept = [view.name for view in self.pipeline.views if view.options.store != "none"]
            self._folded = {name: Folded(self.log, self.ready.lineage.topic(name)) for name in kept}
            return
        for folded in self._folded.values():
            folded.take(position.frame)
        if position.batch in self._due:
            self._check_views(QuickOracle(self.spark, self.pipeline, self.log.folder, position.until))

    def _check_views(self, oracle: Oracle) -> None:
        with ViewReader(self.store) as reader:
            for name, folded in self._folded.items():
                expected = oracle.rows(name)
                self._same(name, "change topic", expected, folded.rows())
                if self.pipeline.view(name).options.store == "table":
                    self._same(name, "store", expected, reader.rows(name).table.to_pylist())
        self.checked += 1

    def _same(self, view: str, where: str, expected: pa.Table, rows: list[dict[str, Any]]) -> None:
        found = pa.Table.from_pylist(rows, schema=expected.schema)
        difference: Difference = compared(expected, found, unordered=self.ready.compiled.unordered[view])
        assert not difference, (self.batches[-1], where, view, self.pipeline.view(view).query, difference)


class QuickOracle(Oracle):
    """The same answers, sooner: relations are folded once for all views. Streams whose rows may be late stay in the
    log, where they have their stamps.
    """

    def _session(self, spark: SparkSession) -> SparkSession:
        made = super()._session(spark)
        for name, value in QUICK.items():
            made.conf.set(name, value)
        return made

    def _show(self, relation: Stream | Table, content: DataFrame) -> None:
        super()._show(relation, content if relation.event_time else self._spark.createDataFrame(content.toArrow()))


@pytest.fixture
def bench(spark: SparkSession, tmp_path: Path) -> Iterator[Callable[..., Bench]]:
    opened: list[Bench] = []

    def make(sql: str, *, folder: Path | None = None, **options: Any) -> Bench:
        opened.append(Bench(spark, folder or tmp_path / str(len(opened)), sql, **options))
        return opened[-1]

    yield make
    for each in opened:
        each.log.close()


@pytest.fixture(scope="session")
def watched_disk(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The classes of the watched disk of `kernel/test`."""
    classes = tmp_path_factory.mktemp("watched")
    compile_watched_disk(classes)
    return classes
