"""Pipelines over compacted topics: a table is as it was, what needs every record is refused."""

from collections.abc import Callable
from pathlib import Path
from random import Random

import pytest
from pyspark.sql import SparkSession

from penstock.engine.run import prepared
from penstock.engine.whole import check_whole
from penstock.errors import EngineError
from penstock.log import Record
from penstock.model import pipeline_of
from tests.engine.conftest import Bench
from tests.texts import refused

pytestmark = pytest.mark.spark

SQL = """
    CREATE STREAM orders (id BIGINT, customer BIGINT, amount BIGINT);
    CREATE TABLE customers (id BIGINT PRIMARY KEY, city STRING);
    CREATE VIEW spend AS
      SELECT city, sum(amount) AS spend FROM orders JOIN customers ON customer = customers.id GROUP BY city;
"""
HISTORY = """
    CREATE TABLE customers (id BIGINT PRIMARY KEY, city STRING, at TIMESTAMP)
      WITH (history = 'versions', event_time = 'at');
    CREATE VIEW moves AS SELECT id, count(*) AS n FROM versions GROUP BY id;
"""


def append(made: Bench, seed: int) -> None:
    chance = Random(seed)
    for number in range(4):
        customers = [Record({"id": chance.randrange(4), "city": chance.choice("abc")}, deleted=chance.random() < 0.3)]
        orders = [{"id": number, "customer": chance.randrange(4), "amount": chance.randrange(9)}]
        made.append({"customers": customers, "orders": orders})


def test_a_tables_answer_is_the_same_over_a_compacted_topic(bench: Callable[..., Bench]) -> None:
    """In a pipeline that goes on, in one that is computed anew, and by Spark's batch engine."""
    made = bench(SQL)
    append(made, 1)
    made.drain()
    made.check()
    before = made.log.ends("customers")
    (done,) = made.log.compact(["customers"])
    assert done.after < done.before and made.log.ends("customers") == before
    append(made, 2)
    made.drain()
    made.check()
    made.ready = prepared(made.spark, made.pipeline, made.log, made.home, anew=True)
    made.drain()
    made.check(every=100)
    check_whole(made.log, made.pipeline, until=made.log.mark().next_frame)


def test_a_change_topic_that_is_compacted_is_read_as_a_table(
    spark: SparkSession, bench: Callable[..., Bench], tmp_path: Path
) -> None:
    made = bench(SQL)
    for seed in range(3):
        append(made, seed)
        made.drain()
    made.check()
    topic = made.ready.lineage.topic("spend")
    made.log.compact([topic])
    other = pipeline_of(
        f"CREATE TABLE spend (city STRING PRIMARY KEY, spend BIGINT) WITH (topic = '{topic}');"
        "CREATE VIEW total AS SELECT sum(spend) AS total FROM spend;",
        name="other",
    )
    ready = prepared(made.spark, other, made.log, tmp_path / "other")
    assert ready.lineage.number == 1
    total = sum(row["spend"] for row in made.content("spend"))
    made.ready, made.pipeline = ready, other
    made.drain()
    (entry,) = made.log.read("other.1.total", start=made.log.ends("other.1.total")[0] - 1, partition=0)
    assert entry.value == {"total": total}


def test_a_history_over_a_compacted_topic_is_refused(bench: Callable[..., Bench]) -> None:
    made = bench(HISTORY)
    for city in "ab":
        made.append({"customers": [{"id": 1, "city": city, "at": None}]})
    made.drain()
    made.log.compact(["customers"])
    with refused("engine/history_of_what_is_compacted"):
        prepared(made.spark, made.pipeline, made.log, made.home, anew=True)
    assert prepared(made.spark, made.pipeline, made.log, made.home).lineage.number == 1


def test_views_that_are_older_than_the_compaction_are_not_verified(bench: Callable[..., Bench]) -> None:
    made = bench(SQL)
    append(made, 3)
    made.drain()
    until = made.log.mark().next_frame
    made.log.compact(["customers"])
    with refused("engine/verifying_before_the_compaction", frame=made.log.compacted("customers")):
        check_whole(made.log, made.pipeline, until=until - 5)


def test_nothing_is_compacted_before_the_pipeline_has_read_it(bench: Callable[..., Bench]) -> None:
    made = bench(SQL)
    append(made, 4)
    made.drain()
    made.log.seal()
    append(made, 5)
    made.log.compact(["customers"])
    made.start()
    made.drain()
    made.check(every=100)
    streamed = SQL.replace("TABLE customers (id BIGINT PRIMARY KEY, city STRING)", "STREAM customers (id BIGINT)")
    with pytest.raises(EngineError, match="compacted away"):
        check_whole(made.log, pipeline_of(streamed, name="test"))
