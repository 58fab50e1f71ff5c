"""The reference tells the truth: declared pipelines compile, and SQL is kept or refused as its page says."""

import re
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from penstock.engine.compile import compiled
from penstock.errors import EngineError
from penstock.model import load_pipeline, pipeline_of

DOCS = Path(__file__).parents[1] / "docs/reference"
SQL = (DOCS / "sql.md").read_text()
FENCE = re.compile(r"^```(sql|python)\n(.*?)^```$", re.DOTALL | re.MULTILINE)
ROW = re.compile(r"^\| (?!construct)([^|]+?) \| `([^`]+)` \|$", re.MULTILINE)
SUFFIXES = {"sql": "sql", "python": "py"}
OTHER = """
    CREATE VIEW orders_by_city AS
      SELECT city, count(*) AS orders FROM orders JOIN customers ON customer = customers.id GROUP BY city;
"""


def examples(chapter: str) -> list[tuple[str, str]]:
    """Construct and query of every line of a chapter."""
    text = SQL.partition(f"## {chapter}\n")[2].partition("\n## ")[0]
    return ROW.findall(text)


def compile_view(spark: SparkSession, query: str) -> None:
    [(_, relations)] = FENCE.findall(SQL)
    for left in ("example", "orders_by_city"):  # by the test before
        spark.catalog.dropTempView(left)
    compiled(spark, pipeline_of(f"{relations} {OTHER} CREATE VIEW example AS {query};", name="shop"))


@pytest.mark.parametrize(("construct", "query"), examples("Kept"))
def test_what_is_kept_compiles(spark: SparkSession, construct: str, query: str) -> None:
    compile_view(spark, query)


@pytest.mark.parametrize(("construct", "query"), [*examples("Not kept yet"), *examples("Never kept")])
def test_what_is_not_kept_is_refused(spark: SparkSession, construct: str, query: str) -> None:
    with pytest.raises(EngineError, match='view "example" uses '):
        compile_view(spark, query)


PIPELINES = [found for page in ("declarations.md", "time.md") for found in FENCE.findall((DOCS / page).read_text())]


@pytest.mark.parametrize(("language", "text"), PIPELINES)
def test_every_declared_pipeline_compiles(spark: SparkSession, language: str, text: str, tmp_path: Path) -> None:
    tmp_path.joinpath(f"pipeline.{SUFFIXES[language]}").write_text(text)
    pipeline = load_pipeline(tmp_path)
    for view in pipeline.views:
        spark.catalog.dropTempView(view.name)
    compiled(spark, pipeline)


def test_the_page_is_read_as_it_is_written() -> None:
    lines = re.findall(r"^\| .*`(?:SELECT|WITH) .*\|$", SQL, re.MULTILINE)
    assert sum(len(examples(chapter)) for chapter in ("Kept", "Not kept yet", "Never kept")) == len(lines) > 0
