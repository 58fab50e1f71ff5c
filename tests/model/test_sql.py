"""What can be said in SQL, and what it means."""

from datetime import timedelta
from pathlib import Path

import pytest

from penstock.log.correction import Correction
from penstock.model import Pipeline, Sql, Stream, Table, View, pipeline_of, spot_in
from penstock.model.pipeline import PipelineOptions
from penstock.model.view import ViewOptions
from penstock.schema import parse_schema


def only(text: str) -> Stream | Table:
    (relation,) = pipeline_of(text).relations
    return relation


def query(pipeline: Pipeline, name: str) -> Sql:
    found = pipeline.view(name).query
    assert isinstance(found, Sql)
    return found


def test_a_stream_has_columns_and_options() -> None:
    text = """
        CREATE STREAM orders (id BIGINT NOT NULL, amount DECIMAL(10, 2), at TIMESTAMP)
          WITH (event_time = 'at', watermark = '1 minute 30 seconds', partitions = 4, topic = 'shop.orders');
    """
    schema = parse_schema("id BIGINT NOT NULL, amount DECIMAL(10,2), at TIMESTAMP")
    assert only(text) == Stream("orders", schema, "at", timedelta(seconds=90), 4, "shop.orders")


def test_a_corrected_event_time_is_a_column_more() -> None:
    columns = "id INT, a TIMESTAMP, b TIMESTAMP, c TIMESTAMP"
    for written in ("corrected(A, b, c)", "'corrected(a, `b`, c)'"):
        stream = only(f"CREATE STREAM s ({columns}) WITH (event_time = {written})")
        assert (str(stream.schema), stream.event_time) == (f"{columns}, event_time TIMESTAMP", "event_time")
        assert isinstance(stream, Stream) and stream.corrected == Correction("a", "b", "c")
        assert str(stream.given) == columns
    stream = only(f"CREATE STREAM s ({columns}) WITH (event_time = corrected(a, b, c, '1 hour') AS at, idle = '1 day')")
    assert isinstance(stream, Stream) and stream.event_time == "at"
    assert stream.corrected == Correction("a", "b", "c", timedelta(hours=1))


def test_without_options_a_relation_has_one_partition_and_its_own_topic() -> None:
    stream = only("CREATE STREAM orders (id BIGINT)")
    assert (stream.partitions, stream.topic, stream.event_time) == (1, "orders", None)


def test_a_primary_key_is_not_null() -> None:
    table = only("CREATE TABLE customers (id BIGINT PRIMARY KEY, city STRING);")
    assert table == Table("customers", parse_schema("id BIGINT NOT NULL, city STRING"), ("id",))


def test_a_primary_key_can_have_several_columns_in_its_own_order() -> None:
    table = only("CREATE TABLE lines (a INT, b INT, c INT NOT NULL, PRIMARY KEY (C, a));")
    assert table == Table("lines", parse_schema("a INT NOT NULL, b INT, c INT NOT NULL"), ("c", "a"))


def test_a_table_without_a_primary_key_is_a_bag() -> None:
    assert only("CREATE TABLE rows_ (a INT)") == Table("rows_", parse_schema("a INT"))


def test_a_struct_can_be_a_key() -> None:
    assert only("CREATE TABLE t (r STRUCT<id: BIGINT>, PRIMARY KEY (r))") == Table(
        "t", parse_schema("r STRUCT<id: BIGINT> NOT NULL"), ("r",)
    )


def test_columns_can_be_named_like_keywords_and_quoted() -> None:
    table = only("CREATE TABLE `table` (`a b` INT, primary INT, not INT NOT NULL, `c``d` ARRAY<MAP<STRING, INT>>)")
    assert table.schema.names == ("a b", "primary", "not", "c`d")


def test_comments_can_stand_anywhere() -> None:
    text = "CREATE /* a */ STREAM s -- b\n (a /* c */ STRUCT<b: -- d\n INT>) -- e"
    assert only(text) == Stream("s", parse_schema("a STRUCT<b: INT>"))


def test_keywords_and_options_have_no_case() -> None:
    text = "create stream s (at timestamp) with (EVENT_TIME = 'AT', 'Partitions' = 2)"
    assert only(text) == Stream("s", parse_schema("at TIMESTAMP"), event_time="at", partitions=2)


