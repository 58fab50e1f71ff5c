"""Nexmark: its queries as views of one pipeline, equal to Spark batch over the same events."""

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from benchmarks.nexmark.answers import checked
from benchmarks.nexmark.events import Shape, events
from benchmarks.nexmark.journal import fill, write_side
from benchmarks.nexmark.queries import QUERIES
from penstock.log import Log

EVENTS = 200_000


def test_events_depend_on_their_number_alone() -> None:
    whole, half = events(0, 1000, Shape()), events(400, 600, Shape())
    for kind, table in half.items():
        assert table.equals(whole[kind].slice(len(whole[kind]) - len(table)))
    assert [len(whole[kind]) for kind in ("person", "auction", "bid")] == [20, 60, 920]
    assert not events(0, 1000, Shape(seed=2))["bid"].equals(whole["bid"])


@pytest.mark.spark
@pytest.mark.timeout(1200)
def test_all_queries_equal_batch(spark: SparkSession, tmp_path: Path) -> None:
    write_side(tmp_path / "side.parquet")
    with Log.open(tmp_path / "log") as log:
        fill(log, EVENTS, Shape())
        found = checked(spark, log, tmp_path / "home", tmp_path / "side.parquet", list(QUERIES), lambda _: None)
    assert [view for view, rows in found.items() if not len(rows)] == []
