"""Killed at any moment, a run leaves a log and a checkpoint with which the next one goes on.

Nothing is lost, nothing is there twice, and in the end topics and store equal Spark's own answer. A story is one shop,
whose run is killed again and again; seeds, deaths and outcomes of all stories are in results/kills.json, which a soak
writes.
"""

import json
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from random import Random
from typing import Any

import pytest
from pyspark.sql import SparkSession

from penstock.engine.stages import Stage
from penstock.log import Log
from tests.effort import SOAK
from tests.engine.crashing import Death, drained, run_and_die
from tests.engine.shop import Shop

RESULTS = Path(__file__).parent / "results" / "kills.json"
SEEDS = range(1, 10) if SOAK else range(1, 2)
MOMENTS = 3 if SOAK else 1
pytestmark = [pytest.mark.spark, pytest.mark.timeout(3600)]


@pytest.fixture(scope="module")
def stories() -> Iterator[list[dict[str, Any]]]:
    """What is known of the stories; after a soak it becomes the result."""
    told: list[dict[str, Any]] = []
    yield told
    if SOAK:
        hits = Counter(kill["at"] for story in told for kill in story["kills"])
        RESULTS.parent.mkdir(exist_ok=True)
        RESULTS.write_text(json.dumps({"hits": hits, "stories": told}, indent=1) + "\n")


def deaths(random: Random) -> list[Death]:
    """Every stage once, and some moments that nobody chose."""
    found = [Death(stage, count=random.randrange(1, 5)) for stage in Stage]
    found += [Death(seconds=random.uniform(0, 6)) for _ in range(MOMENTS)]
    return random.sample(found, len(found))


def check_place_of_death(shop: Shop, log: Log, stage: Stage, batch: int) -> None:
    """What lies on disk is what the stage says of the batch, which an earlier run may have brought further."""
    framed, checkpoint = len(shop.batches(log)) - 1, shop.lineage / "checkpoint"
    if stage is Stage.STORED:  # in a thread of its own: Spark may be further
        assert framed >= shop.check_store(log) >= batch
        return
    assert framed in ((batch - 1, batch) if stage in (Stage.PLANNED, Stage.STATE_COMMITTED) else (batch,))
    assert (checkpoint / "offsets" / str(batch)).exists() and not (checkpoint / "commits" / str(batch)).exists()
    if stage is not Stage.PLANNED:
        states = [path for path in (checkpoint / "state").glob("[0-9]*/[0-9]*") if path.is_dir()]
        assert states and all((path / f"{batch + 1}.changelog").exists() for path in states)


@pytest.mark.parametrize("seed", SEEDS)
def test_runs_that_are_killed_lose_nothing_and_double_nothing(
    seed: int, tmp_path: Path, spark: SparkSession, stories: list[dict[str, Any]]
) -> None:
    random = Random(seed)
    shop, kills = Shop.made(tmp_path / "shop", seed), list[dict[str, Any]]()
    stories.append({"seed": seed, "kills": kills, "outcome": "not equal to the oracle"})
    with shop.opened() as log:
        shop.append(log, frames=10)
        for death in deaths(random):
            batch = run_and_die(shop, log, death)
            kills.append(
                {"at": death.stage.value if death.stage else "any moment", "death": str(death), "batch": batch}
            )
            shop.batches(log)
            shop.check_store(log)
            if death.stage is not None:
                assert batch is not None
                check_place_of_death(shop, log, death.stage, batch)
        assert drained(shop)[0] == 0
        shop.check_end(log, spark)
    stories[-1]["outcome"] = "equal to the oracle"
