"""What can be said in Python: the same as in SQL, with the same errors."""

from datetime import timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from pyspark import SparkContext

import penstock as ps
from penstock.errors import ModelError
from penstock.log.correction import Correction
from penstock.model import Function, Pipeline, Stream, Table, View, load_pipeline, pipeline_of
from penstock.model.pipeline import PipelineOptions
from penstock.model.sinks import KafkaTopic, Smtp, Webhook
from penstock.model.stores import OnRedis
from penstock.model.view import ViewOptions
from penstock.schema import parse_schema
from tests.texts import refused


@pytest.fixture
def load(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Loads the pipeline "shop" that consists of this Python file."""
    monkeypatch.chdir(tmp_path)

    def load_(text: str) -> Pipeline:
        Path("shop").mkdir(exist_ok=True)
        Path("shop/pipeline.py").write_text(f"import penstock as ps\n\n{text}\n")
        return load_pipeline(Path("shop"))

    return load_


def test_outside_a_pipeline_a_declaration_is_only_returned() -> None:
    want = Stream("orders", parse_schema("id INT, at TIMESTAMP"), "at", timedelta(seconds=10), 2, "o")
    assert (
        ps.stream("orders", "id INT, at TIMESTAMP", event_time="AT", watermark="10 seconds", partitions=2, topic="o")
        == want
    )
    assert (
        ps.stream("orders", want.schema, event_time="at", watermark=timedelta(seconds=10), partitions=2, topic="o")
        == want
    )


def test_a_stream_says_whom_its_watermark_waits_for() -> None:
    columns = "made TIMESTAMP, sent TIMESTAMP, got TIMESTAMP"
    time = "corrected(made, sent, got) AS at"
    found = ps.stream("s", columns, event_time=time, watermark_by="producer", idle="1 minute", plausible="2 hours")
    schema = parse_schema(f"{columns}, at TIMESTAMP")
    said = {
        "idle": timedelta(minutes=1),
        "plausible": timedelta(hours=2),
        "corrected": Correction("made", "sent", "got"),
    }
    assert found == Stream("s", schema, "at", watermark_by="producer", **said)  # type: ignore[arg-type]


@pytest.mark.parametrize("key", ["ID", ["id"], ("id",)])
def test_a_table_has_a_key(key: Any) -> None:
    assert ps.table("t", "id INT, b INT", key=key) == Table("t", parse_schema("id INT NOT NULL, b INT"), ("id",))


def test_a_table_without_a_key_is_a_bag() -> None:
    assert ps.table("t", "id INT") == ps.table("t", "id INT", key=None) == Table("t", parse_schema("id INT"))


def test_a_view_is_a_function_that_stays_one() -> None:
    @ps.view
    def double(spark: int) -> int:
        return 2 * spark

    assert double(21) == 42


def test_what_a_file_declares_is_the_pipeline(load: Any) -> None:
    pipeline = load("""
ps.stream("orders", "id BIGINT")
ps.table("customers", "id BIGINT", key="id")

@ps.view
def spend(spark):
    return 1

@ps.view(name="other", store="topic", key=["a", "b"])
def unused(spark):
    return 2

ps.option("ansi", True)
ps.option("spark.sql.caseSensitive", False)
""")
    assert [each.name for each in pipeline.relations] == ["orders", "customers"]
    spend, other = pipeline.views
    assert isinstance(spend.query, Function) and spend.query.call(None) == 1
    assert other == View("other", other.query, ViewOptions("topic", ("a", "b")))
    assert pipeline.options == PipelineOptions(ansi=True, spark={"spark.sql.caseSensitive": "false"})


def test_a_view_says_how_it_deals_with_time(load: Any) -> None:
    (view,) = load("""
@ps.view(emit="final", late="correct", allowed_lateness="1 hour", late_alert="0.5 %")
def hourly(spark):
    return 1
""").views
    assert view.options == ViewOptions(
        emit="final", late="correct", allowed_lateness=timedelta(hours=1), late_alert=Decimal("0.5")
    )


def test_python_and_sql_declare_the_same(load: Any) -> None:
    python = load('ps.stream("s", "a INT, at TIMESTAMP", event_time="at")\nps.table("t", "a INT", key="a")')
    sql = pipeline_of(
        "CREATE STREAM s (a INT, at TIMESTAMP) WITH (event_time = 'at'); CREATE TABLE t (a INT PRIMARY KEY)"
    )
    assert python.relations == sql.relations


def test_a_declaration_knows_its_place(load: Any) -> None:
    pipeline = load('ps.stream("s", "a INT")\n\n@ps.view\ndef v(spark): ...')
    assert str(pipeline.relation("s").spot) == "shop/pipeline.py:3:1"
    assert str(pipeline.view("v").spot) == "shop/pipeline.py:5:2"


REFUSED = {
    "python-option-unknown": 'ps.stream("orders", "id INT", partition=2)',
    "python-option-of-another": 'ps.table("t", "id INT", key="id", retain="7 days")',
    "python-view-emit": 'ps.view(late="correct", allowed_lateness="1 hour", emit="never")(print)',
    "python-column-unknown": 'orders = ps.stream(\n    "orders", "id INT, at TIMESTAMP", event_time="att"\n)',
    "python-schema": 'ps.stream("orders", "id BIGNT")',
    "python-primary-key": 'ps.table("t", "id INT PRIMARY KEY")',
    "python-key-unknown": 'ps.table("t", "id INT", key="idd")',
    "python-name": 'ps.stream("my orders", "id INT")',
    "python-view-without-argument": "@ps.view\ndef spend():\n    return 1",
    "python-view-of-text": 'ps.view("spend")',
    "python-option-of-pipeline": 'ps.option("memori", "1g")',
    "python-option-value": 'ps.option("trigger_interval", 5)',
    "python-twice": 'ps.stream("a", "id INT")\nps.table("A", "id INT")',
    "python-raises": 'names = {"a": 1}\n\ndef look_up(name):\n    return names[name]\n\nlook_up("b")',
    "python-exits": "raise SystemExit",
    "python-syntax": "def spend(:\n    pass",
    "python-import": "import no_such_module",
}


@pytest.mark.parametrize("name", REFUSED)
def test_a_mistake_is_shown_where_it_stands(name: str, load: Any) -> None:
    with refused(f"model/{name}"):
        load(REFUSED[name])


def test_what_needs_spark_does_not_belong_outside_of_views(load: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(SparkContext, "_active_spark_context", None)
    with refused("model/python-before-spark"):
        load('from pyspark.sql import functions as sf\n\n@sf.udf("int")\ndef one(x):\n    return 1')


def test_the_cause_of_an_error_is_kept(load: Any) -> None:
    with pytest.raises(ModelError) as error:
        load("1 / 0")
    assert isinstance(error.value.__cause__, ZeroDivisionError)


def test_after_an_error_nothing_is_collected_any_more(load: Any) -> None:
    with pytest.raises(ModelError):
        load('ps.stream("lost", "id INT")\n1 / 0')
    ps.stream("lost", "id INT")
    assert [each.name for each in load('ps.stream("found", "id INT")').relations] == ["found"]


def test_sinks_are_declared_as_in_sql(load: Any) -> None:
    pipeline = load(
        'ps.option("smtp", "smtps://ann@mail")\n'
        'ps.option("store", "redis://cache/0?prefix=shop")\n'
        '@ps.view(webhook="https://host/hook", webhook_secrets="keys", webhook_attempts=3, '
        'email=["ann@example.org", "bob@example.org"], email_every="5 minutes", kafka="kafka://host:9092/spend")\n'
        "def spend(spark):\n    return None"
    )
    options = pipeline.view("spend").options
    assert options == ViewOptions(
        webhook=Webhook("https://host/hook"),
        webhook_secrets=Path("keys"),
        webhook_attempts=3,
        email=("ann@example.org", "bob@example.org"),
        email_every=timedelta(minutes=5),
        kafka=KafkaTopic("host:9092", "spend"),
    )
    assert pipeline.options.smtp == Smtp("mail", 465, tls=True, starttls="always", user="ann")
    assert pipeline.options.store == OnRedis("redis://cache/0", "shop")


def test_no_secret_of_a_sink_is_in_what_is_told_of_it() -> None:
    told = [Webhook("https://ann:S3cret@host/p?t=S3cret"), Smtp("mail", 25, user="ann", password="S3cret")]
    assert "S3cret" not in f"{told} {told[0]} {told[1]}"
    assert str(told[0]) == "https://***@host/p?***"