def test_a_view_keeps_its_query_as_it_was_written() -> None:
    first = "CREATE VIEW v AS /* why */\n  SELECT 'a;b' -- c\n    FROM t /* d */ ;"
    pipeline = pipeline_of(first + "\nCREATE VIEW w AS WITH x AS (SELECT 1) FROM x")
    assert query(pipeline, "v").text == "SELECT 'a;b' -- c\n    FROM t"
    assert query(pipeline, "W").text == "WITH x AS (SELECT 1) FROM x"


def test_a_view_says_how_its_answer_is_kept() -> None:
    (view,) = pipeline_of("CREATE VIEW v WITH (store = 'topic', key = 'city, `the hour`') AS SELECT 1").views
    assert view == View("v", Sql("SELECT 1"), ViewOptions("topic", ("city", "the hour")))


def test_views_may_stand_before_what_they_read() -> None:
    pipeline = pipeline_of("CREATE VIEW b AS FROM a; CREATE VIEW a AS FROM s; CREATE STREAM s (x INT);")
    assert [view.name for view in pipeline.views] == ["b", "a"]


@pytest.mark.parametrize(
    "start", ["SELECT 1", "WITH a AS (SELECT 1) SELECT * FROM a", "FROM a", "VALUES (1)", "TABLE a", "(SELECT 1)"]
)
def test_a_query_can_begin_as_spark_lets_it(start: str) -> None:
    assert query(pipeline_of(f"CREATE VIEW v AS {start};"), "v").text == start


def test_options_of_the_pipeline_are_set() -> None:
    text = """
        SET max_records_per_batch = 1000; SET trigger_interval = '2 seconds'; SET shuffle_partitions = 3;
        SET memory = '4g'; SET ansi = true; SET time_zone = 'Europe/Berlin'; SET log = '../log';
        SET spark.sql.caseSensitive = true; SET 'spark.a-b' = 'c'; SET spark.d = -1;
    """
    assert pipeline_of(text).options == PipelineOptions(
        max_records_per_batch=1000,
        trigger_interval=timedelta(seconds=2),
        shuffle_partitions=3,
        memory="4g",
        ansi=True,
        time_zone="Europe/Berlin",
        log=Path("../log"),
        spark={"spark.sql.caseSensitive": "true", "spark.a-b": "c", "spark.d": "-1"},
    )


def test_sparks_name_of_an_option_of_ours_sets_ours() -> None:
    text = (
        "SET spark.sql.ansi.enabled = true; SET 'spark.sql.shuffle.partitions' = '7'; SET spark.driver.memory = '1g';"
    )
    assert pipeline_of(text).options == PipelineOptions(ansi=True, shuffle_partitions=7, memory="1g")


def test_options_can_be_given_beside_the_text() -> None:
    options = pipeline_of("SET memory = '1g';", options={"ansi": True, "spark.x": 1}).options
    assert options == PipelineOptions(memory="1g", ansi=True, spark={"spark.x": "1"})


@pytest.mark.parametrize(
    ("line", "column", "place", "shown"),
    [
        (1, 1, "pipeline.sql:2:19", " CREATE VIEW v AS SELECT a,"),
        (1, 8, "pipeline.sql:2:26", " CREATE VIEW v AS SELECT a,"),
        (2, 4, "pipeline.sql:3:4", "   b"),
        (3, 1, "pipeline.sql:4:1", "FROM s"),
        (4, 1, "pipeline.sql:5:1", ""),
    ],
)
def test_a_place_in_the_query_is_a_place_in_the_file(line: int, column: int, place: str, shown: str) -> None:
    text = "CREATE STREAM s (a INT);\n CREATE VIEW v AS SELECT a,\n   b\r\nFROM s;\nSET ansi = true;"
    spot = spot_in(query(pipeline_of(text), "v"), line, column)
    assert (str(spot), spot.text) == (place, shown)


def test_a_query_without_a_file_has_places_too() -> None:
    assert str(spot_in(Sql("SELECT\n x"), 2, 2)) == "query:2:2"


def test_relations_and_views_know_where_they_were_declared() -> None:
    pipeline = pipeline_of("CREATE STREAM s (a INT);\nCREATE VIEW v AS FROM s", name="shop")
    assert str(pipeline.relation("s").spot) == "shop.sql:1:15"
    assert str(pipeline.view("v").spot) == "shop.sql:2:13"
