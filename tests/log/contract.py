"""The contract: what every log promises, whichever technology keeps it.

A test file that defines the fixtures `open_log` (a function that opens the test's log, again and again if asked) and
`log` (one such log) and imports everything from here, from contract_appends and from contract_values proves the
contract for its log. A log in which one order holds all topics promises more: contract_one_order and contract_marks,
where `open_log` takes `clock`.
"""

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from threading import Event, Thread
from typing import Any

import pyarrow as pa
import pytest

from penstock.errors import LogError
from penstock.log import EndOffset, Entry, Log
from penstock.log.records import Span
from tests.texts import refused

Opener = Callable[..., Log]
ORDERS = "id BIGINT NOT NULL, customer STRING, at TIMESTAMP"
NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)
SECOND = timedelta(seconds=1)
MILLISECOND = timedelta(milliseconds=1)


def orders(*ids: int) -> list[dict[str, Any]]:
    return [{"id": each, "customer": f"customer {each}"} for each in ids]


def read_ids(log: Log, topic: str = "orders", **where: Any) -> list[int]:
    return [entry.value["id"] for entry in log.read(topic, **where)]  # type: ignore[index,call-overload]


@pytest.fixture
def shop(log: Log) -> Log:
    """A log with the topic `orders`, of one partition."""
    log.create_topic("orders", ORDERS, key="id", event_time="at")
    return log


@pytest.fixture
def wide(log: Log) -> Log:
    """A log with the topic `orders`, of four partitions."""
    log.create_topic("orders", ORDERS, key="id", partitions=4)
    return log


# Topics


def test_a_new_log_has_no_topics(log: Log) -> None:
    assert log.topics() == []


def test_a_topic_is_described_as_it_was_declared(log: Log) -> None:
    topic = log.create_topic("orders", ORDERS, partitions=2, key="id", event_time="at")
    assert (str(topic.schema), topic.partitions, topic.key, topic.event_time) == (ORDERS, 2, ("id",), "at")
    described = log.describe("orders")
    assert described.topic == topic == log.topic("orders")
    assert [(each.partition, each.end) for each in described.partitions] == [(0, 0), (1, 0)]


def test_topics_are_listed_by_name(log: Log) -> None:
    for name in ("orders", "clicks", "a.b-c_d"):
        log.create_topic(name)
    assert [topic.name for topic in log.topics()] == ["a.b-c_d", "clicks", "orders"]


def test_declaring_a_topic_again_equally_changes_nothing(shop: Log) -> None:
    shop.append("orders", orders(1))
    shop.create_topic("orders", ORDERS, key="id", event_time="at")
    assert read_ids(shop) == [1]


@pytest.mark.parametrize(
    ("name", "other"),
    [
        ("schema", {"schema": "id BIGINT"}),
        ("partitions", {"schema": ORDERS, "partitions": 2}),
        ("key", {"schema": ORDERS, "key": ("id", "customer")}),
        ("event-time", {"schema": ORDERS, "event_time": "at"}),
        ("raw", {}),
    ],
)
def test_declaring_a_topic_again_otherwise_is_refused(log: Log, name: str, other: dict[str, Any]) -> None:
    log.create_topic("orders", ORDERS)
    with refused(f"log/declared-otherwise-{name}"):
        log.create_topic("orders", **other)


def test_a_raw_topic_and_a_typed_one_of_the_same_columns_differ(log: Log) -> None:
    log.create_topic("bytes")
    with pytest.raises(LogError, match="declared otherwise"):
        log.create_topic("bytes", "key BINARY, value BINARY, time TIMESTAMP", key="key", event_time="time")


@pytest.mark.parametrize("name", ["", ".hidden", "-x", "a/b", "a b", "é", "x" * 201, "a\n"])
def test_a_name_that_is_no_topic_name_is_refused(log: Log, name: str) -> None:
    with pytest.raises(LogError, match="is not a topic name"):
        log.create_topic(name)


@pytest.mark.parametrize(
    ("name", "declared"),
    [
        ("key-type", {"schema": "id ARRAY<MAP<INT, INT>>", "key": "id"}),
        ("key-unknown", {"schema": "id INT", "key": "idd"}),
        ("event-time-type", {"schema": "at DATE", "event_time": "at"}),
        ("partitions", {"schema": "id INT", "partitions": 0}),
        ("raw-key", {"key": "id"}),
    ],
)
def test_a_topic_that_cannot_be_is_refused(log: Log, name: str, declared: dict[str, Any]) -> None:
    with refused(f"log/no-topic-{name}"):
        log.create_topic("orders", **declared)


