"""Levels that run together, in one operator of Spark's, give what they give one after the other."""

import random
from collections.abc import Callable
from threading import Event, Thread
from typing import Any, ClassVar

import pytest
from pyspark.java_gateway import ensure_callback_server_started

from penstock.engine import run
from penstock.errors import EngineError
from tests.engine.conftest import Bench
from tests.texts import refused

pytestmark = pytest.mark.spark

DEEP = """
CREATE STREAM orders (id BIGINT, customer BIGINT, amount BIGINT);
CREATE TABLE customers (id BIGINT PRIMARY KEY, city STRING);
CREATE VIEW by_city AS
  SELECT city, count(*) AS n, sum(amount) AS amount FROM orders JOIN customers ON customer = customers.id GROUP BY city;
CREATE VIEW by_size AS SELECT n, count(*) AS cities, max(amount) AS amount FROM by_city GROUP BY n;
CREATE VIEW first_cities AS SELECT city, cities FROM by_city JOIN by_size USING (n) ORDER BY cities DESC, city LIMIT 3;
"""
TOGETHER, APART = 2, 3
"""Partitions of state, on two cores."""


def feed(bench: Bench, steps: int = 4) -> None:
    chance = random.Random(11)
    for step in range(steps):
        moved = [{"id": chance.randrange(30), "city": f"city {chance.randrange(9)}"} for _ in range(20)]
        orders = [
            {"id": step * 100 + i, "customer": chance.randrange(40), "amount": chance.randrange(50)} for i in range(100)
        ]
        bench.append({"customers": moved, "orders": orders})
        bench.drain()


def changes(bench: Bench, view: str) -> list[Any]:
    return [record.value for record in bench.log.read(bench.ready.lineage.topic(view))]


def test_levels_that_run_together_change_the_views_as_levels_apart_do(bench: Callable[..., Bench]) -> None:
    one, other = bench(DEEP, shuffle_partitions=TOGETHER), bench(DEEP, shuffle_partitions=APART)
    for each in (one, other):
        feed(each)
        each.check()
    assert all(changes(one, view) == changes(other, view) for view in ("by_city", "by_size", "first_cities"))
    assert changes(one, "first_cities")
    assert (one.ready.query.stages, other.ready.query.stages) == (1, one.ready.query.layout.depth)
    assert one.ready.query.layout.depth > 2


def test_state_of_levels_together_stays_in_one_process(
    bench: Callable[..., Bench], monkeypatch: pytest.MonkeyPatch
) -> None:
    one = bench(DEEP, shuffle_partitions=TOGETHER)
    feed(one)
    monkeypatch.setattr(run, "runs_together", lambda spark: False)  # as on a cluster
    with refused("engine/levels-together"):
        one.start(shuffle_partitions=TOGETHER)


def test_levels_apart_go_on_apart_where_they_could_be_together(
    bench: Callable[..., Bench], monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as cluster:
        cluster.setattr(run, "runs_together", lambda spark: False)
        one = bench(DEEP, shuffle_partitions=TOGETHER)
    feed(one)
    one.start(shuffle_partitions=TOGETHER)
    feed(one)
    one.check(every=3)
    assert one.ready.query.stages == one.ready.query.layout.depth


def test_an_error_deep_in_the_graph_is_told_as_it_is(bench: Callable[..., Bench]) -> None:
    refusing = "CREATE VIEW bad AS SELECT CAST(raise_error('no city has ' || n) AS INT) AS x FROM by_size WHERE n > 3;"
    one = bench(DEEP + refusing, shuffle_partitions=TOGETHER)
    one.append({"customers": [{"id": 1, "city": "Rome"}]})
    one.append({"orders": [{"id": i, "customer": 1, "amount": i} for i in range(5)]})
    with pytest.raises(EngineError, match=r"no city has 5"):
        one.drain()


def test_two_pipelines_in_one_process_do_not_wait_for_each_other_for_ever(bench: Callable[..., Bench]) -> None:
    both = [bench(DEEP, shuffle_partitions=TOGETHER) for _ in range(2)]
    fed = [Thread(target=feed, args=[each]) for each in both]
    for each in fed:
        each.start()
    for each in fed:
        each.join(120)
    for one in both:
        assert len(one.batches) >= 4
        one.check()


class Other:
    """What another pipeline's batch would do meanwhile, as Java calls it."""

    def __init__(self) -> None:
        self.begun, self.done = Event(), Event()

    def apply(self) -> None:
        self.begun.set()
        self.done.wait(120)

    class Java:
        implements: ClassVar = ["scala.Function0"]


def test_a_batch_waits_while_another_runs_in_the_process(bench: Callable[..., Bench]) -> None:
    one, other = bench(DEEP, shuffle_partitions=TOGETHER), Other()
    feed(one, steps=1)
    ensure_callback_server_started(one.spark.sparkContext._gateway)  # type: ignore[no-untyped-call]
    relay = one.spark._jvm.penstock.kernel.engine.Relay  # type: ignore[union-attr]
    running, fed = Thread(target=relay.alone, args=[other]), Thread(target=feed, args=[one, 1])
    running.start()
    assert other.begun.wait(60)
    fed.start()
    fed.join(3)  # it takes less than one second
    assert fed.is_alive() and len(one.batches) == 1
    other.done.set()
    for each in (running, fed):
        each.join(60)
    assert len(one.batches) == 2
