"""What cannot be kept up to date is refused, naming construct and place."""

import pytest
from pyspark.sql import SparkSession

from penstock.engine.compile import compiled
from penstock.model import pipeline_of
from tests.texts import refused

RELATIONS = """\
CREATE STREAM orders (id BIGINT, customer BIGINT, amount DECIMAL(10,2));
CREATE TABLE customers (id BIGINT PRIMARY KEY, city STRING);
CREATE VIEW refused AS
  {query};
"""
QUERIES = {
    "left-join": "SELECT o.id, city FROM orders o LEFT JOIN customers c ON customer = c.id",
    "join-without-equality": "SELECT o.id, city FROM orders o JOIN customers c ON customer < c.id",
    "semi-join": "SELECT id FROM orders WHERE customer IN (SELECT id FROM customers)",
    "rand": "SELECT id,\n    rand() AS chance FROM orders",
    "current-timestamp": "SELECT id, current_timestamp() AS now FROM orders",
    "current-date": "SELECT id FROM orders WHERE current_date() > DATE '2024-01-01'",
    "window-function": "SELECT id, row_number() OVER (PARTITION BY customer ORDER BY id) AS n FROM orders",
    "distinct-aggregate": "SELECT customer, count(DISTINCT id) AS n FROM orders GROUP BY customer",
    "distinct-aggregates": "SELECT count(DISTINCT id) AS n, count(DISTINCT customer) AS m FROM orders",
    "aggregate-of-what-retracts": "SELECT percentile(id, 0.5) AS middle FROM customers",
    "query-in-an-expression": "SELECT id, (SELECT max(id) FROM customers) AS newest FROM orders",
    "values": "SELECT * FROM VALUES (1), (2) AS numbers (n)",
    "limit": "SELECT id FROM orders LIMIT 3",
    "explode": "SELECT explode(array(id, customer)) AS each FROM orders",
    "no-relation": "SELECT 1 AS one",
    "unknown-column": "SELECT costumer FROM orders",
    "unknown-relation": "SELECT id FROM nowhere",
    "syntax": "SELECT id FRO orders",
    "itself": "SELECT id FROM refused",
}


@pytest.mark.parametrize("name", QUERIES)
def test_a_query_is_refused(spark: SparkSession, name: str) -> None:
    spark.catalog.dropTempView("refused")  # the test before may have left it
    with refused(f"engine/refused-{name}"):
        compiled(spark, pipeline_of(RELATIONS.format(query=QUERIES[name]), name="shop"))
