"""Plans as text: what `penstock explain` says of a pipeline."""

import json

import pytest
from pyspark.sql import SparkSession

from penstock.engine.compile import compiled
from penstock.engine.explain import Explained, conjuncts, explained
from penstock.engine.plangraph import plan_graph
from penstock.engine.plantext import plan_text
from penstock.engine.query import Query, Tuning
from penstock.engine.timing import LAST
from penstock.model import pipeline_of
from tests.texts import assert_golden

SHOP = """
    CREATE STREAM orders (id BIGINT, customer BIGINT, amount DECIMAL(10,2));
    CREATE TABLE customers (id BIGINT PRIMARY KEY, city STRING);
    CREATE TABLE returns (id BIGINT, reason STRING);
    CREATE VIEW spend AS SELECT city, sum(amount) AS spend, max(amount) AS largest
      FROM orders JOIN customers ON customer = customers.id WHERE amount > 0 GROUP BY city;
    CREATE VIEW sizes AS SELECT largest, count(*) AS cities FROM spend GROUP BY largest;
    CREATE VIEW returned WITH (store = 'topic') AS SELECT o.id, reason
      FROM orders o JOIN returns r ON o.id = r.id AND o.customer <> r.id;
"""


@pytest.fixture(scope="module")
def shop(spark: SparkSession) -> Explained:
    pipeline = pipeline_of(SHOP, name="shop")
    plan = compiled(spark, pipeline)
    return explained(pipeline, plan, Query(spark, plan.graph, Tuning()).layout)


def test_a_pipeline_with_shared_operators(shop: Explained) -> None:
    assert_golden("engine/explain", plan_text(shop))


def test_a_pipeline_as_a_graph(shop: Explained) -> None:
    found = plan_graph(pipeline_of(SHOP, name="shop"), shop)
    lines = [json.dumps(each) for part in ("nodes", "edges") for each in found[part]]
    assert_golden("engine/plan-graph", "\n".join(lines))
    known = {node["id"] for node in found["nodes"]}
    assert all(set(edge) <= known for edge in found["edges"])


def test_what_one_view_needs(shop: Explained) -> None:
    assert_golden("engine/explain-one-view", plan_text(shop, "returned"))


def test_windows_in_time(spark: SparkSession) -> None:
    text = """
        CREATE STREAM orders (id BIGINT, customer BIGINT, amount BIGINT, at TIMESTAMP)
          WITH (event_time = 'at', watermark = '10 seconds');
        CREATE TABLE customers (id BIGINT PRIMARY KEY, city STRING);
        CREATE VIEW hourly WITH (emit = 'final') AS
          SELECT window.start AS hour, sum(amount) AS spend FROM orders WHERE amount > 0 GROUP BY window(at, '1 hour');
        CREATE VIEW corrected WITH (late = 'correct', allowed_lateness = '2 hours') AS
          SELECT window.start AS hour, sum(amount) AS spend FROM orders GROUP BY window(at, '1 hour');
        CREATE VIEW by_city WITH (late = 'drop') AS
          SELECT city, window.end, count(*) AS orders FROM orders JOIN customers ON customer = customers.id
          GROUP BY city, window(at, '1 hour');
    """
    pipeline = pipeline_of(text, name="shop")
    plan = compiled(spark, pipeline)
    found = explained(pipeline, plan, Query(spark, plan.graph, Tuning()).layout)
    assert_golden("engine/explain-windows", plan_text(found))