def test_an_unknown_topic_is_refused_with_the_nearest_name(shop: Log) -> None:
    for use in (
        shop.topic,
        shop.describe,
        shop.ends,
        lambda name: list(shop.read(name)),
        lambda name: shop.append(name, []),
    ):
        with refused("log/unknown-topic"):
            use("order")


# Offsets and partitions


def test_offsets_rise_from_zero_and_lie_before_the_end(shop: Log) -> None:
    for count in (1, 3, 2):
        shop.append("orders", orders(*range(count)))
    offsets = [entry.offset for entry in shop.read("orders")]
    assert offsets[0] == 0 and offsets == sorted(set(offsets)) and len(offsets) == 6
    assert shop.ends("orders")[0] > offsets[-1]


def test_an_append_answers_with_the_offsets_of_its_records(shop: Log) -> None:
    shop.append("orders", orders(1, 2))
    (end,) = shop.ends("orders")
    done = shop.append("orders", orders(3, 4, 5))
    assert done.spans == (Span("orders", 0, base=end, count=3),)
    assert not done.repeated
    assert min(entry.appended_at for entry in shop.read("orders", start=end)) == done.appended_at


def test_records_of_one_key_are_in_one_partition_in_their_order(wide: Log, open_log: Opener) -> None:
    for at in range(6):
        (wide if at % 2 else open_log()).append("orders", [{"id": each, "customer": str(at)} for each in range(20)])
    where = {(entry.partition, entry.key) for entry in wide.read("orders")}
    assert len(where) == 20 and {partition for partition, _ in where} == {0, 1, 2, 3}
    for partition, key in where:
        mine = [e.value["customer"] for e in wide.read("orders", partition=partition) if e.key == key]  # type: ignore[index,call-overload]
        assert mine == ["0", "1", "2", "3", "4", "5"]


def test_records_without_a_key_go_to_one_partition_an_append_in_turn(log: Log) -> None:
    log.create_topic("clicks", partitions=3)
    spans = [log.append("clicks", [b"x", b"y"]).spans for _ in range(6)]
    first = spans[0][0].partition
    assert [[(s.partition, s.count) for s in each] for each in spans] == [[((first + p) % 3, 2)] for p in range(6)]


def test_a_partition_can_be_chosen(wide: Log) -> None:
    wide.append("orders", orders(1, 2, 3), partition=2)
    assert [entry.partition for entry in wide.read("orders")] == [2, 2, 2]


@pytest.mark.parametrize("partition", [-1, 4])
def test_a_partition_that_does_not_exist_is_refused(wide: Log, partition: int) -> None:
    with pytest.raises(LogError, match=f"has no partition {partition}"):
        wide.append("orders", orders(1), partition=partition)
    with pytest.raises(LogError, match=f"has no partition {partition}"):
        list(wide.read("orders", partition=partition))
    with pytest.raises(LogError, match=f"has no partition {partition}"):
        wide.append("orders", orders(1), expect=[EndOffset("orders", partition, 0)])


# Reading


def test_reading_begins_at_an_offset_and_ends_before_one(shop: Log) -> None:
    shop.append("orders", orders(0, 1, 2))
    shop.append("orders", orders(3, 4, 5))
    at = [entry.offset for entry in shop.read("orders")]
    (end,) = shop.ends("orders")
    assert read_ids(shop, start=at[2]) == [2, 3, 4, 5]
    assert read_ids(shop, start=at[1], end=at[4]) == [1, 2, 3]
    assert read_ids(shop, start=end) == read_ids(shop, start=99) == read_ids(shop, start=at[3], end=at[3]) == []


def test_reading_begins_at_an_append_time(shop: Log) -> None:
    times = []
    for each in range(4):
        times.append(shop.append("orders", orders(each)).appended_at)
        while datetime.now(UTC) < times[-1] + 3 * MILLISECOND:
            pass  # some clocks tell whole milliseconds
    for at, time in enumerate(times):
        assert read_ids(shop, start=time) == list(range(at, 4))
        assert read_ids(shop, end=time) == list(range(at))
    assert read_ids(shop, start=times[-1] + SECOND) == []


