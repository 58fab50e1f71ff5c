"""From appended records to changes of views, through Spark, equal to batch after every batch."""

from collections.abc import Callable
from decimal import Decimal
from typing import Any

import pytest

from penstock.log import Record
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
    assert bench(SHOP).ready.compiled.unordered == {"cities", "copied", "sizes"}


def test_the_trigger_interval_is_sparks(bench: Callable[..., Bench]) -> None:
    run = bench(SHOP, trigger_interval="7 seconds").run()
    query = run.start(once=False)
    trigger = query._jsq.streamingQuery().trigger()
    run.wait(query, stop=lambda: True)
    assert trigger.toString() == "ProcessingTimeTrigger(7000)"
