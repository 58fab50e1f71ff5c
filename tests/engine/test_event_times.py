"""Event times that nobody believes close no windows, and times of wrong clocks are corrected: as Spark batch says."""

from collections import Counter
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from pyspark.sql import SparkSession

from penstock.engine.compile import compiled
from penstock.engine.sinks import late_rows
from penstock.engine.source import watermark_at
from penstock.model import pipeline_of
from tests.engine.conftest import Bench
from tests.engine.lateness import missed_of
from tests.texts import refused

START = datetime(2024, 1, 1, tzinfo=UTC)
SECOND = timedelta(seconds=1)
FAR = datetime(2999, 1, 1, tzinfo=UTC)
COUNTS = "SELECT window.start, k, count(*) AS n FROM s GROUP BY window(at, '10 seconds'), k"
PLAUSIBLE = f"""
    CREATE STREAM s (k INT, at TIMESTAMP) WITH (event_time = 'at', watermark = '5 seconds', plausible = '1 hour');
    CREATE TABLE t (id INT PRIMARY KEY, name STRING);
    CREATE VIEW filling AS {COUNTS};
    CREATE VIEW done WITH (emit = 'final') AS {COUNTS};
    CREATE VIEW corrected WITH (late = 'correct', allowed_lateness = '1 hour') AS {COUNTS};
    CREATE VIEW dropped WITH (late = 'drop') AS {COUNTS};
    CREATE VIEW hopping AS SELECT window, count(*) AS n FROM s GROUP BY window(at, '20 seconds', '10 seconds');
    CREATE VIEW named AS
      SELECT name, window.start, count(*) AS n FROM s LEFT JOIN t ON k = id GROUP BY name, window(at, '10 seconds');
    CREATE VIEW twice AS
      SELECT window.start, count(*) AS n FROM (SELECT at FROM s WHERE k = 1 UNION ALL SELECT at FROM s)
      GROUP BY window(at, '10 seconds');
    CREATE VIEW plain AS SELECT k, max(at) AS latest, count(*) AS n FROM s GROUP BY k;
"""


def at(*seconds: int) -> list[dict[str, Any]]:
    return [{"k": 1, "at": START + each * SECOND} for each in seconds]


@pytest.mark.spark
def test_a_time_in_the_far_future_closes_no_window(bench: Callable[..., Bench]) -> None:
    shop = bench(PLAUSIBLE)
    soon = datetime.now(UTC) + timedelta(minutes=30)
    shop.append({"s": [*at(1, 12), {"k": 1, "at": FAR}, {"k": 2, "at": None}], "t": [{"id": 1, "name": "ann"}]})
    shop.append({"s": [{"k": 2, "at": FAR + SECOND}, *at(3)]})
    shop.drain()
    assert watermark(shop) == START + 7 * SECOND
    shop.start()
    shop.append({"s": [*at(2, 30), {"k": 1, "at": FAR}]})
    shop.drain()
    shop.append({"s": [*at(4), {"k": 1, "at": soon}]})  # half an hour ahead is plausible: it closes what is before
    shop.drain()
    shop.append({"s": at(31)})
    shop.drain()
    shop.check()
    assert watermark(shop) == soon - 5 * SECOND
    assert {row["start"] for row in shop.content("done")} == {START + each * SECOND for each in (0, 10, 30)}
    assert reasons(shop, "filling") == {"implausible": 3, "the window was over": 2}
    assert reasons(shop, "done") == reasons(shop, "named") == reasons(shop, "filling")
    assert reasons(shop, "hopping") == {"implausible": 6, "the window was over": 4}
    assert reasons(shop, "corrected")["implausible"] == 3
    windows = {(first, first + 10 * SECOND): rows for first, rows in ((START, 1), (START + 30 * SECOND, 1), (FAR, 3))}
    missed = missed_of(shop)
    assert missed["dropped"] == missed["filling"] == windows
    assert sum(batch.late["dropped"] for batch in shop.batches) == 5
    assert {row["k"]: row["n"] for row in shop.content("plain")} == {1: 10, 2: 2}


def watermark(shop: Bench) -> datetime:
    end = shop.log.mark().next_frame
    found = watermark_at(shop.spark, shop.log.folder, "s", end, watermark=5 * SECOND, scope="test")
    return datetime(1970, 1, 1, tzinfo=UTC) + timedelta(microseconds=found)


