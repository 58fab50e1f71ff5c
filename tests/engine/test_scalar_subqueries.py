"""A query inside an expression that might give several rows: its value while it gives one, NULL while it gives none,
and an error of the batch in which it gives more.
"""

from collections.abc import Callable
from typing import Any

import pytest

from penstock.errors import EngineError
from penstock.log import Record
from tests.engine.conftest import Bench
from tests.texts import refused

RATES = """
    CREATE STREAM orders (id BIGINT, amount BIGINT);
    CREATE TABLE rates (id BIGINT PRIMARY KEY, kind STRING, rate BIGINT);
    CREATE VIEW rated AS
      SELECT id, amount * (SELECT rate FROM rates WHERE kind = 'now') AS cost FROM orders;
    CREATE VIEW large AS
      SELECT id FROM orders WHERE amount > (SELECT rate FROM rates WHERE kind = 'now');
    CREATE VIEW total AS
      SELECT sum(amount) AS amount, (SELECT rate FROM rates WHERE kind = 'now') AS rate FROM orders;
"""
pytestmark = pytest.mark.spark

LOOKED_UP = """
    CREATE TABLE orders (id BIGINT PRIMARY KEY, customer BIGINT);
    CREATE TABLE people (id BIGINT PRIMARY KEY, customer BIGINT, city STRING);
    CREATE VIEW placed AS SELECT id, (SELECT city FROM people p WHERE p.customer = o.customer) AS city FROM orders o;
"""


def rate(number: int, kind: str | None, value: int | None) -> dict[str, Any]:
    return {"id": number, "kind": kind, "rate": value}


def gone(number: int) -> Record:
    return Record({"id": number}, deleted=True)


def test_the_value_comes_changes_and_goes(bench: Callable[..., Bench]) -> None:
    made = bench(RATES)
    assert [operator.kind for operator in made.ready.compiled.graph.operators].count("unique") == 1  # all share it
    steps: list[list[dict[str, Any] | Record]] = [
        [],
        [rate(1, "now", 3)],
        [rate(1, "now", None)],
        [rate(1, "then", 5)],
        [gone(1), rate(2, "now", 4)],
        [rate(3, "now", 1), gone(2)],
    ]
    for number, rates in enumerate(steps):
        made.append(
            {"orders": [{"id": number, "amount": number}], "rates": rates} if rates else {"orders": [{"id": 0}]}
        )
        made.drain()
        if number == 3:
            made.start()
    made.check()
    assert made.checked == len(steps)
    assert made.content("total") == [{"amount": 15, "rate": 1}]


@pytest.mark.parametrize("added", [[rate(2, "now", 3)], [rate(2, "now", 9)]], ids=["an equal one", "another"])
def test_several_rows_stop_the_batch_and_change_nothing(
    bench: Callable[..., Bench], added: list[dict[str, Any]]
) -> None:
    made = bench(RATES)
    made.append({"orders": [{"id": 1, "amount": 2}], "rates": [rate(1, "now", 3)]})
    made.drain()
    made.append({"rates": added})
    for _ in range(2):
        with pytest.raises(EngineError, match=r'^a query inside an expression of view "large" gives several rows'):
            made.drain()
        made.start()
    made.append({"rates": [gone(1)]})
    with pytest.raises(EngineError, match="gives several rows"):  # the batch was cut before
        made.drain()
    assert made.log.last("test/1").sequence == 0  # type: ignore[union-attr]
    made.check()


def test_the_error_names_the_view_and_its_place(bench: Callable[..., Bench]) -> None:
    made = bench(RATES)
    made.append({"rates": [rate(1, "now", 3), rate(2, "now", 4)]})
    with refused("engine/single-several"):
        made.drain()


def test_a_look_up_that_finds_several_rows_stops_the_batch_where_somebody_asks(bench: Callable[..., Bench]) -> None:
    made = bench(LOOKED_UP)
    people = [{"id": each, "customer": each // 2, "city": "Bern"} for each in range(3)]
    made.append({"people": people, "orders": [{"id": 1, "customer": 1}, {"id": 2, "customer": 7}]})
    made.drain()
    made.check()
    assert sorted(made.content("placed"), key=str) == [{"id": 1, "city": "Bern"}, {"id": 2, "city": None}]
    made.append({"orders": [{"id": 3, "customer": 0}]})
    with pytest.raises(EngineError, match="a query inside an expression gives several rows"):
        made.drain()
