"""The recipes of the documentation do what they say: each is a case, played on the engine, in SQL and in Python."""

import re
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from penstock.app.testing import Outcome, cases_in
from penstock.app.testing.bench import Ground
from penstock.app.testing.how import QUICK, How
from penstock.app.testing.running import Hall
from penstock.engine.compile import compiled
from penstock.model import load_pipeline

PAGE = (Path(__file__).parents[1] / "docs/recipes.md").read_text()
CASES = re.findall(r"^```yaml\n(.*?)^```$", PAGE, re.DOTALL | re.MULTILINE)
CHAPTERS = [chapter for chapter in PAGE.split("\n## ")[1:] if "```python\n" in chapter]
KINDS = ("yaml", "python")
VIEW = re.compile(r"^CREATE VIEW \w+ AS\n.*?;$", re.DOTALL | re.MULTILINE)


@pytest.mark.spark
def test_the_recipes_hold(spark: SparkSession, tmp_path: Path) -> None:
    file = tmp_path / "recipes.yaml"
    file.write_text("---\n".join(CASES))
    outcomes: list[Outcome] = []
    Hall(Ground(spark, QUICK), tmp_path, How(master="local[2]")).play(cases_in([file]), outcomes.append)
    assert len(outcomes) == len(CASES) > 0
    assert [f"{each.case.name}: {each.reason}" for each in outcomes if not each.passed] == []


@pytest.mark.spark
@pytest.mark.parametrize("chapter", CHAPTERS, ids=lambda chapter: chapter.partition("\n")[0])
def test_a_view_in_python_has_the_columns_of_the_one_in_sql(spark: SparkSession, tmp_path: Path, chapter: str) -> None:
    [case], [python] = (re.findall(rf"^```{kind}\n(.*?)^```$", chapter, re.DOTALL | re.MULTILINE) for kind in KINDS)
    [sql] = [each.pipeline for each in cases_in([_written(tmp_path / "case.yaml", case)])]
    schemas = []
    for number, files in enumerate(({"all.sql": sql}, {"relations.sql": VIEW.sub("", sql), "views.py": python})):
        folder = tmp_path / str(number)
        folder.mkdir()
        for name, text in files.items():
            _written(folder / name, text)
        schemas.append({name: schema.json() for name, schema in compiled(spark, load_pipeline(folder)).schemas.items()})
    assert schemas[0] == schemas[1] != {}


def _written(path: Path, text: str) -> Path:
    path.write_text(text)
    return path
