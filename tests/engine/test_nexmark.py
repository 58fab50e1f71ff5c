"""Nexmark: its queries as views of one pipeline, equal to Spark batch over the same events."""

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from benchmarks.nexmark.answers import checked
from benchmarks.nexmark.checking import BATCH, EVENTS, SHAPE
from benchmarks.nexmark.journal import fill, write_side
from benchmarks.nexmark.queries import QUERIES
from penstock.log import Log


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
    assert batches >= 7
