"""After a power failure the checkpoint has what the log's frames rely on, and a store that lost something reads on.

A disk that loses what it has synced is beyond that; then a run goes on rightly all the same, or is refused.
"""

import runpy
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from random import Random

import pytest
from pyspark.sql import SparkSession

from penstock.engine.run import Run, prepared
from penstock.engine.session import KERNEL
from penstock.engine.stages import Stage
from penstock.errors import EngineError
from penstock.views import SqliteStore, catch_up
from tests.effort import SOAK
from tests.engine.crashing import Death, drained, run_and_die
from tests.engine.power import Watched, needed
from tests.engine.shop import SETTINGS, Shop

ROOT = Path(__file__).parent.parent.parent
SEEDS = range(1, 9) if SOAK else range(1, 2)
LIES = 60 if SOAK else 4
pytestmark = [pytest.mark.spark, pytest.mark.timeout(3600)]


@pytest.fixture(scope="session")
def watched_files(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The classes of the watched disk, compiled against the kernel."""
    build = runpy.run_path(str(ROOT / "kernel" / "build.py"))
    classes = tmp_path_factory.mktemp("watched")
    jars = f"{build['pyspark_jars']()}/*:{KERNEL}"
    sources = map(str, (ROOT / "kernel" / "test" / "penstock" / "kernel" / "engine").glob("Watched*.scala"))
    compiler = ["scala.tools.nsc.Main", "-usejavacp", "-d", str(classes), *sources]
    subprocess.run([build["java"](), "-Xss8m", "-XX:TieredStopAtLevel=1", "-cp", jars, *compiler], check=True)
    return classes


@pytest.fixture
def make(tmp_path: Path, watched_files: Path) -> Callable[[int], tuple[Shop, Path]]:
    """A shop whose runs write to a watched disk, and the folder of its journal."""

    def made(seed: int) -> tuple[Shop, Path]:
        options = f"{SETTINGS['spark.driver.extraJavaOptions']} -Dpenstock.watched={tmp_path / 'watched'}"
        ours = {
            "spark.driver.extraClassPath": str(watched_files),
            "spark.driver.extraJavaOptions": options,
            "spark.hadoop.fs.file.impl": "penstock.kernel.engine.WatchedFiles",
        }
        return Shop.made(tmp_path / "shop", seed, {**SETTINGS, **ours}), tmp_path / "watched"

    return made


def check_safe(watched: Watched, checkpoint: Path) -> None:
    """Everything that a frame relies on, of every kind, has been synced."""
    relied_on = list(needed(checkpoint))
    kinds = {path.suffix or path.relative_to(checkpoint).parts[0] for path in relied_on}
    assert kinds >= {"offsets", "commits", "metadata", "state", ".changelog", ".zip", ".sst"}
    assert [path for path in relied_on if not watched.is_safe(path)] == []


class Copies:
    """Copies of the store, of which one may take its place."""

    def __init__(self, shop: Shop, folder: Path) -> None:
        self._shop = shop
        self._folder = folder
        self._count = 0

    def lose(self, random: Random) -> None:
        """The store stays, or becomes an older one, or is gone."""
        self._count += 1
        files = list(self._shop.home.glob("views.sqlite*"))
        copy = self._folder / str(self._count)
        copy.mkdir(parents=True)
        for file in files:
            shutil.copy(file, copy)
        chosen = random.randrange(self._count + 1)
        for file in files:
            file.unlink()
        for file in (self._folder / str(chosen)).glob("*") if chosen else ():
            shutil.copy(file, self._shop.home)


@pytest.mark.parametrize("seed", SEEDS)
def test_a_power_failure_takes_nothing_that_a_frame_relies_on(
    seed: int, make: Callable[[int], tuple[Shop, Path]], tmp_path: Path, spark: SparkSession
) -> None:
    random, (shop, journal) = Random(seed), make(seed)
    copies, checkpoint = Copies(shop, tmp_path / "copies"), shop.lineage / "checkpoint"
    stages = random.sample([Stage.STATE_COMMITTED, Stage.FRAMED, Stage.COMMITTING, Stage.PLANNED], 4 if SOAK else 1)
    with shop.opened() as log:
        shop.append(log, frames=20)
        for death in [
            *(Death(stage, count=random.randrange(5, 8)) for stage in stages),
            Death(seconds=random.uniform(1, 5)),
        ]:
            watched = Watched(checkpoint, journal)
            run_and_die(shop, log, death)
            watched.read()
            if death.stage is not None:
                check_safe(watched, checkpoint)
            watched.image(tmp_path / "image", random)
            shutil.rmtree(checkpoint)
            (tmp_path / "image").rename(checkpoint)
            copies.lose(random)
        assert drained(shop)[0] == 0
        shop.check_end(log, spark)


def run_here(shop: Shop, spark: SparkSession, *, anew: bool = False) -> None:
    """A run to the end of the log in this process, as `penstock run --once` does it, after a reset if it is `anew`."""
    session = spark.newSession()
    with shop.opened() as log:
        ready = prepared(session, shop.pipeline, log, shop.home, anew=anew)
        run = Run(session, log, shop.home, ready, lambda _: None)
        run.wait(run.start(once=True))
        with SqliteStore(shop.store) as store:
            catch_up(log, "shop", store)


def check_refused(shop: Shop, error: EngineError, batches: int, spark: SparkSession) -> None:
    """The error says what to do, the answers are as they were, and what the error says helps."""
    assert error.primary and "penstock reset PIPELINE" in error.hint, error
    with shop.opened() as log:
        assert len(shop.batches(log)) == batches
        shop.check_store(log)
        run_here(shop, spark, anew=True)
        shop.check_end(log, spark, lineage=2)


def test_a_disk_that_lies_never_makes_an_answer_wrong(
    make: Callable[[int], tuple[Shop, Path]], tmp_path: Path, spark: SparkSession
) -> None:
    random, (shop, journal) = Random(0), make(0)
    with shop.opened() as log:
        shop.append(log, frames=20)
        watched = Watched(shop.lineage / "checkpoint", journal)
        run_and_die(shop, log, Death(Stage.COMMITTING, count=8))
        batches = len(shop.batches(log))
    for number in range(LIES):
        lied_to = shop.copied(tmp_path / str(number) / "shop")
        watched.read(honest=random.uniform(0.2, 1.0))
        watched.image(lied_to.lineage / "checkpoint", random)
        with lied_to.opened() as log:
            lied_to.append(log, frames=3)
            try:
                run_here(lied_to, spark)
                lied_to.check_end(log, spark)
            except EngineError as error:
                print(number, error)
                check_refused(lied_to, error, batches, spark)
