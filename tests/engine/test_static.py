"""Files that views read: once, when a lineage begins; what they were is part of what the pipeline is."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from penstock.engine.explain import explained
from penstock.engine.plantext import plan_text
from penstock.log import Record
from tests.engine.conftest import Bench
from tests.engine.test_python_functions import PythonBench
from tests.texts import assert_golden, refused

pytestmark = pytest.mark.spark
ORDERS = "CREATE TABLE orders (id BIGINT PRIMARY KEY, city STRING, amount BIGINT);"


class Files:
    """Rates as parquet, countries as CSV, and a pipeline that reads both."""

    def __init__(self, folder: Path) -> None:
        self.rates, self.countries = folder / "rates.parquet", folder / "countries.csv"
        self.write_rates(Rome=2, Oslo=3)
        self.countries.write_text("Rome,Italy\nOslo,Norway\nBern,\n")

    def write_rates(self, **rates: int) -> None:
        pq.write_table(pa.table({"city": list(rates), "rate": list(rates.values())}), self.rates)

    def declared(self) -> str:
        return f"""{ORDERS}
            CREATE VIEW rated AS SELECT o.id, o.amount * r.rate AS rated, c._c1 AS country FROM orders o
              LEFT JOIN parquet.`{self.rates}` r ON o.city = r.city JOIN csv.`{self.countries}` c ON o.city = c._c0;
            CREATE VIEW unsold AS SELECT city FROM parquet.`{self.rates}` WHERE city NOT IN (SELECT city FROM orders);
        """


@pytest.fixture
def files(tmp_path: Path) -> Files:
    return Files(tmp_path)


def order(number: int, city: str, amount: int) -> dict[str, Any]:
    return {"id": number, "city": city, "amount": amount}


def test_files_are_joined_under_changes_and_restarts(bench: Callable[..., Bench], files: Files) -> None:
    made = bench(files.declared())
    made.append({"orders": [order(1, "Rome", 10), order(2, "Bern", 1), order(3, "Lima", 5)]})
    made.drain()
    made.check()
    assert made.content("unsold") == [{"city": "Oslo"}]
    made.start()
    made.append({"orders": [order(2, "Oslo", 4), Record({"id": 1}, deleted=True)]})
    made.drain()
    made.check()
    assert made.content("rated") == [{"id": 2, "rated": 12, "country": "Norway"}]
    assert made.content("unsold") == [{"city": "Rome"}]


def test_explain_says_which_files_are_read_and_when(bench: Callable[..., Bench], files: Files, tmp_path: Path) -> None:
    ready = bench(files.declared()).ready
    text = plan_text(explained(ready.pipeline, ready.compiled, ready.query.layout))
    assert_golden("engine/explain-files", text.replace(str(tmp_path), "FOLDER"))


def test_a_changed_file_is_a_changed_pipeline(bench: Callable[..., Bench], files: Files, tmp_path: Path) -> None:
    made = bench(files.declared())
    made.append({"orders": [order(1, "Rome", 10)]})
    made.drain()
    files.write_rates(Rome=2, Oslo=3, Lima=4)
    with refused("engine/changed-a-file", folder=tmp_path):
        made.start()


def test_a_torn_file_is_refused_before_anything_runs(bench: Callable[..., Bench], files: Files, tmp_path: Path) -> None:
    whole = files.rates.read_bytes()
    for left, golden in ((0, "empty"), (100, "torn"), (len(whole) - 4, "torn")):
        files.rates.write_bytes(whole[:left])
        with refused(f"engine/static-{golden}", folder=tmp_path):
            bench(files.declared())
    files.rates.unlink()
    with refused("engine/static-missing", folder=tmp_path):
        bench(files.declared())


PYTHON = """\
import penstock as ps

ps.stream("orders", "id BIGINT, city STRING")


@ps.view
def rated(spark):
    rates = spark.read.parquet("{rates}")
    countries = spark.read.csv("{countries}", schema="city STRING, country STRING")
    return spark.table("orders").join(rates, "city").join(countries, "city")
"""


def test_a_view_in_python_reads_files_too(spark: SparkSession, files: Files, tmp_path: Path) -> None:
    text = PYTHON.format(rates=files.rates, countries=files.countries)
    made = PythonBench(spark, tmp_path, text)
    made.append({"orders": [{"id": 1, "city": "Oslo"}, {"id": 2, "city": "Bern"}]})
    made.drain()
    made.check()
    assert made.content("rated") == [{"city": "Oslo", "id": 1, "rate": 3, "country": "Norway"}]
    files.rates.write_bytes(files.rates.read_bytes()[:100])
    with refused("engine/static-torn-in-python", folder=tmp_path):
        made.start()
    made.log.close()


def test_a_file_that_is_damaged_inside_is_refused_when_it_is_read(
    bench: Callable[..., Bench], files: Files, tmp_path: Path
) -> None:
    """Its end, which says what columns it has, is whole."""
    whole = files.rates.read_bytes()
    files.rates.write_bytes(whole[:4] + bytes(40) + whole[44:])
    made = bench(files.declared())
    with refused("engine/static-damaged", folder=tmp_path):
        made.drain()
    assert made.log.last("test/1") is None


MADE = """\
import penstock as ps

ps.stream("orders", "id BIGINT, city STRING")


@ps.view
def rated(spark):
    rates = spark.createDataFrame([("Oslo", {rate}), (None, 1)], "city STRING, rate INT")
    return spark.table("orders").join(rates, "city", "left")
"""


def test_rows_that_a_program_makes_are_known_again(spark: SparkSession, tmp_path: Path) -> None:
    made = PythonBench(spark, tmp_path, MADE.format(rate=3))
    made.append({"orders": [{"id": 1, "city": "Oslo"}]})
    made.drain()
    made.start()
    made.append({"orders": [{"id": 2, "city": "Bern"}]})
    made.drain()
    made.check()
    assert [each["rate"] for each in made.content("rated")] == [3, None]
    with refused("engine/changed-rows", folder=tmp_path):
        made.declare(MADE.format(rate=4))
    made.log.close()
