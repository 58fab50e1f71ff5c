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
    "rand": "SELECT id,\n    rand() AS chance FROM orders",
    "current-timestamp": "SELECT id, current_timestamp() AS now FROM orders",
    "current-date": "SELECT id FROM orders WHERE current_date() > DATE '2024-01-01'",
    "kll-sketch": "SELECT kll_sketch_agg_bigint(id) AS sketch FROM orders",
    "several-rows-in-an-expression": "SELECT id, (SELECT city FROM customers c WHERE c.id < o.id) FROM orders o",
    "sample": "SELECT id FROM orders TABLESAMPLE (10 PERCENT) REPEATABLE (1)",
    "as-of-join-without-match": "SELECT city FROM orders ASOF JOIN customers ON orders.id = customers.id",
    "recursion": "WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 9) SELECT i FROM n",
    "recursion-over-a-table": """WITH RECURSIVE up AS (SELECT id FROM customers UNION ALL
    SELECT o.id FROM up JOIN orders o ON o.customer = up.id) SELECT id FROM up""",
    "unknown-column": "SELECT costumer FROM orders",
    "unknown-relation": "SELECT id FROM nowhere",
    "syntax": "SELECT id FRO orders",
    "itself": "SELECT id FROM refused",
    "a-value-that-fails": """SELECT o.id, label FROM orders o
    JOIN (SELECT n, CAST(raise_error('no label') AS STRING) AS label FROM VALUES (1) AS labels (n)) ON o.id = n""",
    "group-by-a-collation": "SELECT count(*) AS n FROM customers GROUP BY city COLLATE UNICODE_CI",
    "distinct-under-a-collation": "SELECT count(DISTINCT city COLLATE UTF8_LCASE) AS n FROM customers",
    "a-column-under-a-collation": "SELECT id, city COLLATE UTF8_LCASE AS town FROM customers",
    "a-hidden-name": "SELECT id, amount AS _offset FROM orders",
    "a-name-twice": "SELECT * FROM orders JOIN customers ON customer = customers.id",
}


@pytest.mark.parametrize("name", QUERIES)
def test_a_query_is_refused(spark: SparkSession, name: str) -> None:
    spark.catalog.dropTempView("refused")  # the test before may have left it
    with refused(f"engine/refused-{name}"):
        compiled(spark, pipeline_of(RELATIONS.format(query=QUERIES[name]), name="shop"))


def test_a_product_that_was_forbidden_is_refused_as_the_views(spark: SparkSession) -> None:
    strict = spark.newSession()
    strict.conf.set("spark.sql.crossJoin.enabled", "false")
    with refused("engine/refused-a-forbidden-product"):
        compiled(strict, pipeline_of(RELATIONS.format(query="SELECT city FROM orders, customers"), name="shop"))
