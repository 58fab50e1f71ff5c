"""A pipeline on a standalone cluster, the log on Kafka, checkpoints on a folder that all share.

Workers are killed with their executors, and the driver, which is started again elsewhere: in a folder that has nothing
but the pipeline. Nothing is lost, nothing is doubled, and the answers are those of Spark batch on one machine.
"""

import signal
from dataclasses import dataclass
from pathlib import Path
from random import Random

import pytest
from pyspark.sql import SparkSession

from penstock.engine.stages import Stage
from services.kafka import Cluster
from services.spark import SparkCluster
from tests.effort import SOAK
from tests.engine.business import SETTINGS
from tests.engine.crashing import PENSTOCK, VICTIM, Running, started
from tests.engine.kafka.test_kills import KafkaShop, check_committed

SEEDS = range(1, 11) if SOAK else range(1, 2)
DEATHS = 3 if SOAK else 1
"""Of the driver."""
STAGES = [stage for stage in Stage if stage is not Stage.STORED]
"""Where drivers die; a store, which is filled anew elsewhere, would be there before the run is ready."""
FRAMES, PACE = 30, 0.1
JAVA = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
FUNCTIONS = """\
import penstock as ps
from pyspark.sql import functions as sf
from pyspark.sql.types import StringType
from wording import loud

@sf.udf(StringType())
def label(customer):
    return loud(f"customer {customer}")

@ps.view
def labels(spark):
    return spark.table("orders").select("id", label("customer").alias("label"))
"""
QUICK = {
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    "spark.sql.adaptive.enabled": "false",
}
"""Over a few rows most of an executor's time would go into compiling."""
WORDING = "def loud(text):\n    return text.upper()\n"
pytestmark = [pytest.mark.spark, pytest.mark.timeout(3600)]


@dataclass
class ClusterShop(KafkaShop):
    def declare(self, *, max_records_per_batch: int) -> None:
        super().declare(max_records_per_batch=max_records_per_batch)
        (self.folder / "functions.py").write_text(FUNCTIONS)
        (self.folder / "wording.py").write_text(WORDING)

    def move(self, place: Path) -> None:
        """To another machine, which has the pipeline and nothing that earlier runs have left."""
        self.folder = place / self.folder.name
        self.folder.mkdir(parents=True)
        self.declare(max_records_per_batch=8)


def made(folder: Path, seed: int, kafka: Cluster, prefix: str) -> ClusterShop:
    settings = {
        "log": f"kafka://{kafka.servers}/{prefix}",
        "checkpoints": str(folder / "shared"),
        "spark.executor.memory": "512m",
        "spark.executor.extraJavaOptions": JAVA,
        **QUICK,
        **SETTINGS,
    }
    shop = ClusterShop(folder / "at 0" / "shop", Random(seed), settings, servers=kafka.servers, prefix=prefix)
    shop.folder.mkdir(parents=True)
    shop.declare(max_records_per_batch=8)
    return shop


def feed(shop: ClusterShop, log: object, run: Running, count: int) -> None:
    """Appends a while, and waits until so many batches have come to where the run tells of them, or it is dead."""
    frames = FRAMES
    while run.process.poll() is None and len(run.said()) <= count:  # that it is ready is said too
        if frames:
            shop.append(log)  # type: ignore[arg-type]
            frames -= 1
        run.lives(PACE)


@pytest.mark.parametrize("seed", SEEDS)
def test_workers_and_drivers_that_are_killed_lose_nothing_and_double_nothing(
    seed: int, tmp_path: Path, spark: SparkSession, kafka: Cluster, prefix: str, cluster: SparkCluster
) -> None:
    shop, random = made(tmp_path, seed, kafka, prefix), Random(seed)
    with shop.opened() as log:
        shop.append(log, frames=5)
        for death in range(1, DEATHS + 1):
            stage, count = random.choice(STAGES), random.randrange(7, 9)
            with started(*VICTIM, str(shop.folder), stage.value, str(count), "together", cluster.url) as run:
                run.until(lambda run=run: "ready" in run.said())  # type: ignore[misc]
                kill_workers(shop, log, run, cluster, random)
                feed(shop, log, run, count)
                assert run.wait() == -signal.SIGKILL, run.errors()
            shop.move(tmp_path / f"at {death}")
        shop.declare(max_records_per_batch=1000)
        with started(*PENSTOCK, str(shop.folder), "--once", "--master", cluster.url) as run:
            assert run.wait() == 0, run.errors()
        log.settle()
        shop.check_end(log, spark)
        check_committed(shop, kafka, [view.name for view in shop.pipeline.views])


def kill_workers(shop: ClusterShop, log: object, run: Running, cluster: SparkCluster, random: Random) -> None:
    """One goes, and the other does the work alone; when that has gone too, the run waits for others, and says so."""
    for after, worker in enumerate(random.sample(list(cluster.workers), 2), 1):
        feed(shop, log, run, after)
        run.lives(random.uniform(0, 0.5))  # in the middle of a batch, wherever that is
        cluster.kill(worker)
    run.until(lambda: f"waiting for {cluster.url}: no executor is left" in run.errors())
    cluster.start()
    run.until(lambda: f"{cluster.url} goes on" in run.errors())


@pytest.mark.skipif(not SOAK, reason="another half a minute: with PENSTOCK_SOAK=1")
def test_a_newer_driver_elsewhere_takes_over_from_one_that_lives(
    tmp_path: Path, spark: SparkSession, kafka: Cluster, prefix: str, cluster: SparkCluster
) -> None:
    shop = made(tmp_path, 0, kafka, prefix)
    shop.settings = {**shop.settings, "spark.cores.max": "1"}  # else the older has taken them all
    shop.declare(max_records_per_batch=8)
    with shop.opened() as log:
        shop.append(log, frames=5)
        with started(*VICTIM, str(shop.folder), Stage.FRAMED.value, "0", "together", cluster.url) as older:
            older.until(lambda: len(older.said()) > 2)
            shop.move(tmp_path / "at 1")
            shop.append(log, frames=5)
            with started(*PENSTOCK, str(shop.folder), "--once", "--master", cluster.url) as newer:
                assert (older.wait(), newer.wait()) == (1, 0), newer.errors()
            assert 'a newer run of pipeline "shop" has taken over' in older.errors()
        log.settle()
        shop.check_end(log, spark)
        check_committed(shop, kafka, [view.name for view in shop.pipeline.views])