def test_an_offset_of_a_topic_with_partitions_needs_the_partition(wide: Log) -> None:
    wide.append("orders", orders(*range(20)))
    with pytest.raises(LogError, match='an offset of "orders" needs its partition'):
        list(wide.read("orders", start=3))
    offsets = [entry.offset for entry in wide.read("orders", partition=1)]
    assert [entry.offset for entry in wide.read("orders", partition=1, start=3)] == offsets[3:]


def test_what_is_read_is_what_was_there_when_reading_began(shop: Log) -> None:
    shop.append("orders", orders(0))
    batches = shop.batches("orders")
    shop.append("orders", orders(1))
    assert [batch.num_rows for batch in batches] == [1]


def test_every_handle_reads_what_every_handle_appended(shop: Log, open_log: Opener) -> None:
    other = open_log()
    for each in range(4):
        (shop, other)[each % 2].append("orders", orders(each))
        assert read_ids(shop) == read_ids(other) == list(range(each + 1))


def test_records_are_still_there_after_the_log_is_opened_again(shop: Log, open_log: Opener) -> None:
    shop.append("orders", orders(1, 2))
    shop.close()
    again = open_log()
    assert read_ids(again) == [1, 2]
    again.append("orders", orders(3))
    assert read_ids(again) == [1, 2, 3]


def test_a_closed_log_refuses_appends(shop: Log) -> None:
    shop.close()
    with pytest.raises(LogError, match="the log is closed"):
        shop.append("orders", orders(1))


def test_batches_hold_the_columns_asked_for(shop: Log) -> None:
    shop.append("orders", orders(1, 2))
    (batch,) = shop.batches("orders", columns=["customer", "_offset"])
    assert batch.to_pydict() == {"customer": ["customer 1", "customer 2"], "_offset": [0, 1]}
    with refused("log/unknown-column"):
        shop.batches("orders", columns=["costumer"])


def test_an_arrow_table_is_appended_as_it_is_read(shop: Log) -> None:
    table = pa.table({"id": [1, 2], "customer": ["ann", None], "at": pa.array([NOON, None], pa.timestamp("us", "UTC"))})
    shop.append("orders", table)
    assert pa.Table.from_batches(shop.batches("orders", columns=["id", "customer", "at"])).equals(table)


# Following


def following(log: Log, count: int, **where: Any) -> tuple[Thread, list[Entry]]:
    """A thread that follows the topic until it has seen `count` records, and begins before this returns."""
    seen: list[Entry] = []
    began = Event()

    def stop() -> bool:
        began.set()
        return len(seen) >= count

    def follow() -> None:
        for entry in log.tail("orders", stop=stop, **where):
            seen.append(entry)

    thread = Thread(target=follow, daemon=True)
    thread.start()
    assert began.wait(10)
    return thread, seen


def test_a_follower_sees_records_that_are_appended_later(shop: Log, open_log: Opener) -> None:
    shop.append("orders", orders(0))
    thread, seen = following(open_log(), 20)
    for each in range(1, 21):
        shop.append("orders", orders(each))
    thread.join(20)
    assert [entry.value["id"] for entry in seen] == list(range(1, 21))  # type: ignore[index,call-overload]


def test_a_follower_that_begins_at_an_offset_sees_old_records_first(shop: Log) -> None:
    shop.append("orders", orders(0, 1, 2))
    thread, seen = following(shop, 4, start=1)
    shop.append("orders", orders(3, 4))
    thread.join(20)
    assert [entry.value["id"] for entry in seen] == [1, 2, 3, 4]  # type: ignore[index,call-overload]


def test_a_follower_of_one_partition_sees_only_that(wide: Log) -> None:
    thread, seen = following(wide, 3, partition=2)
    wide.append("orders", orders(*range(20)), partition=1)
    wide.append("orders", orders(1, 2, 3), partition=2)
    thread.join(20)
    assert [(entry.partition, entry.offset) for entry in seen] == [(2, 0), (2, 1), (2, 2)]


def test_a_follower_sees_columns_that_are_added_meanwhile(shop: Log) -> None:
    thread, seen = following(shop, 2)
    shop.append("orders", orders(1))
    shop.change_schema("orders", ORDERS + ", note STRING")
    shop.append("orders", [{"id": 2, "note": "new"}])
    thread.join(20)
    assert [entry.value.get("note") for entry in seen] == [None, "new"]  # type: ignore[union-attr]