def test_what_frees_state_as_time_goes_on(spark: SparkSession) -> None:
    met = "a JOIN b ON a.k = b.k AND b.at BETWEEN a.at AND a.at + INTERVAL 10 SECONDS"
    pairs = f"SELECT a.k FROM {met}"
    sliding = "count(*) OVER (PARTITION BY k ORDER BY at RANGE BETWEEN INTERVAL 3 SECONDS PRECEDING AND CURRENT ROW)"
    text = f"""
        CREATE STREAM a (k INT, at TIMESTAMP) WITH (event_time = 'at', watermark = '1 second');
        CREATE STREAM b (k INT, at TIMESTAMP) WITH (event_time = 'at', watermark = '1 second');
        CREATE VIEW sessions AS SELECT k, count(*) AS n FROM a GROUP BY k, session_window(at, '5 seconds');
        CREATE VIEW pairs AS {pairs};
        CREATE VIEW corrected WITH (late = 'correct', allowed_lateness = '1 minute') AS {pairs};
        CREATE VIEW sliding AS SELECT k, {sliding} AS n FROM a;
        CREATE VIEW numbered WITH (emit = 'final') AS
          SELECT k, row_number() OVER (PARTITION BY w ORDER BY k) AS place
          FROM (SELECT k, window(at, '10 seconds') AS w FROM b);
        CREATE VIEW met WITH (emit = 'final') AS
          SELECT window.start, count(*) AS n FROM {met} GROUP BY window(a.at, '1 minute');
        CREATE VIEW met_by_b AS SELECT window.start, count(*) AS n FROM {met} GROUP BY window(b.at, '1 minute');
    """
    pipeline = pipeline_of(text, name="shop")
    plan = compiled(spark, pipeline)
    query = Query(spark, plan.graph, Tuning())
    assert [plan.late_from(view) for view in ("sliding", "pairs", "numbered")] == [{"a"}, {"a", "b"}, {"b"}]
    parts = [part for link in explained(pipeline, plan, query.layout).links for part in link.parts]
    bounds = sorted(f"{', '.join(part.readers)}, {part.title}: {part.bound}" for part in parts)
    assert_golden("engine/explain-ranges", "\n".join(bounds))
    second = 1_000_000
    assert query.watermarks({"a": 100 * second, "b": 70 * second}) == {
        **{"sessions": 100 * second, "sliding": 100 * second, "numbered": 70 * second},
        **{"pairs": 70 * second, "corrected": 70 * second, "met": 60 * second, "met_by_b": 70 * second},
    }
    assert query.watermarks({"a": 0}) == {"sessions": 0, "sliding": 0}
    assert query.watermarks({"a": LAST, "b": LAST})["met"] == LAST


@pytest.mark.parametrize(
    ("options", "query", "sliced"),
    [
        ("emit = 'final'", "k, window, sum(v) AS n FROM s GROUP BY k, window(at, '1 minute', '20 seconds')", True),
        ("emit = 'final'", "window.end, max(v) AS n FROM s GROUP BY window(at, '1 minute', '20 seconds')", True),
        ("late = 'drop'", "k, window, sum(v) AS n FROM s GROUP BY k, window(at, '1 minute', '20 seconds')", False),
        (
            "emit = 'final', late = 'correct', allowed_lateness = '1 hour'",
            "k, window, sum(v) AS n FROM s GROUP BY k, window(at, '1 minute', '20 seconds')",
            False,
        ),
        ("emit = 'final'", "k, window, sum(v) AS n FROM s GROUP BY k, window(at, '1 minute', '25 seconds')", False),
        ("emit = 'final'", "window, collect_list(v) AS n FROM s GROUP BY window(at, '1 minute', '20 seconds')", False),
        (
            "emit = 'final'",
            """k, window, sum(v) AS n FROM s GROUP BY k, window(at, '1 minute', '20 seconds')
               HAVING minute(window.start) > 3""",
            False,
        ),
        ("emit = 'final'", "k, window, sum(v) AS n FROM s GROUP BY k, window(at, '1 minute')", False),
    ],
)
def test_windows_that_overlap_and_are_shown_once_keep_a_row_once(
    spark: SparkSession, options: str, query: str, *, sliced: bool
) -> None:
    declared = "CREATE STREAM s (k INT, v INT, at TIMESTAMP) WITH (event_time = 'at', watermark = '1 second');"
    pipeline = pipeline_of(f"{declared} CREATE VIEW x WITH ({options}) AS SELECT {query};", name="shop")
    plan = compiled(spark, pipeline)
    text = plan_text(explained(pipeline, plan, Query(spark, plan.graph, Tuning()).layout))
    assert ("each row once, for all its 3 windows" in text) == sliced


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("(a > 1)", ["a > 1"]),
        ("((a > 1) AND (b IS NULL))", ["a > 1", "b IS NULL"]),
        ("(((a > 1) AND f(b)) AND (c OR d))", ["a > 1", "f(b)", "c OR d"]),
        ("(a) = (b)", ["(a) = (b)"]),
    ],
)
def test_a_condition_is_taken_apart_where_everything_must_hold(text: str, parts: list[str]) -> None:
    assert conjuncts(text) == parts


def test_groups_by_the_key_of_a_join_and_more_are_made_where_the_join_is(spark: SparkSession) -> None:
    text = """
        CREATE STREAM items (item BIGINT, price BIGINT);
        CREATE TABLE orders (id BIGINT PRIMARY KEY, day DATE);
        CREATE VIEW sums AS
          SELECT item, day, sum(price) AS total FROM orders JOIN items ON id = item GROUP BY day, item;
    """
    plan = compiled(spark, pipeline_of(text, name="sums"))
    (chain,) = Query(spark, plan.graph, Tuning()).layout.chains
    assert [operator.kind for operator in chain.operators] == ["upsert", "join", "aggregate"]
