"""From appended records to changes of views, through Spark, equal to batch after every batch."""

from collections.abc import Callable
from decimal import Decimal
from typing import Any

import pytest
from pyspark.sql import SparkSession

from penstock.engine.compile import compiled
from penstock.log import Record
from penstock.model import pipeline_of
from tests.engine.conftest import Bench

SHOP = """
    CREATE STREAM orders (id BIGINT, customer BIGINT, amount DECIMAL(10,2), q DOUBLE);
    CREATE TABLE customers (id BIGINT PRIMARY KEY, city STRING);
    CREATE TABLE bag (x BIGINT, y STRING);
    CREATE VIEW spend AS SELECT city, sum(amount) AS spend, count(*) AS n, avg(q) AS a, max(amount) AS m
      FROM orders JOIN customers ON customer = customers.id GROUP BY city HAVING count(*) > 0;
    CREATE VIEW cities AS SELECT city, count(*) AS n, min(id) AS lo, collect_list(id) AS ids
      FROM customers GROUP BY city;
    CREATE VIEW copied AS SELECT ids, n FROM cities WHERE n > 1;
    CREATE VIEW total AS SELECT count(*) AS n, sum(amount) AS s FROM orders;
    CREATE VIEW sizes AS SELECT n, count(*) AS c FROM cities GROUP BY n;
    CREATE VIEW bags AS SELECT y, sum(x) AS s, bit_or(x) AS o, bit_xor(x) AS e FROM bag GROUP BY y;
    CREATE VIEW large AS SELECT id, amount * 2 AS twice FROM orders WHERE amount > 5;
    CREATE VIEW seen AS SELECT k, count(*) AS n
      FROM (SELECT customer AS k FROM orders UNION ALL SELECT id FROM customers) GROUP BY k;
"""
pytestmark = pytest.mark.spark


def orders(ids: range) -> list[dict[str, Any]]:
    return [{"id": i, "customer": 1 + i % 2, "amount": Decimal(i), "q": i / 4} for i in ids]


def test_views_equal_batch_after_inserts_updates_and_deletes(bench: Callable[[str], Bench]) -> None:
    shop = bench(SHOP)
    shop.append({"customers": [{"id": 1, "city": "Basel"}, {"id": 2, "city": "Bern"}], "orders": orders(range(10))})
    shop.drain()
    shop.check()
    shop.append({"bag": [{"x": 1, "y": "a"}, {"x": 1, "y": "a"}, {"x": 5, "y": None}], "orders": orders(range(10, 15))})
    shop.drain()
    shop.check()
    moved = [{"id": 2, "city": "Basel"}, Record({"id": 1}, deleted=True), {"id": 3, "city": None}]
    shop.append({"customers": moved, "bag": [Record({"x": 1, "y": "a"}, deleted=True)]})
    shop.drain()
    shop.check()
    assert shop.content("bags") == [{"y": None, "s": 5, "o": 5, "e": 5}, {"y": "a", "s": 1, "o": 1, "e": 1}]


def test_a_view_over_lists_has_lists_whose_order_spark_leaves_open(bench: Callable[..., Bench]) -> None:
    open_columns = {name: set(columns) for name, columns in bench(SHOP).ready.compiled.unordered.items() if columns}
    assert open_columns == {"cities": {"ids"}, "copied": {"ids"}}


def test_a_list_that_is_sorted_has_an_order(spark: SparkSession) -> None:
    text = """
        CREATE TABLE t (id BIGINT PRIMARY KEY, k STRING);
        CREATE VIEW lists AS SELECT k, array_sort(collect_list(id)) AS up, collect_set(id) AS bag,
          sort_array(collect_list(DISTINCT id), false) AS down, array_agg(array(id, 1)) AS pairs FROM t GROUP BY k;
        CREATE VIEW above AS SELECT up, array_sort(bag) AS sorted, array_union(bag, up) AS both FROM lists;
        CREATE VIEW framed AS SELECT id, collect_list(k) OVER (ORDER BY id ROWS 2 PRECEDING) AS ks,
          collect_list(k) OVER (ORDER BY k) AS peers,
          collect_set(k) OVER (PARTITION BY k) AS open FROM t;
    """
    found = compiled(spark, pipeline_of(text, name="shop")).unordered
    assert found == {"lists": {"bag", "pairs"}, "above": {"both"}, "framed": {"open"}}


def test_the_trigger_interval_is_sparks(bench: Callable[..., Bench]) -> None:
    run = bench(SHOP, trigger_interval="7 seconds").run()
    query = run.start(once=False)
    trigger = query._jsq.streamingQuery().trigger()
    run.wait(query, stop=lambda: True)
    assert trigger.toString() == "ProcessingTimeTrigger(7000)"


def test_the_order_of_declarations_does_not_matter(bench: Callable[..., Bench]) -> None:
    stream, first, second = (
        "CREATE STREAM s (k BIGINT, v BIGINT);",
        "CREATE VIEW counts AS SELECT k, count(*) AS n FROM s GROUP BY k;",
        "CREATE VIEW sums AS SELECT k, sum(v) AS n FROM s GROUP BY k;",
    )
    shop = bench(stream + first + second)
    for order in (stream + first + second, second + first + stream):
        shop.declare(order)
        shop.append({"s": [{"k": 1, "v": 10}, {"k": 2, "v": 20}]})
        shop.drain()
    shop.check()
    assert shop.content("sums") == [{"k": 1, "n": 20}, {"k": 2, "n": 40}]


