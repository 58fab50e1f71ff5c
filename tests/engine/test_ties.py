"""Which rows a LIMIT takes, and what functions of windows give: what Spark gives for the query as it is written.

The oracle runs queries with ties settled as the engine settles them, and so cannot tell whether that is one of Spark's
own answers. Here Spark is asked for the very text, where the order leaves nothing open, and for what ties do not touch.
"""

from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pytest

from penstock.engine.oracle import Oracle, compared
from penstock.log import Record
from penstock.model import Sql
from tests.engine.conftest import Bench, QuickOracle

pytestmark = pytest.mark.spark
QUERIES = {
    "right_beneath": "SELECT id, v FROM t ORDER BY v DESC LIMIT 3",
    "not_shown": "SELECT id FROM t ORDER BY v DESC LIMIT 3",
    "in_a_subquery": "SELECT * FROM (SELECT * FROM t ORDER BY v DESC) LIMIT 3",
    "in_a_query_by_name": "WITH s AS (SELECT * FROM t ORDER BY v DESC) SELECT id FROM s LIMIT 3",
    "named_twice": (
        "WITH s AS (SELECT * FROM t ORDER BY v DESC) (SELECT id FROM s LIMIT 2) UNION ALL (SELECT -id FROM s LIMIT 3)"
    ),
    "filtered": "SELECT id FROM (SELECT * FROM t ORDER BY v DESC) WHERE k > 1 LIMIT 3",
    "projected": "SELECT n FROM (SELECT id * 10 AS n, k FROM (SELECT * FROM t ORDER BY v DESC) WHERE k > 0) LIMIT 3",
    "by_an_expression": "SELECT id FROM (SELECT id, k FROM t ORDER BY abs(v - 45)) LIMIT 3",
    "skipped": "SELECT id FROM (SELECT * FROM t ORDER BY v DESC) WHERE k > 1 LIMIT 3 OFFSET 2",
    "only_skipped": "SELECT id FROM (SELECT * FROM t ORDER BY v DESC) OFFSET 4",
    "first_of_the_first": "SELECT id FROM (SELECT * FROM t ORDER BY v DESC LIMIT 6) WHERE k > 1 LIMIT 2",
    "exploded": "SELECT id, e FROM (SELECT * FROM t ORDER BY v DESC) LATERAL VIEW explode(array(2, 1)) AS e LIMIT 5",
    "exploded_with_positions": (
        "SELECT id, e FROM (SELECT * FROM t ORDER BY v DESC) LATERAL VIEW posexplode(array(2, 1)) AS p, e LIMIT 5"
    ),
    "within_an_expression": "SELECT k, (SELECT id FROM (SELECT * FROM t ORDER BY v DESC) LIMIT 1) AS top FROM t",
    "of_the_other": "SELECT id FROM (SELECT * FROM t ORDER BY v DESC) WHERE k IN (SELECT k FROM u) LIMIT 3",
}


def test_a_limit_takes_the_rows_that_spark_takes_of_the_query_as_written(bench: Callable[..., Bench]) -> None:
    tables = "CREATE TABLE t (id BIGINT PRIMARY KEY, k BIGINT, v BIGINT); CREATE TABLE u (k BIGINT PRIMARY KEY);"
    made = bench(tables + "".join(f"CREATE VIEW {name} AS {query};" for name, query in QUERIES.items()))
    rows = [{"id": i, "k": i % 4, "v": i * 37 % 100} for i in range(12)]
    made.append({"t": rows, "u": [{"k": 1}, {"k": 3}]})
    made.drain()
    made.check()
    check_as_written(made)
    gone = [Record({"id": i}, deleted=True) for i in (2, 5, 8)]
    made.append({"t": [*gone, {"id": 1, "k": 3, "v": 101}, {"id": 0, "k": 2, "v": -1}], "u": [{"k": 2}]})
    made.drain()
    made.check()
    check_as_written(made)


def check_as_written(made: Bench) -> None:
    asked = QuickOracle(made.spark, made.pipeline, made.log.folder, made.log.mark().next_frame)
    for view in made.pipeline.views:
        assert isinstance(view.query, Sql)
        expected = asked._spark.sql(view.query.text).toArrow()
        found = expected.from_pylist(made.content(view.name), schema=expected.schema)
        assert not compared(expected, found), (view.name, compared(expected, found))


