"""Which rows a LIMIT takes: those that Spark takes of the query as it is written.

The oracle runs queries with ties settled as the engine settles them, and so cannot tell whether that is one of Spark's
own answers. Here Spark is asked for the very text, where the order leaves nothing open.
"""

from collections.abc import Callable

import pytest

from penstock.engine.oracle import compared
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
