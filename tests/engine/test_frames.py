"""Functions on DataFrames about time: the same in a view as in plain Spark, whatever the cuts, with state that goes."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from random import Random
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sf

from penstock.engine.comparing import compare_with
from penstock.engine.duplicates import deduplicate
from penstock.model import Function, Pipeline, View, parse_duration, pipeline_of
from penstock.model.view import ViewOptions
from tests.effort import SOAK
from tests.engine.conftest import Bench
from tests.engine.test_ranges import entries
from tests.texts import refused

START = datetime(2024, 1, 1, tzinfo=UTC)
DECLARED = "CREATE STREAM s (id INT, v BIGINT, at TIMESTAMP) WITH (event_time = 'at', watermark = '5 seconds');"
FINAL = ViewOptions(emit="final")


def first(spark: SparkSession) -> DataFrame:
    return deduplicate(spark.table("s"), "id", within="10 seconds")


def by_minute(spark: SparkSession) -> DataFrame:
    return spark.sql("SELECT id, window, sum(v) AS total, count(*) AS n FROM s GROUP BY id, window(at, '10 seconds')")


def compared(spark: SparkSession) -> DataFrame:
    return compare_with(by_minute(spark), shift="30 seconds", keys="id")


def compared_until_newest(spark: SparkSession) -> DataFrame:
    return compare_with(by_minute(spark), shift="30 seconds", keys="id", until_newest=True)


VIEWS: tuple[tuple[str, Callable[[SparkSession], DataFrame], ViewOptions], ...] = (
    ("first", first, ViewOptions()),
    ("first_done", first, FINAL),
    ("compared", compared, ViewOptions()),
    ("until_newest", compared_until_newest, ViewOptions()),
)


class Frames(Bench):
    views = VIEWS

    def declared(self, options: Mapping[str, Any]) -> Pipeline:
        made = pipeline_of(self._sql, name="test", options=options)
        return replace(made, views=tuple(View(name, Function(call), how) for name, call, how in self.views))


class Duplicates(Frames):
    views = VIEWS[:2]


@pytest.mark.spark
@pytest.mark.timeout(600)
@pytest.mark.parametrize("seed", range(20 if SOAK else 1))
def test_functions_on_frames_equal_batch(spark: SparkSession, tmp_path: Path, seed: int) -> None:
    random, now = Random(seed), START
    shop = Frames(spark, tmp_path, DECLARED, max_records_per_batch=random.choice([1, 5]))
    for chapter in range(3):
        if chapter:
            shop.start(max_records_per_batch=random.choice([1, 10]))
        for _ in range(4):
            now += timedelta(seconds=random.choice([0, 2, 7, 15]))
            times = [now - timedelta(seconds=random.choice([0, 0, 1, 3, 8, 20])) for _ in range(random.randint(1, 5))]
            shop.append({"s": [{"id": random.randint(1, 2), "v": random.randint(0, 1), "at": at} for at in times]})
        shop.append({"s": [{"id": 1, "v": 0, "at": None}]})
        shop.drain()
        shop.check()
    for entry in shop.log.read(shop.ready.lineage.topic("first_done")):
        assert not entry.deleted and entry.replaces is None


@pytest.mark.spark
def test_what_duplicates_are(spark: SparkSession) -> None:
    def at(seconds: float) -> datetime:
        return START + timedelta(seconds=seconds)

    rows = [
        (1, at(0), "a"),
        (1, at(0), "b"),
        (1, at(10), "c"),
        (1, at(20.000001), "d"),
        (2, at(5), "e"),
        (1, None, "f"),
    ]
    frame = spark.createDataFrame(rows, "id INT, at TIMESTAMP, v STRING")
    left = deduplicate(frame, ["id"], within=timedelta(seconds=10), time="at")
    assert sorted(row["v"] for row in left.collect()) == ["a", "d", "e", "f"]
    at_once = deduplicate(frame, ["id"], within="0 seconds", time="at")
    assert sorted(row["v"] for row in at_once.collect()) == ["a", "c", "d", "e", "f"]


@pytest.mark.spark
def test_what_is_compared(spark: SparkSession) -> None:
    rows = [("x", START + timedelta(hours=hour), hour) for hour in (0, 1, 4)]
    frame = spark.createDataFrame(rows, "page STRING, hour TIMESTAMP, visits INT")
    found = compare_with(frame, shift="1 hour", time="hour", keys="page", every="1 hour").orderBy("hour").collect()
    assert [(row["visits"], row["earlier_visits"]) for row in found] == [(0, 0), (1, 0), (0, 1), (0, 0), (4, 0)]


@pytest.mark.spark
def test_a_key_that_is_silent_is_compared_until_the_newest_interval(spark: SparkSession) -> None:
    """From its own first one on; hours that nobody has are filled too."""
    given = {"x": (0, 1), "y": (1, 4), None: (3,)}
    rows = [(page, START + timedelta(hours=hour), 10 + hour) for page, hours in given.items() for hour in hours]
    frame = spark.createDataFrame(rows, "page STRING, hour TIMESTAMP, visits INT")
    found = compare_with(frame, shift="3 hours", time="hour", keys="page", every="1 hour", until_newest=True)
    told = [(row["page"], row["visits"], row["earlier_visits"]) for row in found.orderBy("page", "hour").collect()]
    assert told == [
        *((None, visits, 0) for visits in (13, 0)),
        *(("x", *both) for both in ((10, 0), (11, 0), (0, 0), (0, 10), (0, 11))),
        *(("y", *both) for both in ((11, 0), (0, 0), (0, 0), (14, 11))),
    ]


@pytest.mark.spark
def test_columns_of_any_name_stay_what_they_are(spark: SparkSession) -> None:
    """Also where they are called as columns of ours would be."""
    names = (
        "_moment",
        "_copy",
        "_earlier",
        "_start",
        "_step",
        "_next",
        "_now_n",
        "_before_n",
        "__moment",
        "`odd`",
        "_rank",
    )
    given = [(1, START + timedelta(hours=hour), hour, *range(len(names))) for hour in (0, 2)]
    columns = ["id", "at", "n", *names]
    frame = spark.createDataFrame(given, columns)
    left = deduplicate(frame, "id", within="1 hour", time="at")
    assert left.columns == columns
    assert sorted(row[2:] for row in left.collect()) == [(hour, *range(len(names))) for hour in (0, 2)]
    found = compare_with(frame, shift="2 hours", time="at", keys=["id", *names], every="1 hour").orderBy("at")
    assert found.columns == ["id", *names, "at", "n", "earlier_n"]
    assert [(row["n"], row["earlier_n"]) for row in found.collect()] == [(0, 0), (0, 0), (2, 0)]
    assert {row[1 : 1 + len(names)] for row in found.collect()} == {tuple(range(len(names)))}


@pytest.mark.spark
def test_an_interval_of_long_ago_does_not_fill_all_since(spark: SparkSession) -> None:
    """Of as many seconds there would be an array of 1.7 thousand million."""
    times = [datetime(1970, 1, 1, tzinfo=UTC), START, START + timedelta(seconds=3)]
    frame = spark.createDataFrame([(at, 1) for at in times], "at TIMESTAMP, visits INT")
    found = compare_with(frame, shift="3 seconds", time="at", every="1 second").orderBy("at").collect()
    assert [(row["visits"], row["earlier_visits"]) for row in found] == [(1, 0), (1, 0), (0, 0), (0, 0), (1, 1)]


def in_berlin(spark: SparkSession) -> SparkSession:
    made = spark.newSession()
    made.conf.set("spark.sql.session.timeZone", "Europe/Berlin")
    made.conf.set("spark.sql.shuffle.partitions", "1")
    return made


@pytest.mark.spark
@pytest.mark.parametrize(("length", "shift"), [("1 hour", "7 days"), ("1 day", "7 days")])
def test_windows_are_compared_whatever_clocks_do(spark: SparkSession, length: str, shift: str) -> None:
    """In Berlin clocks change on 31 March and on 27 October 2024, at one o'clock in UTC."""
    starts = {"spring": datetime(2024, 3, 22, tzinfo=UTC), "autumn": datetime(2024, 10, 18, tzinfo=UTC)}
    hours = [(name, start + timedelta(hours=hour)) for name, start in starts.items() for hour in range(24 * 18)]
    rows = in_berlin(spark).createDataFrame(hours, "season STRING, at TIMESTAMP")
    first = sf.min(sf.unix_seconds("at")).alias("first")
    windows = rows.groupBy("season", sf.window("at", length)).agg(first)
    known = {row["first"]: row["window"] for row in windows.collect()}
    found = [
        (row["first"], row["earlier_first"]) for row in compare_with(windows, shift=shift, keys="season").collect()
    ]
    before = int(parse_duration(shift).total_seconds())
    assert sorted(found) == sorted((second, second - before if second - before in known else 0) for second in known)


