"""Bounds: which operators have a state that tables bound, and which grow with a stream for ever."""

import pytest
from pyspark.sql import SparkSession

from penstock.engine.compile import compiled
from penstock.engine.explain import explained
from penstock.engine.query import Query, Tuning
from penstock.model import pipeline_of

RELATIONS = """
    CREATE STREAM s (id BIGINT, k BIGINT, x BIGINT, done BOOLEAN, tags ARRAY<STRING>);
    CREATE TABLE t (id BIGINT PRIMARY KEY, k BIGINT, city STRING, tags ARRAY<STRING>);
    CREATE TABLE u (id BIGINT, x BIGINT);
"""
FIXED, BY_S = "bounded: a fixed size", "unbounded: it grows with s"
BY_T, BY_BOTH = "bounded by the size of t", "bounded by the size of t and u"
VIEWS = [
    ("SELECT count(*) AS n, sum(x) AS x, max(x) AS most FROM s", [FIXED]),
    ("SELECT count(DISTINCT x) AS n FROM s", [BY_S]),
    ("SELECT count(DISTINCT done) AS n, max(done) AS most FROM s", [FIXED]),
    ("SELECT collect_list(done) AS all FROM s", [BY_S]),
    ("SELECT percentile(x, 0.5) AS half FROM s", [BY_S]),
    ("SELECT k, count(*) AS n FROM s GROUP BY k", [BY_S]),
    ("SELECT done, x > 3 AS large, count(*) AS n FROM s GROUP BY done, x > 3", [FIXED]),
    ("SELECT tag, count(*) AS n FROM s LATERAL VIEW explode(tags) AS tag GROUP BY tag", [BY_S]),
    ("SELECT tag, count(*) AS n FROM t LATERAL VIEW explode(tags) AS tag GROUP BY tag", [BY_T]),
    ("SELECT city, count(*) AS n, min(id) AS first FROM t GROUP BY city", [BY_T]),
    ("SELECT city, count(*) AS n FROM s JOIN t ON s.k = t.id GROUP BY city", [BY_S, BY_T]),
    ("SELECT city, max(x) AS most FROM s JOIN t ON s.k = t.id GROUP BY city", [BY_S, BY_S]),
    ("SELECT x, count(*) AS n FROM s JOIN t ON s.k = t.id GROUP BY x", [BY_S, BY_S]),
    ("SELECT n, count(*) AS times FROM (SELECT count(*) AS n FROM s) GROUP BY n", [FIXED, FIXED]),
    (
        "SELECT done, max(n) AS n FROM (SELECT done, k, count(*) AS n FROM s GROUP BY done, k) GROUP BY done",
        [BY_S, BY_S],
    ),
    ("SELECT t.id FROM t JOIN u ON t.id = u.id", [BY_BOTH]),
    ("SELECT a.id FROM s a JOIN s b ON a.id = b.k", [BY_S]),
    ("SELECT city, count(*) AS n FROM t WHERE id IN (SELECT k FROM s) GROUP BY city", [BY_S, BY_T]),
    ("SELECT id, row_number() OVER (PARTITION BY k ORDER BY id) AS n FROM t", [BY_T]),
    ("SELECT id, row_number() OVER (PARTITION BY k ORDER BY id) AS n FROM s", [BY_S]),
    ("SELECT id FROM s ORDER BY x LIMIT 3", [FIXED, FIXED]),
    ("SELECT id FROM t ORDER BY k LIMIT 3", [BY_T, FIXED]),
    ("SELECT id FROM s ORDER BY x OFFSET 3", [BY_S]),
    (
        "SELECT id FROM (SELECT *, row_number() OVER (PARTITION BY done ORDER BY x) AS n FROM s) WHERE n = 1",
        [FIXED],
    ),
    ("SELECT id FROM (SELECT *, rank() OVER (ORDER BY x) AS n FROM s) WHERE n <= 3", [BY_S, BY_S, BY_S]),
    ("SELECT id, (SELECT x FROM u) AS x FROM t", [FIXED, BY_T]),
    ("SELECT x FROM s UNION SELECT id FROM t", [BY_S]),
    ("SELECT t.id, u.x FROM t ASOF JOIN u MATCH_CONDITION (t.k >= u.x)", [BY_BOTH]),
    ("SELECT s.id, t.city FROM s ASOF JOIN t MATCH_CONDITION (s.x >= t.k)", [BY_S]),
    (
        "SELECT city, count(*) AS n FROM t LEFT ASOF JOIN s MATCH_CONDITION (t.k >= s.x) GROUP BY city",
        [BY_S, BY_T],
    ),
    ("SELECT t.id, n FROM t JOIN VALUES (1, 2) AS v (id, n) ON t.id = v.id", [BY_T]),
]


@pytest.fixture(scope="module")
def states(spark: SparkSession) -> dict[str, list[str]]:
    """By query the states of its operators, tables left out, in the order in which rows pass them."""
    found: dict[str, list[str]] = {}
    for query, _ in VIEWS:
        spark.catalog.dropTempView("v")
        pipeline = pipeline_of(f"{RELATIONS} CREATE VIEW v AS {query};", name="shop")
        plan = compiled(spark, pipeline)
        links = explained(pipeline, plan, Query(spark, plan.graph, Tuning()).layout).links
        parts = sorted((part for link in links for part in link.parts), key=lambda part: part.number)
        found[query] = [str(part.bound) for part in parts if not part.does.startswith("table ")]
    return found


@pytest.mark.parametrize(("query", "bounds"), VIEWS)
def test_a_state_is_bounded_by_tables_or_grows_with_a_stream(
    states: dict[str, list[str]], query: str, bounds: list[str]
) -> None:
    assert states[query] == bounds
