"""The contract of a log in which one order holds all topics: offsets without gaps, one append time for a whole append,
none before the last, and largest event times that are known.
"""

from datetime import UTC, datetime, timedelta

import pytest

from penstock.errors import LogError
from penstock.log import EndOffset, Log
from penstock.log.records import Span
from tests.log.contract import NOON, ORDERS, SECOND, Opener, orders, read_ids
from tests.texts import refused


def test_offsets_count_from_zero_without_gaps(shop: Log) -> None:
    for count in (1, 3, 2):
        shop.append("orders", orders(*range(count)))
    assert [entry.offset for entry in shop.read("orders")] == [0, 1, 2, 3, 4, 5]
    assert shop.ends("orders") == (6,)
    assert shop.append("orders", orders(7)).spans == (Span("orders", 0, base=6, count=1),)


def test_records_of_one_append_have_one_append_time(shop: Log) -> None:
    shop.create_topic("payments", "id INT")
    done = shop.append_all({"orders": orders(1), "payments": [{"id": 1}, {"id": 2}]})
    assert {e.appended_at for name in ("orders", "payments") for e in shop.read(name)} == {done.appended_at}


def test_a_description_counts_records_and_knows_the_largest_event_time(shop: Log) -> None:
    shop.append("orders", [{"id": 1, "at": NOON}, {"id": 2, "at": NOON - SECOND}, {"id": 3}])
    described = shop.describe("orders")
    assert described.records == described.partitions[0].end == 3
    assert described.partitions[0].largest_time == NOON


def test_reading_begins_at_a_microsecond(open_log: Opener) -> None:
    ticks = iter(range(100, 200))
    log = open_log(clock=lambda: next(ticks))
    log.create_topic("orders", ORDERS)
    times = [log.append("orders", orders(each)).appended_at for each in range(5)]
    for at, time in enumerate(times):
        assert read_ids(log, start=time) == list(range(at, 5))
        assert read_ids(log, end=time) == list(range(at))


def test_what_is_asked_for_without_saying_where_is_refused(wide: Log) -> None:
    with refused("log/offset-needs-partition"):
        list(wide.read("orders", start=3))
    wide.append("orders", orders(1), partition=0)
    with refused("log/end-offset-passed"):
        wide.append("orders", orders(2), partition=1, expect=[EndOffset("orders", 0, 0)])


def test_a_scope_that_no_reader_could_read_is_refused(shop: Log) -> None:
    with pytest.raises(LogError, match="a scope cannot be named"):
        shop.punctuate("orders", NOON, scope="\ud800")


def test_append_times_never_go_back_even_if_the_clock_does(open_log: Opener) -> None:
    now = 0
    log, behind = open_log(clock=lambda: now), open_log(clock=lambda: 20)
    log.create_topic("orders", ORDERS)
    for who, now in [(log, 50), (log, 40), (log, 60), (behind, 0), (log, 10)]:  # noqa: B007
        who.append("orders", orders(1))
    times = [entry.appended_at - datetime(1970, 1, 1, tzinfo=UTC) for entry in log.read("orders")]
    assert [time // timedelta(microseconds=1) for time in times] == [50, 50, 60, 60, 60]
