"""Python functions: called before rows enter the graph, refused elsewhere, and part of what a pipeline is."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from penstock.engine.compile import compiled
from penstock.engine.explain import explained
from penstock.engine.plantext import plan_text
from penstock.log import Record
from penstock.model import Pipeline, load_pipeline
from tests.engine.conftest import Bench
from tests.texts import assert_golden, refused

HEAD = """\
import penstock as ps
import pandas as pd
from pyspark.sql import functions as sf

ps.stream("orders", "id BIGINT, customer STRING, amount BIGINT, tags ARRAY<STRING>")
ps.table("customers", "id STRING, name STRING, discount BIGINT", key="id")
ps.table("notes", "text STRING")

FACTOR = 2


def grown(x):
    return x * FACTOR


@sf.udf("bigint")
def twice(x):
    return None if x is None else grown(x)


@sf.udf("double")
def inverse(x):
    return 1.0 / x  # fails for 0 and for NULL


@sf.pandas_udf("string")
def loud(names: pd.Series) -> pd.Series:
    return names.str.upper()


"""
VIEWS = """
@ps.view
def rows(spark):
    orders = spark.table("orders").where("amount <> 0")
    return orders.select("id", twice("amount").alias("twice"), inverse("amount").alias("inverse"))


@ps.view
def passing(spark):
    return spark.table("orders").where(twice("amount") > 10).select("id", twice("amount").alias("twice"))


@ps.view
def nested(spark):
    four_times = twice(twice("amount")).cast("string")
    return spark.table("orders").select("id", loud(sf.concat("customer", four_times)).alias("x"))


@ps.view
def totals(spark):
    groups = spark.table("orders").groupBy("customer")
    return groups.agg(sf.sum(twice("amount")).alias("total"), sf.count("*").alias("n"))


@ps.view
def tagged(spark):
    tags = spark.table("orders").select("id", sf.explode("tags").alias("tag"))
    return tags.select("id", loud("tag").alias("tag"))


@ps.view
def either(spark):
    spark.udf.register("shout", loud)
    names = "SELECT customer AS x FROM orders UNION ALL SELECT name FROM customers UNION ALL VALUES ('v')"
    return spark.sql(f"SELECT shout(x) AS x FROM ({names})")


@ps.view
def again(spark):
    return spark.table("rows").select("id", twice("twice").alias("four_times"))


@ps.view
def customers_2(spark):
    known = spark.table("customers").where("discount <> 0 AND name IS NOT NULL")
    part = inverse("discount").alias("part")
    return known.select("id", loud("name").alias("name"), part, twice("discount").alias("d"))


@ps.view
def discounted(spark):
    found = spark.table("customers").where(twice("discount") > 4)
    return found.select("id", twice("discount").alias("d"), loud("name").alias("name"))


@ps.view
def bills(spark):
    return spark.table("totals").join(spark.table("discounted").withColumnRenamed("id", "customer"), "customer")
