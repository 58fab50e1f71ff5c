"""Killed at any moment, a run on Kafka goes on: readers of committed records see no change twice, and none is missing.

The soak kills forty runs; continuous integration three of them, of one story. Seeds, deaths and outcomes of all stories
are in results/kafka_kills.json, which a soak of all of them writes.
"""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Any

import pytest
from pyspark.sql import SparkSession

from penstock.engine.stages import Stage
from penstock.log.kafka import OrderedKafkaLog
from services.kafka import Cluster
from tests.effort import SOAK
from tests.engine.business import SETTINGS
from tests.engine.crashing import Death, drained, run_and_die, write_stories
from tests.engine.shop import DECLARATIONS, Shop
from tests.log.kafka.test_order import read_committed

RESULTS = Path(__file__).parents[1] / "results" / "kafka_kills.json"
SEEDS = range(1, 6) if SOAK else range(1, 2)
MOMENTS = 3
KILLS = len(Stage) + MOMENTS if SOAK else 3
pytestmark = [pytest.mark.spark, pytest.mark.timeout(3600)]


WATERMARK = "watermark = '5 seconds'"


@dataclass
class KafkaShop(Shop):
    """Its orders come in three partitions, each with a watermark of its own."""

    servers: str = ""
    prefix: str = ""

    declarations = DECLARATIONS.replace(WATERMARK, f"{WATERMARK}, watermark_by = 'partition', partitions = 3")
    partitions = 3

    @contextmanager
    def opened(self) -> Iterator[Any]:
        """As a program beside the runs has it: it writes to the sources, and admits nothing."""
        with OrderedKafkaLog.open(self.servers, prefix=self.prefix) as log:
            self.create_topics(log)  # type: ignore[arg-type]
            yield log


@pytest.fixture(scope="module")
def stories() -> Iterator[list[dict[str, Any]]]:
    """What is known of the stories; after a soak of all of them it becomes the result."""
    told: list[dict[str, Any]] = []
    yield told
    if SOAK and len(told) == len(SEEDS):
        write_stories(RESULTS, told)


def made(folder: Path, seed: int, kafka: Cluster, prefix: str) -> KafkaShop:
    folder.mkdir()
    shop = KafkaShop(folder, Random(seed), SETTINGS, servers=kafka.servers, prefix=prefix)
    shop.settings = {"log": f"kafka://{kafka.servers}/{prefix}", **SETTINGS}
    shop.declare(max_records_per_batch=8)
    return shop


def deaths(random: Random) -> list[Death]:
    """Every stage once, and some moments that nobody chose, or the first of these; where Python dies alone, Java is
    there a while longer.
    """
    found = [Death(stage, count=random.randrange(1, 4), alone=random.random() < 0.4) for stage in Stage]
    found += [Death(seconds=random.uniform(0, 4), alone=random.random() < 0.4) for _ in range(MOMENTS)]
    return random.sample(found, len(found))[:KILLS]


def check_committed(shop: KafkaShop, kafka: Cluster, views: list[str]) -> None:
    """What a program sees that knows nothing of Penstock: every record of every batch, once, and all that there are."""
    seen: dict[int, dict[int, int]] = {}
    for name in [*views, "dead-letters", "sold-late", "visits-late"]:
        for message in read_committed(kafka, shop.prefix + shop.topic(name)):
            headers = {key: value.decode() for key, value in message.headers() or () if key.startswith("penstock.")}
            index, count = map(int, headers["penstock.index"].split("/"))
            batch = seen.setdefault(int(headers["penstock.sequence"]), {})
            assert index not in batch, f"{name}: {headers} is there twice"
            batch[index] = count
    for number, found in seen.items():
        assert set(found.values()) == {len(found)}, f"batch {number} is not whole"


@pytest.mark.parametrize("seed", SEEDS)
def test_runs_on_kafka_that_are_killed_lose_nothing_and_double_nothing(
    seed: int, tmp_path: Path, spark: SparkSession, kafka: Cluster, prefix: str, stories: list[dict[str, Any]]
) -> None:
    kills = list[dict[str, Any]]()
    stories.append({"seed": seed, "kills": kills, "outcome": "not equal to the oracle"})
    shop = made(tmp_path / "shop", seed, kafka, prefix)
    with shop.opened() as log:
        shop.append(log, frames=10)
        for death in deaths(Random(seed)):
            kills.append({**death.told(), "batch": run_and_die(shop, log, death)})
        code, said = drained(shop)
        assert code == 0, said
        log.settle()
        shop.check_end(log, spark)
        check_committed(shop, kafka, [view.name for view in shop.pipeline.views])
        assert all(each.largest_time for each in log.describe("orders").partitions)
    assert json.loads((shop.home / "mirror" / "kafka.json").read_text())["prefix"] == prefix
    stories[-1]["outcome"] = "equal to the oracle"
