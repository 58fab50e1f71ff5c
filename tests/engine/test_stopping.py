"""A run that is stopped in the middle of a batch ends quietly; the next one makes the batch again."""

from collections.abc import Callable
from threading import Event

import pytest

from penstock.engine.stages import Stage
from tests.engine.conftest import Bench

LONG = """
    CREATE STREAM orders (id BIGINT);
    CREATE VIEW total AS SELECT sum(x + y) AS t
    FROM (SELECT explode(sequence(id, id + 5000)) AS x, id FROM orders)
    LATERAL VIEW explode(sequence(id, id + 3000)) AS y;
"""


@pytest.mark.spark
def test_a_run_can_be_stopped_in_a_batch(bench: Callable[..., Bench]) -> None:
    one = bench(LONG)
    one.append({"orders": [{"id": 1}]})
    begun = Event()

    def notice(at: Stage, _batch: int) -> None:
        if at is Stage.PLANNED:
            begun.set()

    run = one.run()
    query = run.start(once=False, on_stage=notice)
    run.wait(query, stop=begun.is_set)
    assert (query.isActive, one.batches) == (False, [])
    one.drain()
    one.check()
    assert one.content("total") == [{"t": 5001 * 3001 * 4002}]
