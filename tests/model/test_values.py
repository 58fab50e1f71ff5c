"""Values that make no sense cannot be built, in whatever way they are built."""

from datetime import timedelta
from pathlib import Path

import pytest

from penstock.errors import ModelError, Spot
from penstock.model import Function, Pipeline, Sql, Stream, Table, View
from penstock.model.pipeline import PipelineOptions
from penstock.model.view import ViewOptions
from penstock.schema import parse_schema

SCHEMA = parse_schema("id BIGINT NOT NULL, city STRING, at TIMESTAMP, tags MAP<STRING, INT> NOT NULL")


@pytest.mark.parametrize(
    ("wrong", "about"),
    [
        (lambda: Stream("a b", SCHEMA), "name"),
        (lambda: Stream("a" * 101, SCHEMA), "name"),
        (lambda: Stream("s", SCHEMA, partitions=0), "partitions"),
        (lambda: Stream("s", SCHEMA, partitions=1025), "partitions"),
        (lambda: Stream("s", SCHEMA, topic="a/b"), "topic"),
        (lambda: Stream("s", SCHEMA, event_time="city"), "event_time"),
        (lambda: Stream("s", SCHEMA, event_time="nothing"), "event_time"),
        (lambda: Stream("s", SCHEMA, watermark=timedelta(seconds=1)), "watermark"),
        (lambda: Stream("s", SCHEMA, event_time="at", watermark=timedelta(seconds=-1)), "watermark"),
        (lambda: Stream("s", SCHEMA, event_time="at", idle=timedelta(0)), "idle"),
        (lambda: Stream("s", SCHEMA, event_time="at", plausible=timedelta(-1)), "plausible"),
        (lambda: Stream("s", SCHEMA, plausible=timedelta(2)), "plausible"),
        (lambda: Stream("s", SCHEMA, retain=timedelta(2)), "retain"),
        (lambda: Stream("s", SCHEMA, event_time="at", retain=timedelta(-1)), "retain"),
        (lambda: ViewOptions(retain=timedelta(-1)), "retain"),
        (lambda: Stream("s", SCHEMA, event_time="at", watermark_by="nobody"), "watermark_by"),  # type: ignore[arg-type]
        (lambda: Table("t", SCHEMA, ("city",)), "key"),
        (lambda: Table("t", SCHEMA, ("tags",)), "key"),
        (lambda: Table("t", SCHEMA, ("id", "id")), "key"),
        (lambda: Table("t", SCHEMA, ("nothing",)), "key"),
        (lambda: Sql("  "), "query"),
        (lambda: View("1v", Sql("SELECT 1")), "name"),
        (lambda: ViewOptions(store="tables"), "store"),  # type: ignore[arg-type]
        (lambda: ViewOptions(emit="finally"), "emit"),  # type: ignore[arg-type]
        (lambda: ViewOptions(late="lost"), "late"),  # type: ignore[arg-type]
        (lambda: ViewOptions(late="correct"), "late"),
        (lambda: ViewOptions(late="keep", allowed_lateness=timedelta(1)), "allowed_lateness"),
        (lambda: ViewOptions(late="correct", allowed_lateness=timedelta(-1)), "allowed_lateness"),
        (lambda: ViewOptions(key=()), "key"),
        (lambda: ViewOptions(key=("a", "A")), "key"),
        (lambda: PipelineOptions(max_records_per_batch=0), "max_records_per_batch"),
        (lambda: PipelineOptions(shuffle_partitions=0), "shuffle_partitions"),
        (lambda: PipelineOptions(trigger_interval=timedelta(-1)), "trigger_interval"),
        (lambda: PipelineOptions(memory="a lot"), "memory"),
        (lambda: PipelineOptions(time_zone="Europe/Nowhere"), "time_zone"),
        (lambda: PipelineOptions(spark={"sql.x": "1"}), "sql.x"),
        (lambda: PipelineOptions(spark={"spark.driver.memory": "1g"}), "spark.driver.memory"),
    ],
)
def test_a_value_refuses_itself_and_says_what_it_is_about(wrong: object, about: str) -> None:
    with pytest.raises(ModelError) as error:
        wrong()  # type: ignore[operator]
    assert error.value.about == about


def test_a_time_zone_can_be_an_offset() -> None:
    assert PipelineOptions(time_zone="+05:30").time_zone == "+05:30"


@pytest.mark.parametrize("name", ["my shop", "", ".shop", "-shop", "a/b"])
def test_a_pipeline_needs_a_name_that_can_be_used(name: str) -> None:
    with pytest.raises(ModelError):
        Pipeline(name, Path())


def test_names_are_unique_over_relations_and_views_whatever_their_case() -> None:
    with pytest.raises(ModelError, match='"Orders" is declared twice'):
        Pipeline("p", Path(), (Stream("orders", SCHEMA),), (View("Orders", Sql("SELECT 1")),))


def test_a_pipeline_finds_its_relations_and_views_by_name() -> None:
    stream, view = Stream("orders", SCHEMA), View("spend", Sql("SELECT 1"))
    pipeline = Pipeline("p", Path(), (stream,), (view,))
    assert pipeline.relation("ORDERS") is stream
    assert pipeline.view("Spend") is view


def test_a_function_that_takes_the_session_can_be_a_view() -> None:
    def fine(spark: object, limit: int = 10) -> None: ...
    def lonely() -> None: ...

    assert Function(fine).name == "fine"
    with pytest.raises(ModelError):
        Function(lonely)  # type: ignore[arg-type]


def test_where_something_was_declared_is_no_part_of_what_was_declared() -> None:
    assert Stream("s", SCHEMA, spot=Spot("a.sql", 1, 15, "")) == Stream("s", SCHEMA)
