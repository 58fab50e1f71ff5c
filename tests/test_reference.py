"""The reference tells the truth: declared pipelines compile, SQL is kept or refused, cases hold, as its pages say."""

import re
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from penstock.app.testing import Outcome, cases_in
from penstock.app.testing.bench import Ground
from penstock.app.testing.how import QUICK, How
from penstock.app.testing.running import Hall
from penstock.cli.test import Teller, closing_line, failure_text
from penstock.engine.compile import compiled
from penstock.errors import EngineError
from penstock.model import load_pipeline, pipeline_of
from tests.test_readme import commands

DOCS = Path(__file__).parents[1] / "docs/reference"
SQL = (DOCS / "sql.md").read_text()
TESTS = (DOCS / "test.md").read_text()
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


def blocks(language: str) -> list[str]:
    """Those of the page on tests."""
    return re.findall(rf"^```{language}\n(.*?)^```$", TESTS, re.DOTALL | re.MULTILINE)


def told(spark: SparkSession, file: Path, text: str) -> str:
    """What `penstock test FILE` says of a case file in the current folder with this text."""
    file.write_text(text)
    cases = cases_in([file])
    outcomes: list[Outcome] = []
    Hall(Ground(spark, QUICK), Path.cwd(), How(master="local[2]")).play(cases, outcomes.append)
    lines = [failure_text(each) for each in outcomes if not each.passed]
    teller = Teller(cases, lines.append, live=False)
    for outcome in outcomes:
        teller.take(outcome)
    return "".join([*lines, closing_line(outcomes), "\n"])


def test_the_cases_of_the_page_on_tests_hold_and_fail_as_it_says(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    spend, visits = blocks("yaml")
    [[(command, said)]] = [list(commands(block)) for block in blocks("console")]
    assert (command, told(spark, Path("spend.yaml"), spend)) == ("penstock test spend.yaml", said)
    assert told(spark, Path("visits.yaml"), visits) == said.replace("spend", "visits")
    [failure] = blocks("text")
    wrong = spend.replace("[1, Oslo, 17.50]", "[1, Oslo, 17.00]")
    # Progress goes elsewhere.
    assert told(spark, Path("spend.yaml"), wrong).replace("spend.yaml: 0 passed, 1 failed\n", "") == failure
