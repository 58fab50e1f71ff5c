"""Every kind of query over tables that change: after every batch it equals Spark in batch."""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from random import Random
from typing import Any

import pytest
from pyspark.sql import SparkSession

from penstock.engine.compile import compiled
from penstock.log import Record
from penstock.model import pipeline_of
from tests.engine.conftest import Bench

RELATIONS = """
CREATE STREAM s (k INT, v INT);
CREATE TABLE a (id INT PRIMARY KEY, k INT, x INT);
CREATE TABLE b (id INT PRIMARY KEY, k INT, y INT);
"""
VIEWS = {
    "left_join": "SELECT a.id, a.x, b.id AS bid, b.y FROM a LEFT JOIN b ON a.k = b.k",
    "left_join_with_condition": "SELECT a.id, a.x, b.id AS bid, b.y FROM a LEFT JOIN b ON a.k = b.k AND a.x > b.y",
    "right_join": "SELECT a.id, a.x, b.id AS bid, b.y FROM a RIGHT JOIN b ON a.k = b.k",
    "full_join": "SELECT a.id, a.x, b.id AS bid, b.y FROM a FULL JOIN b ON a.k = b.k",
    "full_join_with_condition": "SELECT a.id, a.x, b.id AS bid, b.y FROM a FULL JOIN b ON a.k = b.k AND a.x < b.y",
    "in_query": "SELECT * FROM a WHERE k IN (SELECT k FROM b)",
    "exists_with_condition": "SELECT * FROM a WHERE EXISTS (SELECT 1 FROM b WHERE a.k = b.k AND a.x < b.y)",
    "not_exists": "SELECT * FROM a WHERE NOT EXISTS (SELECT 1 FROM b WHERE a.k = b.k)",
    "not_exists_with_condition": "SELECT * FROM a WHERE NOT EXISTS (SELECT 1 FROM b WHERE a.k = b.k AND a.x < b.y)",
    "not_in_with_nulls": "SELECT * FROM a WHERE k NOT IN (SELECT k FROM b WHERE y > 3)",
    "existence": "SELECT id, x > 2 OR k IN (SELECT k FROM b) AS e FROM a",
    "cross_join": "SELECT a.id, b.id AS bid FROM a CROSS JOIN b",
    "range_join": "SELECT a.id, b.id AS bid FROM a JOIN b ON a.x BETWEEN b.y - 1 AND b.y + 1",
    "left_range_join": "SELECT a.id, b.id AS bid FROM a LEFT JOIN b ON a.x < b.y",
    "null_safe_join": "SELECT a.id, b.id AS bid FROM a JOIN b ON a.k <=> b.k",
    "self_join": "SELECT a1.id, a2.id AS id2 FROM a a1 LEFT JOIN a a2 ON a1.k = a2.x",
    "chain_of_left_joins": "SELECT a.id, b.id AS bid, s.v FROM a LEFT JOIN b ON a.k = b.k LEFT JOIN s ON b.y = s.v",
    "distinct_rows": "SELECT DISTINCT k, v % 3 AS m FROM s",
    "intersected": "SELECT k FROM a INTERSECT SELECT k FROM b",
    "excepted": "SELECT k FROM a EXCEPT SELECT k FROM b",
    "excepted_all": "SELECT k FROM a EXCEPT ALL SELECT k FROM b",
    "intersected_all": "SELECT k FROM a INTERSECT ALL SELECT k FROM b",
    "united": "SELECT k FROM a UNION SELECT k FROM b",
    "count_distinct": "SELECT k, count(DISTINCT x) AS n FROM a GROUP BY k",
    "several_distinct": "SELECT k, count(DISTINCT x) AS n, sum(DISTINCT id) AS q, count(*) AS c FROM a GROUP BY k",
    "filtered_aggregates": (
        "SELECT k, count(*) FILTER (WHERE x > 2) AS n, sum(x) FILTER (WHERE id > 3) AS q FROM a GROUP BY k"
    ),
    "rollup_sums": "SELECT k, x % 2 AS m, sum(x) AS q, grouping(k) AS g FROM a GROUP BY ROLLUP(k, x % 2)",
    "cube_counts": "SELECT k, x % 2 AS m, count(*) AS q FROM a GROUP BY CUBE(k, x % 2)",
    "grouping_sets": "SELECT k, x, count(*) AS q FROM a GROUP BY GROUPING SETS ((k), (x), ())",
    "compared_with_scalar": "SELECT id FROM a WHERE x > (SELECT avg(y) FROM b)",
    "less_scalar": "SELECT id, x - (SELECT max(y) FROM b) AS d FROM a",
    "correlated_scalar": "SELECT id, (SELECT max(y) FROM b WHERE b.k = a.k) AS d FROM a",
    "aggregate_times_scalar": "SELECT k, sum(x) * (SELECT count(*) FROM b) AS d FROM a GROUP BY k",
    "global_with_scalar": "SELECT sum(x) + (SELECT count(*) FROM b) AS d FROM a",
    "exploded": "SELECT id, e FROM a LATERAL VIEW explode(sequence(1, x)) AS e",
    "exploded_outer": "SELECT id, e FROM a LATERAL VIEW OUTER explode(array(x, k)) AS e WHERE e > 1 OR e IS NULL",
    "exploded_with_position": "SELECT id, p, c FROM a LATERAL VIEW posexplode(array(x, k, id)) AS p, c",
    "inlined": (
        "SELECT id, u, w FROM a LATERAL VIEW inline(array(struct(x AS u, k AS w), struct(id AS u, 0 AS w))) AS u, w"
    ),
    "stacked": "SELECT id, u FROM a LATERAL VIEW stack(2, x, k) AS u",
    "exploded_twice": (
        "SELECT id, e, f FROM a LATERAL VIEW explode(array(x, k)) AS e LATERAL VIEW explode(array(e, 7)) AS f "
        "WHERE e IS NOT NULL"
    ),
    "unpivoted": "SELECT * FROM a UNPIVOT (val FOR name IN (k, x))",
    "pivoted": "SELECT * FROM (SELECT k, x, id FROM a) PIVOT (sum(id) FOR x IN (1, 2, 3))",
    "other_aggregates": (
        "SELECT k, percentile(x, 0.5) AS p, max_by(id, x * 100 + id) AS m, round(stddev(x), 6) AS sd FROM a GROUP BY k"
    ),
    "shared_cte": (
        "WITH q AS (SELECT k, sum(x) AS t FROM a GROUP BY k) SELECT q1.k, q2.t FROM q q1 JOIN q q2 ON q1.t = q2.k"
    ),
    "lateral": "SELECT a.id, z.m FROM a, LATERAL (SELECT max(y) AS m FROM b WHERE b.k = a.k) z",
    "numbered": "SELECT id, k, x, row_number() OVER (PARTITION BY k ORDER BY x) AS n FROM a",
    "ranked": (
        "SELECT id, k, x, rank() OVER (PARTITION BY k ORDER BY x) AS n, dense_rank() OVER (PARTITION BY k ORDER "
        "BY x) AS d, percent_rank() OVER (PARTITION BY k ORDER BY x) AS p, cume_dist() OVER (PARTITION BY k "
        "ORDER BY x) AS c FROM a"
    ),
    "tiled": "SELECT id, k, ntile(2) OVER (PARTITION BY k ORDER BY x, id) AS n FROM a",
    "lagged": (
        "SELECT id, k, lag(x) OVER (PARTITION BY k ORDER BY id) AS g, lead(x, 2, -1) OVER (PARTITION BY k ORDER "
        "BY id) AS d FROM a"
    ),
    "picked": (
        "SELECT id, first_value(x) OVER (PARTITION BY k ORDER BY id) AS f, last_value(x) OVER (PARTITION BY k "
        "ORDER BY id) AS l, nth_value(x, 2) OVER (PARTITION BY k ORDER BY id) AS t FROM a"
    ),
    "over_rows": (
        "SELECT id, sum(x) OVER (PARTITION BY k ORDER BY id ROWS BETWEEN 1 PRECEDING AND 1 FOLLOWING) AS q, "
        "avg(x) OVER (PARTITION BY k ORDER BY id) AS r FROM a"
    ),
    "over_ranges": (
        "SELECT id, sum(x) OVER (PARTITION BY k ORDER BY x RANGE BETWEEN 1 PRECEDING AND CURRENT ROW) AS q, "
        "count(*) OVER (PARTITION BY k) AS r, sum(id) OVER (ORDER BY id) AS s FROM a"
    ),
    "top_with_ties": "SELECT id, x FROM a ORDER BY x DESC LIMIT 3",
    "top_after_offset": "SELECT id, x FROM a ORDER BY x DESC, id LIMIT 3 OFFSET 1",
    "top_of_each": (
        "SELECT id, k, x FROM (SELECT *, row_number() OVER (PARTITION BY k ORDER BY x DESC) AS n FROM a) WHERE n <= 2"
    ),
    "top_ranks_of_each": (
        "SELECT id, k, x, n FROM (SELECT *, rank() OVER (PARTITION BY k ORDER BY x DESC) AS n FROM a) WHERE n <= 2"
    ),
    "top_of_stream": "SELECT k, v FROM s ORDER BY v DESC LIMIT 4",
    "with_values": "SELECT a.id, c.name FROM a JOIN (VALUES (1, 'one'), (2, 'two')) AS c(n, name) ON a.k = c.n",
    "exists_anywhere": "SELECT id FROM a WHERE EXISTS (SELECT 1 FROM b WHERE y > 4)",
    "collected": "SELECT k, collect_set(x) AS xs, bool_or(x > 3) AS e FROM a GROUP BY k",
    "correlated_in": "SELECT id FROM a WHERE x IN (SELECT y FROM b WHERE b.k = a.k)",
    "not_in_several": "SELECT id FROM a WHERE (k, x) NOT IN (SELECT k, y FROM b)",
    "not_in_several_or": (
        "SELECT id, x > 4 OR (k, x) NOT IN (SELECT k, y FROM b) AS e, x > 4 OR k NOT IN (SELECT k FROM b) AS f FROM a"
    ),
    "not_in_several_below": "SELECT id FROM a WHERE (k, x) NOT IN (SELECT k, y FROM b WHERE b.id < a.id)",
    "united_arrays": (
        "SELECT k, array_sort(collect_union(array(k, x % 3, NULL))) AS u, mode(x) AS m, "
        "listagg(CAST(x AS STRING), '/') WITHIN GROUP (ORDER BY k) AS l FROM a GROUP BY k"
    ),
    "grown_lists": (
        "SELECT v % 2 AS m, array_sort(collect_union(array(v, k))) AS u, listagg(CAST(v AS STRING), '/') WITHIN GROUP "
        "(ORDER BY k) AS l, sort_array(array_agg(v)) AS vs FROM s GROUP BY v % 2"
    ),
    "picked_of_peers": (
        "SELECT id, first_value(x) OVER w AS f, last_value(x) OVER w AS l, nth_value(x, 2) OVER w AS n, "
        "collect_list(x) OVER w AS xs, any_value(x) OVER (PARTITION BY k) AS a FROM a WINDOW w AS (ORDER BY k)"
    ),
}
PARTS = 4
"""Views that are kept in one pipeline: every fourth of them."""
pytestmark = pytest.mark.spark