@pytest.mark.spark
def test_days_of_the_calendar_are_compared(spark: SparkSession) -> None:
    days = in_berlin(spark).sql("""
        SELECT CAST(day AS TIMESTAMP) AS day, day(day) AS n
        FROM (SELECT explode(sequence(DATE '2024-03-20', DATE '2024-04-10')) AS day)""")
    found = compare_with(days, shift="7 days", time="day", every="1 day").orderBy("day").collect()
    numbers = [*range(20, 32), *range(1, 11)]
    assert [(row["n"], row["earlier_n"]) for row in found] == list(zip(numbers, [0] * 7 + numbers, strict=False))
    ages = compare_with(days.limit(1).unionAll(days.limit(1)), shift="7 days", time="day", every="4000 days")
    assert ages.count() == 2


@pytest.mark.spark
def test_what_cannot_be_compared(spark: SparkSession) -> None:
    frame = spark.createDataFrame([("x", START, 1)], "page STRING, hour TIMESTAMP, visits INT")
    with refused("engine/no-column-to-compare-by"):
        compare_with(frame, shift="1 hour")
    with refused("engine/compared-already"):
        compare_with(frame.withColumn("Earlier_Visits", sf.lit(1)), shift="1 hour", time="hour", every="1 hour")
    with refused("engine/how-long-are-intervals"):
        compare_with(frame, shift="1 hour", time="hour")
    with refused("engine/no-column-for-duplicates"):
        deduplicate(frame, "pages", within="1 hour", time="hour")
    with refused("engine/duplicates-within-less-than-nothing"):
        deduplicate(frame, "page", within=timedelta(seconds=-1), time="hour")
    with refused("engine/which-column-is-the-time"):
        deduplicate(frame, "page", within="1 hour")


@pytest.mark.spark
def test_the_state_of_duplicates_goes(spark: SparkSession, tmp_path: Path) -> None:
    shop = Duplicates(spark, tmp_path, DECLARED)
    shop.append({"s": [{"id": key, "v": 0, "at": START} for key in range(200)]})
    shop.drain()
    kept = [operator for operator in shop.ready.compiled.graph.operators if operator.parts.get("closing")]
    floor = 64 * len(kept)
    assert sum(entries(shop).values()) > floor
    shop.log.punctuate("s", START + timedelta(minutes=1))
    shop.drain()
    shop.check()
    assert sum(entries(shop).values()) == floor
    assert len(shop.content("first")) == len(shop.content("first_done")) == 200
