"""Cases of other systems' test suites, in the format of `penstock test`: they hold, all of them.

They are no part of this repository: they are played where they lie in a folder beside it.
"""

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from penstock.app.testing import Outcome, cases_in
from penstock.app.testing.bench import Ground
from penstock.app.testing.how import QUICK, How
from penstock.app.testing.running import Hall
from tests.effort import sample

PEERS = Path(__file__).parents[2] / "shared" / "peers" / "cases"
FILES = ("duckdb-asof", "feldera", "flink", "flink-time", "risingwave", "risingwave-time")
FEW = 10
"""Of each file, outside of `make soak`."""
ALWAYS = ("feldera Regression1Tests.issue5293 1",)
"""An IN over constants as a column, which was not planned once."""


@pytest.mark.timeout(3600)
@pytest.mark.skipif(not PEERS.is_dir(), reason=f"there is no folder {PEERS.relative_to(PEERS.parents[2])} beside it")
@pytest.mark.parametrize("name", FILES)
def test_the_cases_of_others_hold(spark: SparkSession, tmp_path: Path, name: str) -> None:
    cases = {case.name: case for case in cases_in([PEERS / f"{name}.jsonl"])}
    chosen = [cases[each] for each in sample(list(cases), FEW, always=[each for each in ALWAYS if each in cases])]
    outcomes: list[Outcome] = []
    Hall(Ground(spark, QUICK), tmp_path, How(master="local[2]")).play(chosen, outcomes.append)
    assert len(outcomes) == len(chosen)
    assert [f"{each.case.name}: {each.reason}" for each in outcomes if not each.passed] == []