@pytest.mark.parametrize("part", range(PARTS))
def test_queries_are_kept_right(bench: Callable[..., Bench], part: int) -> None:
    chosen = list(VIEWS.items())[part::PARTS]
    kept = bench(RELATIONS + "".join(f"CREATE VIEW {name} AS {query};\n" for name, query in chosen))
    chance = Random(part)
    for _ in range(4):
        kept.append(
            {
                "a": changes(chance, "x"),
                "b": changes(chance, "y"),
                "s": [{"k": chance.randint(0, 3), "v": chance.randint(0, 5)} for _ in range(3)],
            }
        )
        kept.drain()
        kept.check()


def test_rows_meet_those_that_they_may_not_be_in_by_equality(spark: SparkSession) -> None:
    views = {name: query for name, query in VIEWS.items() if name.startswith("not_in_several")}
    text = RELATIONS + "".join(f"CREATE VIEW {name} AS {query};\n" for name, query in views.items())
    joins = [each for each in compiled(spark, pipeline_of(text, name="none")).graph.operators if each.kind == "join"]
    keys = [(join.parts["plan"].kind(), join.parts["plan"].leftKeys().length()) for join in joins]
    # By two columns; all rows with those that have a NULL; and rows that have one, under a key of their own, with all.
    meetings = {("anti", 2): 2, ("anti", 0): 2, ("anti", 1): 2, ("exists", 2): 1, ("exists", 0): 2, ("exists", 1): 3}
    assert Counter(keys) == meetings


def changes(chance: Random, column: str) -> Sequence[Mapping[str, Any] | Record]:
    """Rows that come, change and go, with few keys, so that they meet; some are NULL."""
    return [
        Record({"id": number}, deleted=True)
        if chance.random() < 0.3
        else {"id": number, "k": chance.choice([None, 1, 2, 3]), column: chance.randint(0, 5)}
        for number in (chance.randint(1, 9) for _ in range(chance.randint(1, 6)))
    ]
