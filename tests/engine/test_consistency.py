"""Views that depend on each other agree at every committed batch: money that goes from account to account adds up to 0,
also where transfers are corrected and taken back.

So it does in the store after every single frame, in the change topics folded frame by frame, and in the store that the
runs write, at whichever moment somebody looks; with random cuts, and with runs that are killed in between.
"""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from random import Random
from threading import Event

import pytest
from pyspark.sql import SparkSession

from penstock.engine.stages import Stage
from penstock.log import Log
from penstock.views import Position, SqliteStore, ViewReader, catch_up
from tests.effort import SOAK
from tests.engine.bank import VIEWS, Bank, check_balanced, stored
from tests.engine.crashing import Death, drained, run_and_die
from tests.engine.folded import Folded

SEEDS = range(1, 9) if SOAK else range(1, 2)
STAGES, MOMENTS = (len(Stage), 3) if SOAK else (1, 1)
PACE = 0.02
pytestmark = [pytest.mark.spark, pytest.mark.timeout(3600)]


def deaths(random: Random) -> Iterator[Death]:
    for stage in random.sample(list(Stage), STAGES):
        yield Death(stage, count=random.randrange(2, 7))
    for _ in range(MOMENTS):
        yield Death(seconds=random.uniform(0.5, 4), alone=random.random() < 0.4)


@contextmanager
def watched_store(bank: Bank) -> Iterator[set[int]]:
    """Looks at the store all the time; which batches were seen."""
    seen, over = set[int](), Event()

    def watch() -> None:
        while not over.wait(PACE):
            if bank.store.exists():
                look()

    def look() -> None:
        with ViewReader(bank.store) as reader:
            if reader.views() and (found := stored(reader)) is not None:
                check_balanced(found[1])
                seen.add(found[0])

    with ThreadPoolExecutor(1) as pool:
        watching = pool.submit(watch)
        try:
            yield seen
        finally:
            over.set()
        watching.result()


def check_every_batch(bank: Bank, log: Log, store: Path) -> int:
    """Takes the frames one by one, into a store of its own and by hand; how many there were."""
    topics = {view: Folded(log, bank.topic(view)) for view in VIEWS}
    taken = 0

    def check(position: Position) -> None:
        nonlocal taken
        if position.batch is None:
            return
        for folded in topics.values():
            folded.take(position.frame)
        check_balanced({view: folded.rows() for view, folded in topics.items()})
        found = stored(reader)
        assert found is not None and found[0] == position.batch == taken
        check_balanced(found[1])
        taken += 1

    with SqliteStore(store) as kept, ViewReader(store) as reader:
        catch_up(log, bank.folder.name, kept, on_step=check, together=1)
    return taken


@pytest.mark.parametrize("seed", SEEDS)
def test_the_total_is_zero_at_every_batch_whatever_is_killed(seed: int, tmp_path: Path, spark: SparkSession) -> None:
    bank, random = Bank.made(tmp_path / "bank", seed), Random(seed)
    with bank.opened() as log:
        bank.append(log, frames=10)
        with watched_store(bank) as seen:
            for death in deaths(random):
                bank.declare(max_records_per_batch=random.randrange(1, 12))
                run_and_die(bank, log, death)
            assert drained(bank, max_records_per_batch=random.randrange(5, 15))[0] == 0
        bank.check_end(log, spark)
        batches = bank.batches(log)
        assert check_every_batch(bank, log, tmp_path / "again.sqlite") == len(batches) > 10
        assert len({header.note["until"] - header.note["from"] for header in batches}) > 2
        assert len(seen) > 1
