"""Killed at any moment, a run leaves a log and a checkpoint with which the next one goes on.

Nothing is lost, nothing is there twice, and in the end topics and store equal Spark's own answer, and that of a run
which nobody kills. A story is one shop at a market, whose run is killed again and again, sometimes with the power for
its checkpoint; seeds, deaths and outcomes of all stories are in results/kills.json, which a soak writes.
"""

from collections.abc import Iterator
from pathlib import Path
from random import Random
from typing import Any

import pytest
from pyspark.sql import SparkSession

from penstock.engine.stages import Stage
from penstock.log import Log
from tests.effort import SOAK
from tests.engine.crashing import Death, drained, run_and_die, write_stories
from tests.engine.market import Market
from tests.engine.power import Watched, watched

RESULTS = Path(__file__).parent / "results" / "kills.json"
SEEDS = range(1, 9) if SOAK else range(1, 2)
MOMENTS = 2 if SOAK else 1
pytestmark = [pytest.mark.spark, pytest.mark.timeout(3600)]


@pytest.fixture(scope="module")
def stories() -> Iterator[list[dict[str, Any]]]:
    """What is known of the stories; after a soak it becomes the result."""
    told: list[dict[str, Any]] = []
    yield told
    if SOAK:
        write_stories(RESULTS, told)


def deaths(random: Random) -> list[Death]:
    """Every stage once, and some moments that nobody chose; where Python dies alone, Java is there a while longer."""
    found = [Death(stage, count=random.randrange(1, 5), alone=random.random() < 0.4) for stage in Stage]
    found += [Death(seconds=random.uniform(0, 6), alone=random.random() < 0.4) for _ in range(MOMENTS)]
    return random.sample(found, len(found))


def check_after_death(shop: Market, log: Log, death: Death, batch: int | None) -> None:
    """What lies on disk is what the stage says of the batch, which an earlier run may have brought further."""
    framed, stored, checkpoint = len(shop.batches(log)) - 1, shop.check_store(log), shop.lineage / "checkpoint"
    if death.stage is None or batch is None:
        return
    if death.stage is Stage.STORED:  # in a thread of its own: Spark may be further
        assert framed >= stored >= batch
        return
    assert framed in ((batch - 1, batch) if death.stage in (Stage.PLANNED, Stage.STATE_COMMITTED) else (batch,))
    assert (checkpoint / "offsets" / str(batch)).exists() and not (checkpoint / "commits" / str(batch)).exists()
    if death.stage is not Stage.PLANNED:
        states = [path for path in (checkpoint / "state").glob("[0-9]*/[0-9]*") if path.is_dir()]
        assert states and all((path / f"{batch + 1}.changelog").exists() for path in states)


def fail_power(disk: Watched, death: Death, random: Random) -> None:
    disk.read()
    if death.stage not in (None, Stage.STORED):  # nothing is being written there but what nobody relies on
        assert disk.unsafe() == []
    disk.fail(random)


@pytest.mark.parametrize("seed", SEEDS)
def test_runs_that_are_killed_lose_nothing_and_double_nothing(
    seed: int, tmp_path: Path, spark: SparkSession, watched_disk: Path, stories: list[dict[str, Any]]
) -> None:
    random, kills = Random(seed), list[dict[str, Any]]()
    stories.append({"seed": seed, "kills": kills, "outcome": "not equal to the oracle"})
    shop = Market.made(tmp_path / "shop", seed, watched(watched_disk, tmp_path / "watched"))
    with shop.opened() as log:
        shop.append(log, frames=10)
        for death in deaths(random):
            disk = Watched(shop.lineage / "checkpoint", tmp_path / "watched")
            batch = run_and_die(shop, log, death)
            kills.append({**death.told(), "batch": batch, "power fails": False})
            if death.alone:
                shop.batches(log)
                continue
            check_after_death(shop, log, death, batch)
            if random.random() < 0.5:
                kills[-1]["power fails"] = True
                fail_power(disk, death, random)
        assert drained(shop)[0] == 0
        shop.check_end(log, spark)
    stories[-1]["outcome"] = "equal to the oracle"