def reasons(shop: Bench, view: str) -> Counter[str]:
    entries = shop.log.read(shop.ready.lineage.topic(late_rows(view)))
    values: list[Any] = [entry.value for entry in entries]
    assert all((value["late_by"] is None) == (value["reason"] == "implausible") for value in values)
    return Counter(value["reason"] for value in values)


@pytest.mark.spark
def test_windows_are_those_of_corrected_times(bench: Callable[..., Bench]) -> None:
    shop = bench("""
        CREATE STREAM readings (device INT, made TIMESTAMP, sent TIMESTAMP, got TIMESTAMP)
          WITH (event_time = corrected(made, sent, got, '1 hour') AS at, watermark = '0 seconds');
        CREATE VIEW v WITH (emit = 'final') AS
          SELECT window.start, count(*) AS n, min(at) AS first FROM readings GROUP BY window(at, '10 seconds');
    """)
    wrong = timedelta(minutes=7)
    shop.append({"readings": [reading(1, 2), reading(3, 4, wrong), reading(11, 12, -wrong)]})
    shop.append({"readings": [reading(5, 6, timedelta(days=2)), {"device": 1, "got": START + 25 * SECOND}]})
    shop.drain()
    shop.append({"readings": [reading(4, 5)]})
    shop.drain()
    shop.check()
    assert sorted(shop.content("v"), key=lambda row: row["start"]) == [
        {"start": START, "n": 2, "first": START + SECOND},
        {"start": START + 10 * SECOND, "n": 1, "first": START + 11 * SECOND},
    ]
    assert late_times(shop) == [START + 6 * SECOND, START + 4 * SECOND]
    assert shop.log.describe("readings").uncorrected == 2


def reading(made: int, got: int, wrong: timedelta = timedelta(0)) -> dict[str, Any]:
    """Made by a clock that is behind, sent at once."""
    return {
        "device": 1,
        "made": START + made * SECOND - wrong,
        "sent": START + got * SECOND - wrong,
        "got": START + got * SECOND,
    }


def late_times(shop: Bench) -> list[datetime]:
    """The event times of the late rows."""
    values: list[Any] = [entry.value for entry in shop.log.read(shop.ready.lineage.topic(late_rows("v")))]
    times = {entry.offset: entry.time for entry in shop.log.read("readings")}
    return [times[value["offset"]] for value in values]  # type: ignore[misc]


@pytest.mark.spark
def test_append_times_and_places_are_columns_of_a_stream(bench: Callable[..., Bench]) -> None:
    shop = bench("""
        CREATE STREAM s (k INT, at TIMESTAMP) WITH (event_time = 'at', watermark = '1 second', partitions = 2);
        CREATE TABLE t (id INT PRIMARY KEY, name STRING);
        CREATE VIEW appended AS SELECT k, at, _appended_at AS appended, _partition AS part, _offset AS at_offset FROM s;
        CREATE VIEW newest AS SELECT k, max(_appended_at) AS latest, max_by(_offset, _place) AS last FROM s GROUP BY k;
        CREATE VIEW batches AS
          SELECT window.start, name, count(*) AS n FROM s LEFT JOIN t ON k = id
          GROUP BY window(_appended_at, '1 millisecond'), name;
        CREATE VIEW late AS
          SELECT window.start, count(*) AS n FROM s WHERE _appended_at > at GROUP BY window(at, '1 second');
        CREATE VIEW others AS SELECT a.k, b.k AS other FROM s a JOIN s b ON a._place < b._place AND a.k = b.k - 1;
    """)
    shop.append({"s": at(1, 2, 3), "t": [{"id": 1, "name": "one"}]})
    shop.append({"s": [{"k": 2, "at": START}, {"k": None, "at": FAR}]})
    shop.drain()
    shop.append({"s": at(1, 9), "t": [{"id": 1, "name": "two"}]})
    shop.start(max_records_per_batch=1)
    shop.drain()
    shop.check()
    assert len(shop.content("appended")) == 7
    assert len(shop.content("others")) == 3


@pytest.mark.spark
def test_a_watermark_is_no_column(spark: SparkSession) -> None:
    declared = "CREATE STREAM s (at TIMESTAMP) WITH (event_time = 'at');"
    with refused("engine/view-watermark"):
        compiled(spark, pipeline_of(declared + "CREATE VIEW v AS SELECT count(*) AS n FROM s WHERE at < _watermark;"))