def test_rows_without_partners_may_look_alike_in_a_full_join(bench: Callable[..., Bench]) -> None:
    shop = bench("""
        CREATE STREAM l (g STRING, v BIGINT);
        CREATE STREAM r (h STRING, w BIGINT);
        CREATE VIEW lefts AS SELECT g, count(*) AS n FROM l GROUP BY g;
        CREATE VIEW rights AS SELECT h, count(*) AS m FROM r GROUP BY h;
        CREATE VIEW both AS SELECT * FROM lefts FULL JOIN rights ON g = h;
        CREATE VIEW wholes AS SELECT * FROM (SELECT sum(v) AS s FROM l) FULL JOIN (SELECT sum(w) AS c FROM r) ON s = c;
    """)
    shop.append({"l": [{"g": None, "v": 1}], "r": [{"h": None, "w": 2}]})
    shop.drain()
    shop.check()
    assert len(shop.content("both")) == len(shop.content("wholes")) == 2


def test_a_range_is_not_evaluated_where_it_would_fail(bench: Callable[..., Bench]) -> None:
    shop = bench(
        """
        CREATE STREAM a (k BIGINT, x DOUBLE, y DOUBLE);
        CREATE STREAM b (k BIGINT, z DOUBLE);
        CREATE VIEW pairs AS SELECT a.k, x, z FROM a JOIN b ON a.k = b.k AND a.x / a.y > b.z;
        CREATE VIEW known AS SELECT a.k, x, z FROM a JOIN b
          ON a.k = b.k AND a.x > nvl(b.z, double(raise_error('no z')));
        """,
        ansi=True,
    )
    shop.append(
        {
            "a": [{"k": 1, "x": 6.0, "y": 2.0}, {"k": 2, "x": 1.0, "y": 0.0}],
            "b": [{"k": 1, "z": 2.0}, {"k": 3, "z": None}],
        }
    )
    shop.drain()
    shop.check()
    assert shop.content("pairs") == [{"k": 1, "x": 6.0, "z": 2.0}]


def test_views_with_an_equal_join_share_it(spark: SparkSession) -> None:
    """Whatever they call its sides, and whatever they do with its rows."""
    text = """
        CREATE STREAM orders (id BIGINT, customer BIGINT, amount BIGINT);
        CREATE TABLE customers (id BIGINT PRIMARY KEY, city STRING);
        CREATE VIEW spend AS SELECT city, sum(amount) AS spend FROM orders JOIN customers ON customer = customers.id
          GROUP BY city;
        CREATE VIEW large AS SELECT a.amount AS n, upper(b.city) AS place FROM orders a JOIN customers b
          ON a.customer = b.id ORDER BY n DESC LIMIT 3;
    """
    other = "CREATE VIEW other AS SELECT amount, city FROM orders JOIN customers ON orders.id = customers.id;"
    for declared, joins in ((text, 1), (text + other, 2)):
        operators = compiled(spark, pipeline_of(declared)).graph.operators
        assert [operator.kind for operator in operators].count("join") == joins
    shared = next(operator for operator in operators if operator.kind == "join")
    assert {edge.target.kind for edge in shared.edges} == {"aggregate", "top"}


def test_names_that_stand_for_what_uses_them_are_planned(spark: SparkSession) -> None:
    """Catalyst gives a column that it makes of another that one's name: putting it in place went on for ever."""
    text = """
        CREATE STREAM s (k BIGINT, v BIGINT, t STRING);
        CREATE TABLE d (id BIGINT PRIMARY KEY, k BIGINT, v BIGINT, t STRING);
        CREATE TABLE g (k BIGINT, v BIGINT, t STRING);
        CREATE VIEW v0 AS
            SELECT k, v, t FROM (SELECT k, (SELECT count(r.v) FROM (SELECT k, CAST(pmod(hash(max_by(v, struct(k,
            v, t)), max(k) FILTER (WHERE v % 2 = 0 OR k IS NULL), round(corr(k, v), 6)), 9) AS BIGINT) +
            grouping_id() AS v, t FROM (SELECT k, v, t FROM g) GROUP BY ROLLUP (k, t)) r WHERE r.k = l.k) AS v,
            t FROM (SELECT coalesce(l.k, r.k) AS k, coalesce(l.v, 0) - coalesce(r.v, 0) AS v, concat(l.t, r.t)
            AS t FROM (SELECT k, v, t FROM s) l FULL JOIN (SELECT k, v, t FROM d) r ON l.v BETWEEN r.v - 1 AND
            r.v + 1) l) WHERE v <= (SELECT v FROM (SELECT k, v, t FROM s) ORDER BY v DESC, k, t LIMIT 1) OR k =
            1;
        CREATE VIEW v3 AS
            SELECT k, CAST(pmod(hash(percent_rank() OVER w, ntile(3) OVER w, lead(v, 2) OVER w), 9) AS BIGINT)
            AS v, t FROM (SELECT k, (SELECT count(DISTINCT r.v) FROM (SELECT k, v, t FROM (SELECT * FROM (SELECT
            k, v, t FROM s) ORDER BY v) WHERE v IS NOT NULL LIMIT 3) r WHERE r.t = l.t AND r.v > 1) AS v, t FROM
            ((SELECT l.k, r.n AS v, l.t FROM (SELECT k, v, t FROM s) l, LATERAL (SELECT max(v) AS n FROM (SELECT
            k, v, t FROM d) WHERE k = l.k) r) EXCEPT ALL (SELECT k, v, t FROM v0)) l) WINDOW w AS (PARTITION BY
            k ORDER BY v, t);
    """
    assert set(compiled(spark, pipeline_of(text)).schemas) == {"v0", "v3"}
