"""Views that are kept as files: which can be, and that Spark reads in them what the view's query gives in batch."""

from collections.abc import Callable
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from penstock.engine.compile import compiled
from penstock.engine.explain import explained
from penstock.engine.oracle import Oracle, compared
from penstock.engine.plantext import plan_text
from penstock.engine.query import Query, Tuning
from penstock.model import pipeline_of
from penstock.views import catch_up
from penstock.views.parquet import ParquetStore
from tests.engine.conftest import Bench
from tests.texts import assert_golden, refused

RELATIONS = """\
CREATE STREAM bids (id BIGINT, auction BIGINT, price DECIMAL(10,2), at TIMESTAMP)
  WITH (event_time = 'at', watermark = '10 seconds');
CREATE STREAM notes (auction BIGINT, text STRING);
CREATE TABLE auctions (id BIGINT PRIMARY KEY, category STRING, at TIMESTAMP)
  WITH (event_time = 'at', history = 'all_auctions', watermark = '1 hour');
CREATE VIEW hours WITH (emit = 'final') AS
  SELECT window.start AS hour, count(*) AS n FROM bids GROUP BY window(at, '1 hour');
CREATE VIEW running AS SELECT window.start AS hour, count(*) AS n FROM bids GROUP BY window(at, '1 hour');
CREATE VIEW filed WITH (store = 'files'{options}) AS
  {query};
"""
GROWING = {
    "of a stream": ("", "SELECT id, price FROM bids WHERE price > 1"),
    "of a history": ("", "SELECT id, category, deleted FROM all_auctions"),
    "of two streams": ("", "SELECT bids.id, text FROM bids JOIN notes ON bids.auction = notes.auction"),
    "with rows made of one": ("", "SELECT id, explode(array(1, 2)) AS n FROM bids UNION ALL SELECT id, 0 FROM bids"),
    "with a key": (", key = 'id'", "SELECT id, price FROM bids"),
    "over final windows": ("", "SELECT n FROM hours WHERE n > 1 UNION ALL SELECT id FROM bids"),
    "of windows": (
        ", emit = 'final', late = 'drop'",
        "SELECT window.start AS hour, count(*) AS n FROM bids GROUP BY window(at, '1 hour')",
    ),
}
REFUSED = {
    "aggregate": ("", "SELECT auction, count(*) AS bids FROM bids GROUP BY auction"),
    "over-running-windows": ("", "SELECT n FROM running WHERE n > 1 UNION ALL SELECT id FROM bids"),
    "over-final-windows": ("", "SELECT n, count(*) AS hours FROM hours GROUP BY n"),
    "table": ("", "SELECT b.id, category FROM bids b JOIN auctions a ON b.auction = a.id"),
    "outer-join": ("", "SELECT b.id, text FROM bids b LEFT JOIN notes n ON b.auction = n.auction"),
    "first-rows": ("", "SELECT id, price FROM bids ORDER BY price DESC LIMIT 3"),
    "corrected": (
        ", emit = 'final', late = 'correct', allowed_lateness = '1 hour'",
        "SELECT window.start AS hour, count(*) AS n FROM bids GROUP BY window(at, '1 hour')",
    ),
    "partition-unknown": (", partition_by = 'dya'", "SELECT id, date(at) AS day FROM bids"),
    "partition-of-times": (", partition_by = 'at'", "SELECT id, at FROM bids"),
    "partition-hidden": (", partition_by = '_day'", "SELECT id, date(at) AS _day FROM bids"),
    "partition-of-all": (", partition_by = 'id, AT'", "SELECT id, date(at) AS at FROM bids"),
}
EVERYTHING = """
    id BIGINT, yes BOOLEAN, tiny TINYINT, small SMALLINT, n INT, f FLOAT, d DOUBLE, price DECIMAL(10,2),
    huge DECIMAL(38,9), s STRING, b BINARY, on DATE, at TIMESTAMP, local TIMESTAMP_NTZ,
    l ARRAY<STRUCT<x: INT, y: STRING>>, m MAP<STRING, ARRAY<DECIMAL(5,1)>>
"""
PIPELINE = f"""
    CREATE STREAM events ({EVERYTHING}) WITH (event_time = 'at', watermark = '3 hours');
    CREATE VIEW filed WITH (store = 'files', partition_by = 'Day, minute') AS
      SELECT *, CAST(s AS BINARY) AS bytes, date(at) AS day, date_format(at, 'HH:mm') AS minute, tiny > 0 AS positive
      FROM events;
    CREATE VIEW parted WITH (store = 'files', partition_by = 's, yes, n') AS SELECT * FROM events WHERE id IS NOT NULL;
    CREATE VIEW hours WITH (store = 'files', emit = 'final', partition_by = 'texts') AS
      SELECT window.start AS hour, count(*) AS events, count(DISTINCT s) AS texts
      FROM events GROUP BY window(at, '1 hour');
"""
pytestmark = pytest.mark.spark


