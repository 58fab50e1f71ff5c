"""Pipelines over a log that keeps records for a while: what cannot be computed any more is refused, by name."""

from collections.abc import Callable
from datetime import timedelta

import pytest

from penstock.engine.run import prepared
from penstock.errors import EngineError
from penstock.log.retention import Retention
from penstock.views import SqliteStore, ViewReader, catch_up
from tests.engine.conftest import Bench
from tests.texts import refused

pytestmark = pytest.mark.spark

SQL = """
    CREATE STREAM orders (id BIGINT, customer BIGINT, amount BIGINT);
    CREATE TABLE customers (id BIGINT PRIMARY KEY, city STRING);
    CREATE VIEW spend AS
      SELECT city, sum(amount) AS spend FROM orders JOIN customers ON customer = customers.id GROUP BY city;
"""
NOTHING = Retention(age=timedelta(0), unread=True)


def test_a_running_pipeline_is_a_reader_and_goes_on_over_what_it_has_not_read(bench: Callable[..., Bench]) -> None:
    made = bench(SQL)
    made.append({"orders": [{"id": 1, "customer": 1, "amount": 5}], "customers": [{"id": 1, "city": "Rome"}]})
    made.drain()
    made.check()
    made.log.seal()
    made.append({"orders": [{"id": 2, "customer": 1, "amount": 7}]})
    for topic in ("orders", "customers"):
        made.log.change_retention(topic, NOTHING)
    made.log.seal()
    made.log.append("customers", [{"id": 2, "city": "Oslo"}])
    made.log.retain()
    assert made.log.begins("orders") == (1,) and made.log.begins("customers") == (1,)
    made.start()
    made.drain()
    assert content(made) == [{"city": "Rome", "spend": 12}]


def content(made: Bench) -> list[dict[str, object]]:
    """What the store holds, once it has caught up."""
    with SqliteStore(made.store) as store, ViewReader(made.store) as reader:
        catch_up(made.log, "test", store)
        return list(reader.rows("spend").table.to_pylist())


def test_a_new_lineage_is_refused_where_records_are_gone(bench: Callable[..., Bench]) -> None:
    made = bench(SQL)
    made.append({"orders": [{"id": 1, "customer": 1, "amount": 5}]})
    made.drain()
    made.log.change_retention("orders", NOTHING)
    made.log.retain()
    with refused("engine/replay_of_what_is_gone"):
        prepared(made.spark, made.pipeline, made.log, made.home, anew=True)
    with pytest.raises(EngineError, match="kept no longer"):
        prepared(made.spark, made.pipeline, made.log, made.home / "another")
    assert prepared(made.spark, made.pipeline, made.log, made.home).lineage.number == 1
