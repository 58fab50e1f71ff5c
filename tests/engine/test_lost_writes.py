"""After a power failure the checkpoint has what the log's frames rely on, and a store that lost something reads on.

A disk that loses what it has synced is beyond that; then a run goes on rightly all the same, or is refused.
"""

import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from random import Random

import pytest
from pyspark.sql import SparkSession

from penstock.engine.run import Run, prepared
from penstock.engine.stages import Stage
from penstock.errors import EngineError
from penstock.views import SqliteStore, catch_up
from tests.effort import SOAK
from tests.engine.crashing import Death, run_and_die
from tests.engine.power import Watched, needed, watched
from tests.engine.shop import Shop

STAGES = [Stage.PLANNED, Stage.STATE_COMMITTED, Stage.FRAMED, Stage.COMMITTING] if SOAK else [Stage.STATE_COMMITTED]
FAILURES, LIES = (10, 25) if SOAK else (2, 3)
pytestmark = [pytest.mark.spark, pytest.mark.timeout(3600)]


@dataclass(frozen=True)
class Killed:
    """A shop whose run was killed, with what was written to its disk; tests work on copies."""

    shop: Shop
    watched: Watched
    batches: int

    def copies(self, folder: Path, count: int) -> Iterator[tuple[Shop, Random]]:
        for number in range(count):
            yield self.shop.copied(folder / str(number) / "shop"), Random(number)


@pytest.fixture(scope="module", params=STAGES, ids=lambda stage: stage.name.lower())
def killed(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory, watched_disk: Path) -> Killed:
    folder = tmp_path_factory.mktemp("killed")
    shop = Shop.made(folder / "shop", seed=1, settings=watched(watched_disk, folder / "watched"))
    disk = Watched(shop.lineage / "checkpoint", folder / "watched")
    with shop.opened() as log:
        shop.append(log, frames=20)
        run_and_die(shop, log, Death(request.param, count=8), frames=0)
        return Killed(shop, disk, len(shop.batches(log)))


def run_here(shop: Shop, spark: SparkSession, *, anew: bool = False) -> None:
    """A run to the end of the log in this process, as `penstock run --once` does it, after a reset if it is `anew`."""
    session = spark.newSession()
    with shop.opened() as log:
        ready = prepared(session, shop.pipeline, log, shop.home, anew=anew)
        run = Run(session, log, shop.home, ready, lambda _: None)
        run.wait(run.start(once=True))
        follow(shop)


def follow(shop: Shop) -> None:
    with shop.opened() as log, SqliteStore(shop.store) as store:
        catch_up(log, "shop", store)


def lose_store(shop: Shop) -> None:
    for path in shop.home.glob("views.sqlite*"):
        path.unlink()


def test_what_a_frame_relies_on_is_synced_before_it(killed: Killed) -> None:
    checkpoint = killed.shop.lineage / "checkpoint"
    kinds = {path.suffix or path.relative_to(checkpoint).parts[0] for path in needed(checkpoint)}
    assert kinds == {"offsets", "commits", "metadata", "state", ".changelog", ".zip", ".sst"}
    killed.watched.read()
    assert killed.watched.unsafe() == []


def test_a_power_failure_loses_nothing(killed: Killed, tmp_path: Path, spark: SparkSession) -> None:
    killed.watched.read()
    for shop, random in killed.copies(tmp_path, FAILURES):
        killed.watched.image(shop.lineage / "checkpoint", random)
        shop.declare(max_records_per_batch=1000)
        if random.random() < 0.5:
            lose_store(shop)
        with shop.opened() as log:
            shop.append(log, frames=3)
            run_here(shop, spark)
            shop.check_end(log, spark)


def test_a_store_that_is_gone_or_older_reads_on(killed: Killed, tmp_path: Path, spark: SparkSession) -> None:
    [(shop, _)] = killed.copies(tmp_path, 1)
    shop.declare(max_records_per_batch=1000)
    run_here(shop, spark)
    with shop.opened() as log:
        lose_store(shop)
        for path in killed.shop.home.glob("views.sqlite*"):
            shutil.copy(path, shop.home)
        assert shop.check_store(log) < shop.batches(log)[-1].note["batch"]
        follow(shop)
        shop.check_end(log, spark)
        lose_store(shop)
        follow(shop)
        shop.check_end(log, spark)


def check_refused(shop: Shop, error: EngineError, batches: int, spark: SparkSession) -> None:
    """The answers are as they were; the error says what to do, and that helps."""
    assert "penstock reset PIPELINE" in error.hint, error
    with shop.opened() as log:
        assert len(shop.batches(log)) == batches
        shop.check_store(log)
        run_here(shop, spark, anew=True)
        shop.check_end(log, spark, lineage=2)


def test_a_disk_that_lies_never_makes_an_answer_wrong(killed: Killed, tmp_path: Path, spark: SparkSession) -> None:
    for shop, random in killed.copies(tmp_path, LIES):
        killed.watched.read(honest=random.uniform(0.2, 1.0))
        killed.watched.image(shop.lineage / "checkpoint", random)
        with shop.opened() as log:
            shop.append(log, frames=3)
            try:
                run_here(shop, spark)
                shop.check_end(log, spark)
            except EngineError as error:
                check_refused(shop, error, killed.batches, spark)