@pytest.mark.parametrize("name", GROWING)
def test_a_view_that_only_grows_can_be_files(spark: SparkSession, name: str) -> None:
    options, query = GROWING[name]
    plan = compiled(spark, pipeline_of(RELATIONS.format(options=options, query=query), name="shop"))
    assert "filed" in plan.graph.views


@pytest.mark.parametrize("name", REFUSED)
def test_a_view_that_cannot_be_files_is_refused(spark: SparkSession, name: str) -> None:
    options, query = REFUSED[name]
    with refused(f"engine/files-{name}"):
        compiled(spark, pipeline_of(RELATIONS.format(options=options, query=query), name="shop"))


def test_a_plan_says_by_what_files_are_parted(spark: SparkSession) -> None:
    sql = RELATIONS.format(options=", partition_by = 'DAY'", query="SELECT id, date(at) AS day FROM bids")
    pipeline = pipeline_of(sql, name="shop")
    plan = compiled(spark, pipeline)
    assert_golden(
        "engine/explain-of-files", plan_text(explained(pipeline, plan, Query(spark, plan.graph, Tuning()).layout))
    )


def event(number: int | None) -> dict[str, object]:
    if number is None:
        return {"id": None}
    return {
        "id": number,
        "yes": number % 2 == 0,
        "tiny": number % 256 - 128,
        "small": -number,
        "n": number % 3,
        "f": number / 3,
        "d": [-0.0, float("nan"), float("-inf"), 0.1][number % 4],
        "price": Decimal(number) / 100,
        "huge": Decimal(-(10**28)) + number,
        "s": ["", "a b", "50%/x=y:z", "é", None, "7", "2024-01-31"][number % 7],
        "b": bytes([number, 0, 255]),
        "on": date(1, 1, 1 + number % 28),
        "at": datetime(2024, 1, 31, number % 24, 59, 3, 456789, UTC),
        "local": datetime(9999, 12, 31, 23, number % 60),
        "l": [{"x": number, "y": None}, None],
        "m": {"k": [Decimal("0.5"), None], "": None},
    }


def assert_spark_reads_the_answer(made: Bench, files: Path) -> None:
    position = catch_up(made.log, "test", ParquetStore(files), kept="files")
    assert position is not None
    oracle = Oracle(made.spark, made.pipeline, made.log.folder, position.until)
    for view in ("filed", "parted", "hours"):
        schema = made.ready.compiled.schemas[view].toDDL()
        read = made.spark.read.schema(schema).parquet(str(files / "current" / view))
        expected = oracle.rows(view)
        if view == "parted":  # a folder has no name for the empty string
            read = read.fillna("", ["s"])
            at = expected.column_names.index("s")
            expected = expected.set_column(at, "s", expected.column("s").fill_null(""))
        found = read.select(*[f"`{name}`" for name in expected.column_names]).toArrow().cast(expected.schema)
        assert found.num_rows == expected.num_rows > 0
        assert not compared(expected, found)


def test_spark_reads_what_the_query_gives_also_after_a_restart(bench: Callable[..., Bench], tmp_path: Path) -> None:
    made = bench(PIPELINE, max_records_per_batch=20)
    made.append({"events": [event(number) for number in range(50)]})
    made.drain()
    assert_spark_reads_the_answer(made, tmp_path / "files")
    made.start()
    made.append({"events": [event(number) for number in [*range(40, 70), None, None]]})
    made.drain()
    assert_spark_reads_the_answer(made, tmp_path / "files")
    folder = tmp_path / "files" / "current" / "filed"
    schema = made.ready.compiled.schemas["filed"].toDDL()
    known = made.spark.read.schema(schema).parquet(str(folder))
    assert sorted(made.spark.read.parquet(str(folder)).dtypes) == sorted(known.dtypes)
