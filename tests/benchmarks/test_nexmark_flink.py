"""Flink's answers to Nexmark are those of Spark batch over the same events.

The difference in what the two mean is in `benchmarks.nexmark.flink.queries.DIFFERENCES`. Needs `make flink`, which is
too large for CI: where it was not run, these tests are skipped, and the closing summary of the run says so.
"""

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from benchmarks.nexmark.checking import EVENTS, SHAPE
from benchmarks.nexmark.events import events
from benchmarks.nexmark.flink import client
from benchmarks.nexmark.flink.agreement import INCOMPARABLE, Row, verdict
from benchmarks.nexmark.flink.files import write_files
from benchmarks.nexmark.flink.queries import QUERIES, UNSUPPORTED
from benchmarks.nexmark.journal import write_side
from benchmarks.nexmark.queries import QUERIES as OURS

RUNNING = [name for name in OURS if name not in UNSUPPORTED]

pytestmark = [
    pytest.mark.spark,
    pytest.mark.skipif(
        not client.PYTHON.exists(), reason="Flink's answers were not compared: there is no .venv-flink (make flink)"
    ),
]


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("nexmark") / "files"
    write_files(folder, EVENTS, SHAPE)
    return folder


@pytest.fixture(scope="module")
def flinks(data: Path) -> dict[str, list[Row]]:
    """Flink's answers, all by one process: its start takes longer than most of the queries."""
    return client.answers(RUNNING, data)


@pytest.fixture(scope="module")
def side(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The events lie in views of their own names; the side table is here."""
    folder = tmp_path_factory.mktemp("batch")
    for kind, table in events(0, EVENTS, SHAPE).items():
        pq.write_table(table, folder / f"{kind}.parquet")
        spark.read.parquet(str(folder / f"{kind}.parquet")).createOrReplaceTempView(kind)
    write_side(folder / "side.parquet")
    return folder / "side.parquet"


def test_flink_has_all_queries() -> None:
    assert set(QUERIES) == set(OURS)


@pytest.mark.parametrize("query", [name for name in RUNNING if name not in INCOMPARABLE])
def test_flink_answers_as_spark_does(spark: SparkSession, side: Path, flinks: dict[str, list[Row]], query: str) -> None:
    expected = spark.sql(OURS[query].format(side=side)).toArrow()
    assert isinstance(expected, pa.Table)
    assert verdict(query, expected, flinks[query]).startswith(f"the same {len(expected):,} rows")


def test_windows_of_processing_time_hold_no_bid_twice(flinks: dict[str, list[Row]]) -> None:
    assert sum(row["bids"] for row in flinks["q12"]) <= EVENTS


def test_flink_refuses_q6_still(data: Path) -> None:
    with client.temporary(data.parent) as out, pytest.raises(client.FlinkError) as refused:
        client.ran(["q6"], data, out, {"settings": "durable", "sink": "print-json", "events": "1"})
    assert UNSUPPORTED["q6"] in str(refused.value)


def test_a_measured_run_has_all_figures(data: Path) -> None:
    figures = client.measure("q8", data, "durable", "files", EVENTS)
    assert figures["query"] == "q8" and figures["rows_out"] > 0 and figures["state_bytes"] > 0
    assert figures["seconds"] > 0 and figures["cpu_seconds"] > 0 and figures["peak_memory_bytes"] > 100_000_000
    assert figures["events_per_second"] == pytest.approx(EVENTS / figures["seconds"])
