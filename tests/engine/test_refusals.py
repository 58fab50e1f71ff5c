"""What the engine refuses before it runs anything: topics that do not fit, views that are none, a checkpoint that is
damaged or held.
"""

from datetime import timedelta
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from penstock.engine.checkpoint import places
from penstock.engine.compile import compiled
from penstock.engine.locking import locked
from penstock.engine.topics import ensure_sources
from penstock.log import Log
from penstock.log.topic import EventTime
from penstock.model import load_pipeline, pipeline_of
from tests.texts import refused

ORDERS = "CREATE STREAM orders (id BIGINT, amount DECIMAL(10,2), at TIMESTAMP) {options};"
VIEW = """\
import penstock as ps

ps.stream("orders", "id BIGINT")


@ps.view
def total(spark):
    return spark.table("orders").columns
"""


@pytest.mark.parametrize(
    ("name", "schema"),
    [
        ("other-type", "id BIGINT, amount DOUBLE, at TIMESTAMP"),
        ("column-missing", "id BIGINT, at TIMESTAMP"),
    ],
)
def test_a_topic_with_other_columns_does_not_fit(tmp_path: Path, name: str, schema: str) -> None:
    with Log.open(tmp_path) as log:
        log.create_topic("orders", schema)
        with refused(f"engine/topic-{name}"):
            ensure_sources(log, pipeline_of(ORDERS.format(options="")))


def test_a_topic_with_another_kind_of_event_time_does_not_fit(tmp_path: Path) -> None:
    columns = "a TIMESTAMP, b TIMESTAMP"
    with Log.open(tmp_path) as log:
        log.create_topic("s", f"{columns}, at TIMESTAMP", event_time=EventTime("at", plausible=timedelta(hours=1)))
        with refused("engine/topic-plausible"):
            ensure_sources(log, pipeline_of(f"CREATE STREAM s ({columns}, at TIMESTAMP) WITH (event_time = 'at')"))
        with refused("engine/topic-corrected"):
            time = "corrected(a, b, b) AS at"
            ensure_sources(log, pipeline_of(f"CREATE STREAM s ({columns}) WITH (event_time = '{time}')"))


def test_a_topic_with_another_event_time_does_not_fit(tmp_path: Path) -> None:
    pipeline = pipeline_of(ORDERS.format(options="WITH (event_time = 'at')"))
    with Log.open(tmp_path) as log:
        log.create_topic("orders", "id BIGINT, amount DECIMAL(10,2), at TIMESTAMP")
        with refused("engine/topic-event-time"):
            ensure_sources(log, pipeline)


@pytest.mark.parametrize(
    ("name", "declared", "key"),
    [
        ("other-key", "CREATE TABLE t (id BIGINT PRIMARY KEY, x BIGINT);", "x"),
        ("key", "CREATE TABLE t (id BIGINT);", "id"),
    ],
)
def test_a_topic_whose_deletions_do_not_say_which_row_leaves_does_not_fit(
    tmp_path: Path, name: str, declared: str, key: str
) -> None:
    with Log.open(tmp_path) as log:
        log.create_topic("t", "id BIGINT, x BIGINT", key=key)
        with refused(f"engine/topic-{name}"):
            ensure_sources(log, pipeline_of(declared))


def test_a_topic_with_the_same_key_in_another_order_fits(tmp_path: Path) -> None:
    with Log.open(tmp_path) as log:
        log.create_topic("t", "id BIGINT, x BIGINT", key=["x", "id"])
        ensure_sources(log, pipeline_of("CREATE TABLE t (id BIGINT, x BIGINT, PRIMARY KEY (id, x));"))
        assert log.topic("t").key == ("x", "id")


def test_a_topic_with_more_columns_fits(tmp_path: Path) -> None:
    with Log.open(tmp_path) as log:
        log.create_topic("orders", "note STRING, id BIGINT, amount DECIMAL(10,2), at TIMESTAMP")
        ensure_sources(log, pipeline_of(ORDERS.format(options="")))
        assert log.topic("orders").schema.names == ("note", "id", "amount", "at")


def test_a_view_in_python_returns_a_dataframe(spark: SparkSession, tmp_path: Path) -> None:
    folder = tmp_path / "shop"
    folder.mkdir()
    (folder / "pipeline.py").write_text(VIEW)
    with refused("engine/view-no-dataframe", folder=tmp_path):
        compiled(spark, load_pipeline(folder))


def test_a_view_in_python_that_fails_is_named_with_the_line(spark: SparkSession, tmp_path: Path) -> None:
    folder = tmp_path / "shop"
    folder.mkdir()
    (folder / "pipeline.py").write_text(VIEW.replace('spark.table("orders").columns', "spark.table(NAMES[0])"))
    with refused("engine/view-that-fails", folder=tmp_path):
        compiled(spark, load_pipeline(folder))


def test_a_checkpoint_that_cannot_be_read_is_told_with_its_file(tmp_path: Path) -> None:
    (tmp_path / "offsets").mkdir()
    (tmp_path / "offsets" / "0").write_text("v1\n{}\n")
    with refused("engine/checkpoint-damaged"):
        places(tmp_path, 0)


def test_a_folder_that_is_held_names_the_holder(tmp_path: Path) -> None:
    with locked(tmp_path, "shop"):
        holder = (tmp_path / "lock").read_text()
        with refused("engine/held", holder=holder), locked(tmp_path, "shop", patience=timedelta(milliseconds=20)):
            pass
