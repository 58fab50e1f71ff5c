"""The conformance cases in tests/cases, on the engine: what a view holds after every step is what Spark batch says.

`python -m tests.fill FILE...` writes what cases want, `penstock test --batch tests/cases` checks it.
"""

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from penstock.app.testing import Outcome, cases_in
from penstock.app.testing.bench import Ground
from penstock.app.testing.how import QUICK, How
from penstock.app.testing.running import Hall

CASES = Path(__file__).parent / "cases"
HELD = tuple(sorted(path.stem for path in CASES.glob("*.yaml")))
FEWEST = 300


@pytest.mark.timeout(3600)
@pytest.mark.parametrize("name", HELD)
def test_the_cases_hold(spark: SparkSession, tmp_path: Path, name: str) -> None:
    outcomes: list[Outcome] = []
    cases = cases_in([CASES / f"{name}.yaml"])
    Hall(Ground(spark, QUICK), tmp_path, How(master="local[2]")).play(cases, outcomes.append)
    assert len(outcomes) == len(cases)
    assert [f"{each.case.name}: {each.reason}" for each in outcomes if not each.passed] == []


def test_there_are_many_cases_and_no_two_have_one_name() -> None:
    names = [case.name for case in cases_in([CASES])]
    assert len(names) >= FEWEST
    assert {name for name in names if names.count(name) > 1} == set()


@pytest.mark.parametrize("word", ["restart", "null", "stream", "bag", "outer", "window", "limit", "distinct", "crash"])
def test_every_kind_is_among_them(word: str) -> None:
    assert any(word in case.tags for case in cases_in([CASES]))
