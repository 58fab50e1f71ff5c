"""Of two runs of one pipeline the newer goes on; the older ends with an error and has changed nothing since."""

from collections.abc import Callable
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from penstock.engine.lineage import current
from penstock.engine.run import Run, prepared, raised_epoch
from penstock.engine.stages import Stage
from penstock.errors import EngineError
from tests.engine.conftest import Bench
from tests.engine.crashing import PENSTOCK, VICTIM, started
from tests.engine.shop import Shop
from tests.texts import assert_golden, refused

TOTAL = """
    CREATE STREAM orders (id BIGINT);
    CREATE VIEW total AS SELECT count(*) AS n FROM orders;
"""
pytestmark = pytest.mark.spark


@pytest.mark.timeout(1800)
def test_the_newer_of_two_processes_takes_over(tmp_path: Path, spark: SparkSession) -> None:
    shop = Shop.made(tmp_path / "shop", seed=1)
    with shop.opened() as log, started(*VICTIM, str(shop.folder), Stage.FRAMED.value, "0", "together") as older:
        shop.append(log, frames=20)
        older.until(lambda: len(older.said()) > 3)  # that it is ready, then batches
        with started(*PENSTOCK, str(shop.folder), "--once") as newer:
            codes = older.wait(), newer.wait()
            assert codes == (1, 0), newer.errors()
        assert_golden("engine/overtaken", older.errors().strip())
        raised = [header.frame for header in log.frames() if any("epoch" in each for each in header.control)][-1]
        before = [str(header.note["batch"]) for header in shop.batches(log) if header.frame < raised]
        assert older.said() == ["ready", *before]
        shop.check_end(log, spark)


def test_a_run_that_is_overtaken_while_it_reads_leaves(bench: Callable[..., Bench]) -> None:
    one = bench(TOTAL)
    one.append({"orders": [{"id": 1}]})
    one.drain()
    older = one.run()
    query = older.start(once=False)
    raised_epoch(one.log, one.pipeline)
    before = one.log.mark()
    one.append({"orders": [{"id": 2}]})
    with pytest.raises(EngineError, match='a newer run of pipeline "test" has taken over'):
        older.wait(query)
    assert (query.isActive, one.log.mark().next_frame) == (False, before.next_frame + 1)


def test_a_run_that_is_overtaken_while_it_waits_changes_nothing(bench: Callable[..., Bench]) -> None:
    one = bench(TOTAL)
    older, _newer = raised_epoch(one.log, one.pipeline), raised_epoch(one.log, one.pipeline)
    before = one.log.mark()
    with refused("engine/overtaken-while-waiting"):
        Run(one.spark, one.log, one.home, one.ready, one.batches.append, older)
    assert (one.log.mark(), current(one.log, "test")) == (before, None)


def test_only_the_newest_run_closes_every_window_and_in_one_frame(bench: Callable[..., Bench]) -> None:
    one = bench("""
        CREATE STREAM a (at TIMESTAMP) WITH (event_time = 'at', watermark = '0 seconds');
        CREATE STREAM b (at TIMESTAMP) WITH (event_time = 'at', watermark = '0 seconds');
        CREATE VIEW v AS SELECT at FROM a UNION ALL SELECT at FROM b;
    """)
    older = one.run()
    raised_epoch(one.log, one.pipeline)
    before = one.log.mark().next_frame
    with pytest.raises(EngineError, match='a newer run of pipeline "test" has taken over'):
        older.end_time()
    assert one.log.mark().next_frame == before
    one.run().end_time()
    closed = [sorted(said.topic for said in each.punctuation) for each in one.log.frames(before) if each.punctuation]
    assert closed == [["a", "b"]]


def test_a_run_that_is_overtaken_does_not_switch_readers_to_its_lineage(bench: Callable[..., Bench]) -> None:
    one = bench(TOTAL)
    one.append({"orders": [{"id": 1}]})
    one.drain()
    anew = prepared(one.spark, one.pipeline, one.log, one.home, anew=True)

    def overtake(stage: Stage, _batch: int) -> None:
        if stage is Stage.FRAMED:
            raised_epoch(one.log, one.pipeline)

    run = Run(one.spark, one.log, one.home, anew, one.batches.append)
    with pytest.raises(EngineError, match="has taken over"):
        run.wait(run.start(once=True, on_stage=overtake))
    assert (anew.lineage.number, current(one.log, "test")) == (2, 1)
