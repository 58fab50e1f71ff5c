"""A pipeline over a log without records has answers too: its first batch says what the views are over nothing."""

from collections.abc import Callable
from pathlib import Path

import pytest

from penstock.engine.lineage import current
from penstock.engine.run import prepared
from penstock.log import Log
from penstock.views import ViewReader
from tests.engine.conftest import Bench

COUNTS = """
    CREATE STREAM orders (id BIGINT, amount DECIMAL(10,2));
    CREATE TABLE customers (id BIGINT PRIMARY KEY, city STRING);
    CREATE VIEW n AS SELECT count(*) AS n FROM orders;
    CREATE VIEW total AS SELECT sum(amount) AS total, count(*) AS n, max(city) AS m
      FROM orders JOIN customers ON orders.id = customers.id;
    CREATE VIEW cities AS SELECT city, count(*) AS n FROM customers GROUP BY city;
    CREATE VIEW sizes AS SELECT max(n) AS largest, count(*) AS cities FROM cities;
    CREATE VIEW many AS SELECT n FROM n WHERE n > 1;
"""
EMPTY = {
    "n": [{"n": 0}],
    "total": [{"total": None, "n": 0, "m": None}],
    "cities": [],
    "sizes": [{"largest": None, "cities": 0}],
    "many": [],
}
pytestmark = pytest.mark.spark


def contents(bench: Bench) -> dict[str, list[dict[str, object]]]:
    return {view.name: bench.content(view.name) for view in bench.pipeline.views}


def test_once_over_a_log_without_topics(bench: Callable[..., Bench]) -> None:
    made = bench(COUNTS)
    made.drain()
    made.check()
    assert (contents(made), made.checked) == (EMPTY, 1)


def test_once_over_topics_without_records(bench: Callable[..., Bench], tmp_path: Path) -> None:
    with Log.open(tmp_path / "0" / "log") as log:  # the one that the bench will have
        log.create_topic("orders", "id BIGINT, amount DECIMAL(10,2)")
        log.create_topic("others", "x INT")
        log.append("others", [{"x": 1}])
    made = bench(COUNTS)
    made.drain()
    made.check()
    assert (contents(made), made.log.ends("others")) == (EMPTY, (1,))


def test_a_run_that_goes_on_answers_at_once_and_then_counts(bench: Callable[..., Bench]) -> None:
    made = bench(COUNTS)
    run = made.run()
    query = run.start(once=False)
    try:
        run.wait(query, stop=lambda: bool(made.batches))
    finally:
        query.stop()
    made.check()
    assert contents(made) == EMPTY
    made.append({"orders": [{"id": 1}]})
    made.drain()
    made.check()
    assert [made.content("n"), made.checked] == [[{"n": 1}], 2]


def test_no_second_batch_comes_where_nothing_came(bench: Callable[..., Bench]) -> None:
    made = bench(COUNTS)
    for _ in range(3):
        made.drain()
        made.start()
    assert [done.batch for done in made.batches] == [0]


def test_a_new_lineage_is_seen_only_when_it_has_answers(bench: Callable[..., Bench]) -> None:
    made = bench(COUNTS)
    made.drain()
    made.ready = prepared(made.spark, made.pipeline, made.log, made.home, anew=True)
    run = made.run()
    assert current(made.log, "test") == 1
    run.wait(run.start(once=True))
    assert current(made.log, "test") == 2
    with ViewReader.of_topic(made.log, "test", "n") as reader:
        assert reader.rows("n").table.to_pylist() == [{"n": 0}]
    left = made.home / "lineages" / "1"
    assert not left.exists()
    left.mkdir()  # as when a run dies before it could remove it
    made.run()
    assert not left.exists()