"""
pytestmark = pytest.mark.spark


class PythonBench(Bench):
    """The text is a Python file."""

    def declared(self, options: Mapping[str, Any]) -> Pipeline:
        folder = self.log.folder.parent / "test"
        folder.mkdir(exist_ok=True)
        (folder / "pipeline.py").write_text(self._sql)
        return load_pipeline(folder)


def order(number: int, customer: str | None, amount: int | None, *tags: str | None) -> dict[str, Any]:
    return {"id": number, "customer": customer, "amount": amount, "tags": list(tags)}


def customer(name: str, discount: int | None, *, named: bool = True) -> dict[str, Any]:
    return {"id": name, "name": f"{name} smith" if named else None, "discount": discount}


@pytest.fixture
def python(spark: SparkSession, tmp_path: Path) -> Callable[[str], PythonBench]:
    return lambda views: PythonBench(spark, tmp_path, HEAD + views)


def pipeline(folder: Path, view: str) -> Pipeline:
    (folder / "shop").mkdir()
    (folder / "shop" / "pipeline.py").write_text(HEAD + view)
    return load_pipeline(folder / "shop")


def test_functions_give_what_spark_gives_under_changes_and_restarts(python: Callable[[str], PythonBench]) -> None:
    bench = python(VIEWS)
    bench.append(
        {
            "orders": [
                order(1, "ann", 5, "a", None),
                order(2, "bob", 0),
                order(3, None, 7, "b"),
                order(4, "ann", None),
            ],
            "customers": [customer("ann", 3), customer("bob", 0), customer("cat", 9, named=False)],
        }
    )
    bench.drain()
    bench.check()
    bench.start()
    bench.append({"customers": [customer("ann", 4), customer("bob", 8), customer("cat", 1), customer("dan", 7)]})
    bench.append({"orders": [order(5, "bob", -3), order(6, "dan", 20, "c")]})
    bench.drain()
    bench.check()
    bench.start()
    bench.append({"customers": [Record({"id": "ann"}, deleted=True), customer("bob", 1), customer("cat", None)]})
    bench.append({"customers": [customer("bob", 5), Record({"id": "dan"}, deleted=True), customer("eve", 6)]})
    bench.drain()
    bench.check()
    assert {row["id"]: row["d"] for row in bench.content("discounted")} == {"bob": 10, "eve": 12}
    assert [row["four_times"] for row in bench.content("again") if row["id"] == 6] == [80]
    assert bench.checked == 3


def test_a_function_is_called_once_for_a_filter_and_its_column(spark: SparkSession, tmp_path: Path) -> None:
    orders = 'spark.table("orders").where(twice("amount") > 10)'
    view = f'@ps.view\ndef v(spark):\n    return {orders}.select(twice("amount").alias("x"))\n'
    plan = compiled(spark, pipeline(tmp_path, view))
    assert [operator.kind for operator in plan.graph.operators] == ["source", "evaluated", "view"]


def test_explain_shows_where_functions_are_called(python: Callable[[str], PythonBench]) -> None:
    bench = python(VIEWS)
    ready = bench.ready
    assert_golden("engine/explain-functions", plan_text(explained(ready.pipeline, ready.compiled, ready.query.layout)))


def test_a_function_that_fails_stops_the_batch(python: Callable[[str], PythonBench]) -> None:
    bench = python('@ps.view\ndef v(spark):\n    return spark.table("orders").select(inverse("amount"))\n')
    bench.append({"orders": [order(1, "ann", 0)]})
    with refused("engine/failed-function", folder=bench.log.folder.parent):
        bench.drain()
    assert bench.log.last("test/1") is None


CHANGES = {
    "its body": ("x * FACTOR", "x + FACTOR"),
    "a constant": ("FACTOR = 2", "FACTOR = 3"),
    "its type": ('@sf.udf("bigint")', '@sf.udf("int")'),
}


def test_a_changed_function_is_a_changed_pipeline(spark: SparkSession, tmp_path: Path) -> None:
    view = (
        '@ps.view\ndef v(spark):\n    return spark.table("orders").select(twice("amount").cast("string").alias("x"))\n'
    )
    bench = PythonBench(spark, tmp_path, HEAD + view)
    bench.drain()
    for old, new in CHANGES.values():
        bench._sql = HEAD.replace(old, new) + view
        with refused("engine/changed-a-function"):
            bench.start()
    bench._sql = HEAD.replace("\n\n\n", "\n\n# not a word\n").replace("x * FACTOR", "x  *  FACTOR  # times") + view
    bench.start()
    bench.append({"orders": [order(1, "ann", 5)]})
    bench.drain()
    bench.check()
    assert bench.content("v") == [{"x": "10"}]


REFUSED = {
    "asking-for-rows": 'spark.table("orders").limit(spark.table("orders").count())',
    "aggregate": 'spark.table("orders").groupBy("customer").count().select(twice("count"))',
    "join": 'spark.table("orders").join(spark.table("customers"), "id").select(loud("name"))',
    "window": 'spark.sql("SELECT row_number() OVER (ORDER BY id) AS n FROM orders").select(twice("n"))',
    "limit": 'spark.table("orders").orderBy("id").limit(3).select(twice("id"))',
    "bag": 'spark.table("notes").select(loud("text"))',
    "generator": 'spark.sql("SELECT explode(split(name, \' \')) AS word FROM customers").select(loud("word"))',
    "random": 'spark.table("orders").select(twice.asNondeterministic()("amount"))',
    "pandas-aggregate": 'spark.table("orders").groupBy("customer").agg(mean("amount"))',
    "pandas-rows": 'spark.table("orders").select("id").mapInPandas(lambda frames: frames, "id BIGINT")',
    "pandas-groups": 'spark.table("orders").select("id").groupBy("id").applyInPandas(lambda rows: rows, "id BIGINT")',
    "table-function": 'spark.sql("SELECT * FROM orders, LATERAL letters(customer)")',
}
MORE = """\
@sf.pandas_udf("double")
def mean(x: pd.Series) -> float:
    return x.mean()


@sf.udtf(returnType="letter STRING")
class Letters:
    def eval(self, text):
        yield from ((letter,) for letter in text)


"""


@pytest.mark.parametrize("name", REFUSED)
def test_elsewhere_a_function_is_refused_with_a_hint(spark: SparkSession, tmp_path: Path, name: str) -> None:
    register = '    spark.udtf.register("letters", Letters)\n' if name == "table-function" else ""
    made = pipeline(tmp_path, f"{MORE}@ps.view\ndef v(spark):\n{register}    return {REFUSED[name]}\n")
    with refused(f"engine/refused-function-{name}", folder=tmp_path):
        compiled(spark, made)