TIED = {
    "numbered": ("SELECT id, k, v, row_number() OVER (PARTITION BY k ORDER BY v) AS n FROM t", "k, v, n"),
    "tiled": ("SELECT id, k, v, ntile(3) OVER (PARTITION BY k ORDER BY v DESC) AS n FROM t", "k, v, n"),
    "shifted": (
        "SELECT id, k, v, lag(v) OVER w AS b, lead(v, 2, -1) OVER w AS a FROM t "
        "WINDOW w AS (PARTITION BY k ORDER BY v)",
        "k, v, b, a",
    ),
    "by_rows": (
        "SELECT id, k, v, sum(v) OVER (PARTITION BY k ORDER BY v ROWS BETWEEN 1 PRECEDING AND CURRENT ROW) AS s FROM t",
        "k, v, s",
    ),
    "ranked": (
        "SELECT id, rank() OVER w AS r, dense_rank() OVER w AS d, percent_rank() OVER w AS p, cume_dist() OVER w AS c, "
        "sum(x) OVER w AS s, row_number() OVER w AS n FROM t WINDOW w AS (PARTITION BY k ORDER BY v)",
        "id, r, d, p, c, s",
    ),
    "peers": (
        "SELECT id, first_value(v) OVER w AS f, last_value(v) OVER w AS l, nth_value(v, 2) OVER w AS n, "
        "nth_value(v, 3) OVER (PARTITION BY k ORDER BY v RANGE BETWEEN 1 PRECEDING AND 1 FOLLOWING) AS m, "
        "collect_list(v) OVER w AS vs, rank() OVER w AS r FROM t WINDOW w AS (PARTITION BY k ORDER BY v)",
        "id, f, l, n, m, vs, r",
    ),
    "picked": (
        "SELECT id, k, v, first_value(x) OVER w AS f, last_value(x) OVER w AS l, nth_value(x, 2) OVER w AS n, "
        "collect_list(x) OVER w AS xs, array_sort(collect_list(x) OVER w) AS up, listagg(s) OVER w AS s, "
        "max_by(x, k) OVER w AS m FROM t WINDOW w AS (PARTITION BY k ORDER BY v)",
        "id, k, v, up",
    ),
    "picked_around": (
        "SELECT id, k, v, first_value(x) OVER w AS f, last_value(s) OVER w AS l, count(*) OVER w AS c FROM t "
        "WINDOW w AS (PARTITION BY k ORDER BY v DESC RANGE BETWEEN 1 PRECEDING AND 1 FOLLOWING)",
        "id, k, v, c",
    ),
    "picked_of_all": (
        "SELECT id, k, first_value(x) OVER p AS f, any_value(s) OVER p AS a, collect_list(x) OVER p AS xs, listagg(s) "
        "OVER p AS l, listagg(s) WITHIN GROUP (ORDER BY v) OVER p AS o, mode(v) OVER p AS m, last_value(x) OVER "
        "(PARTITION BY k ORDER BY v ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING) AS z, "
        "array_sort(collect_list(x) OVER p) AS up FROM t WINDOW p AS (PARTITION BY k)",
        "id, k, up",
    ),
    "grouped": (
        "SELECT k, mode(x) AS m, listagg(s) WITHIN GROUP (ORDER BY v) AS s, min(v) AS least FROM t GROUP BY k",
        "k, least",
    ),
    "first_rows": ("SELECT id, v FROM t ORDER BY v LIMIT 5", "v"),
    "later_rows": ("SELECT id, v FROM t ORDER BY v DESC LIMIT 4 OFFSET 3", "v"),
    "first_of_each": (
        "SELECT * FROM (SELECT id, k, v, row_number() OVER (PARTITION BY k ORDER BY v) AS n FROM t) WHERE n <= 2",
        "k, v, n",
    ),
    "best_of_each": (
        "SELECT * FROM (SELECT id, k, v, rank() OVER (PARTITION BY k ORDER BY v) AS n FROM t) WHERE n <= 2",
        "id, k, v, n",
    ),
    "first_beside": (
        "SELECT u.k, b.id, b.v FROM u, LATERAL (SELECT id, v FROM t WHERE t.k = u.k ORDER BY v LIMIT 2) AS b",
        "k, v",
    ),
}
"""Queries that Spark leaves open, and the columns of their answers that it does not."""


def tied(number: int, k: int, v: int) -> dict[str, Any]:
    """Later rows have less in the columns that decide: rows as they come are in no order of ours."""
    x = None if number == 7 else 100 - number
    return {"id": number, "k": k, "v": v, "x": x, "s": chr(ord("z") - number)}


def test_of_rows_that_tie_spark_says_the_rest(bench: Callable[..., Bench]) -> None:
    tables = "CREATE TABLE t (id BIGINT PRIMARY KEY, k BIGINT, v BIGINT, x BIGINT, s STRING);"
    views = "".join(f"CREATE VIEW {name} AS {query};" for name, (query, _) in TIED.items())
    made = bench(f"{tables} CREATE TABLE u (k BIGINT PRIMARY KEY); {views}")
    rows = {i: tied(i, i % 2, i // 5) for i in range(14)}
    made.append({"t": list(rows.values()), "u": [{"k": 1}]})
    check_tied(made, rows)
    changed = [tied(3, 0, 0), tied(12, 0, 1), tied(13, 1, 0), tied(14, 1, 0)]
    rows |= {row["id"]: row for row in changed}
    made.append({"t": [*changed, *(Record({"id": i}, deleted=True) for i in (0, 5, 6))], "u": [{"k": 0}]})
    check_tied(made, {i: row for i, row in rows.items() if i not in (0, 5, 6)})


def check_tied(made: Bench, rows: dict[int, dict[str, Any]]) -> None:
    made.drain()
    made.check()
    until = made.log.mark().next_frame
    asked = QuickOracle(made.spark, made.pipeline, made.log.folder, until)
    for name, (query, columns) in TIED.items():
        expected = asked._spark.sql(f"SELECT {columns} FROM ({query})").toArrow()
        found = [{column: row[column] for column in columns.split(", ")} for row in made.content(name)]
        difference = compared(expected, pa.Table.from_pylist(found, schema=expected.schema))
        assert not difference, (name, difference)
    check_picked(made.content("picked"), list(rows.values()))
    verified = Oracle(made.spark, made.pipeline, made.log.folder, until)  # as it runs where rows are many
    for name in ("picked", "picked_around", "picked_of_all"):
        expected = verified.rows(name)
        assert not compared(expected, pa.Table.from_pylist(made.content(name), schema=expected.schema)), name


def check_picked(found: list[dict[str, Any]], rows: list[dict[str, Any]]) -> None:
    """The first value is one of a first row, the last value one of the row's peers."""
    for row in found:
        partition = [each for each in rows if each["k"] == row["k"]]
        least = min(each["v"] for each in partition)
        assert row["f"] in [each["x"] for each in partition if each["v"] == least]
        assert row["l"] in [each["x"] for each in partition if each["v"] == row["v"]]
