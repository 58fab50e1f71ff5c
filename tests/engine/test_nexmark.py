"""Nexmark: its queries as views of one pipeline, equal to Spark batch over the same events."""

from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from benchmarks.nexmark.answers import changes, checked, difference
from benchmarks.nexmark.checking import BATCH, EVENTS, SHAPE
from benchmarks.nexmark.journal import fill, write_side
from benchmarks.nexmark.queries import QUERIES, pipeline_text
from penstock.engine.compile import compiled
from penstock.engine.oracle import Oracle
from penstock.engine.query import Query, Tuning
from penstock.engine.run import Prepared, Run, prepared
from penstock.log import Log
from penstock.model import pipeline_of


@pytest.mark.spark
@pytest.mark.timeout(1200)
def test_all_queries_equal_batch(spark: SparkSession, tmp_path: Path) -> None:
    write_side(tmp_path / "side.parquet")
    with Log.open(tmp_path / "log") as log:
        fill(log, EVENTS, SHAPE, frame=BATCH)
        found = checked(spark, log, tmp_path / "home", tmp_path / "side.parquet", list(QUERIES), batch=BATCH)
        batches = sum("until" in header.note for header in log.frames())
    assert {name: answer for name, answer in found.items() if isinstance(answer, str)} == {}
    assert [view for view, rows in found.items() if not len(rows)] == []
    assert batches == 7


def run_over(spark: SparkSession, log: Log, home: Path, ready: Prepared) -> int:
    """Brings what is ready to the end of the log, and says where that was."""
    end, run = log.mark().next_frame, Run(spark, log, home, ready, lambda _: None)
    run.wait(run.start(once=True))
    return end


@pytest.mark.parametrize("query", ["q4", "q18"])
def test_what_is_kept_nowhere_has_the_state_of_what_is_kept(spark: SparkSession, tmp_path: Path, query: str) -> None:
    """Half of the events with the answer kept nowhere, as it is measured; then its changes are kept, which must lead
    from Spark's answer at half-time to that at the end.
    """
    nowhere, kept = (pipeline_of(pipeline_text([query], tmp_path, store), name="one") for store in ("none", "topic"))
    home, plan = tmp_path / "home", compiled(spark, kept)
    with Log.open(tmp_path / "log") as log:
        fill(log, 10_000, SHAPE, frame=2_500)
        begun = prepared(spark, nowhere, log, home)
        middle = run_over(spark, log, home, begun)
        fill(log, 10_000, replace(SHAPE, seed=2), frame=2_500)
        goes_on = Prepared(kept, plan, Query(spark, plan.graph, Tuning()), begun.lineage)
        end = run_over(spark, log, home, goes_on)
        before, after = (Oracle(spark, kept, log.folder, place).rows(query) for place in (middle, end))
        came, left = changes(log, "one", query)
    assert len(left) and difference(pa.concat_tables([before, came]), pa.concat_tables([after, left])) == ""
