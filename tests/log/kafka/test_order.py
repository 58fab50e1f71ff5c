"""One order of all topics on Kafka: the journal, its mirror, and the admission of what other programs write."""

import json
import stat
from collections.abc import Callable, Iterator, Mapping
from datetime import timedelta
from pathlib import Path

import pytest
from confluent_kafka import Producer

from penstock.errors import LogError
from penstock.log.kafka import KafkaLog, OrderedKafkaLog
from penstock.log.records import Span
from services.kafka import Cluster
from tests.log.contract import NOON, ORDERS, SECOND, orders

Opener = Callable[..., OrderedKafkaLog]


@pytest.fixture
def open_ordered(kafka: Cluster, prefix: str) -> Iterator[Opener]:
    opened: list[OrderedKafkaLog] = []

    def open_(**options: object) -> OrderedKafkaLog:
        opened.append(OrderedKafkaLog.open(kafka.servers, prefix=prefix, **options))  # type: ignore[arg-type]
        return opened[-1]

    yield open_
    for log in opened:
        log.close()


def write(kafka: Cluster, topic: str, *rows: tuple[int, Mapping[str, object]]) -> None:
    """As a program that knows nothing of Penstock would."""
    producer = Producer({"bootstrap.servers": kafka.servers})
    for partition, row in rows:
        producer.produce(topic, json.dumps(row), partition=partition)
    producer.flush()


def test_what_the_log_appends_itself_is_a_frame_at_once(
    open_ordered: Opener, open_log: Callable[..., KafkaLog]
) -> None:
    log, other = open_ordered(), open_ordered()
    log.create_topic("changes", "id BIGINT, n BIGINT", key="id", own=True)
    epoch = log.raise_epoch("pipeline shop")
    start = log.mark().next_frame
    done = log.append_all(
        {"changes": [{"id": 1, "n": 1}, {"id": 2, "n": 1}]}, producer="shop/1", sequence=0, note={"batch": 0}
    )
    (header,) = log.frames(start)
    assert (header.producer, header.sequence, header.note) == ("shop/1", 0, {"batch": 0})
    assert [(b.topic, b.base, b.count, b.end) for b in header.blocks] == [("changes", 0, 2, 2)]
    assert done.spans == (Span("changes", 0, 0, 2),)
    assert log.last("shop/1") == log.find("shop/1", 0) == header
    assert log.append_all({"changes": [{"id": 3}]}, producer="shop/1", sequence=0).repeated
    assert [log.epoch("pipeline shop"), epoch] == [1, 1]
    other.settle()
    assert list(other.frames()) == list(log.frames()), "everybody finds the same"
    (batch,) = log.batches("changes", partition=0, columns=["id", "_place"])
    assert batch.to_pylist() == [{"id": each + 1, "_place": start << 24 | each} for each in range(2)]


def test_what_others_write_is_admitted_with_its_event_times(open_ordered: Opener, kafka: Cluster, prefix: str) -> None:
    log = open_ordered(admits=True)
    log.create_topic("orders", ORDERS, partitions=2, event_time="at")
    at = [(NOON + each * SECOND).isoformat() for each in range(10)]
    write(
        kafka, f"{prefix}orders", (0, {"id": 1, "at": at[5]}), (0, {"id": 2, "at": at[3]}), (1, {"id": 3, "at": at[7]})
    )
    log.settle()
    found = log.describe("orders")
    assert [(each.end, each.largest_time) for each in found.partitions] == [
        (2, NOON + 5 * SECOND),
        (1, NOON + 7 * SECOND),
    ]
    assert log.watermark("orders", delay=SECOND, by="partition") == NOON + 4 * SECOND
    write(kafka, f"{prefix}orders", (0, {"id": 4, "at": at[1]}), (1, {"id": 5, "at": "soon"}))
    log.settle()
    blocks = [block for header in log.frames() for block in header.blocks]
    assert sum(block.count for block in blocks) == 5
    assert {block.partition: block.top for block in blocks} == {
        each.partition: each.largest_time and int(each.largest_time.timestamp() * 1e6) for each in found.partitions
    }


def test_two_that_admit_do_not_fight(open_ordered: Opener, kafka: Cluster, prefix: str) -> None:
    one, two = open_ordered(admits=True), open_ordered(admits=True)
    one.create_topic("orders", ORDERS)
    for round_ in range(5):
        write(kafka, f"{prefix}orders", *((0, {"id": each}) for each in range(20)))
        (one, two)[round_ % 2].settle()
    for log in (one, two):
        log.settle()
        blocks = [block for header in log.frames() for block in header.blocks]
        assert sum(block.count for block in blocks) == 100
        assert [block.base for block in blocks[1:]] == [block.end for block in blocks[:-1]], "no record twice"
    assert list(one.frames()) == list(two.frames())


def test_the_mirror_goes_on_where_it_was_and_is_rebuilt_where_it_is_damaged(
    open_ordered: Opener, tmp_path: Path
) -> None:
    log = open_ordered(folder=tmp_path / "mirror")
    log.create_topic("orders", ORDERS, own=True)
    for each in range(5):
        log.append("orders", orders(each))
    frames = list(log.frames())
    log.close()
    again = open_ordered(folder=tmp_path / "mirror")
    again.append("orders", orders(5))
    assert list(again.frames())[:-1] == frames
    frames = list(again.frames())
    again.close()
    (stretch,) = (tmp_path / "mirror" / "journal").glob("*.journal")
    stretch.write_bytes(stretch.read_bytes()[:-20])
    assert list(open_ordered(folder=tmp_path / "mirror").frames()) == frames


def test_a_mirror_belongs_to_one_log_and_tells_nobody_else(
    open_ordered: Opener, kafka: Cluster, tmp_path: Path
) -> None:
    open_ordered(folder=tmp_path / "mirror")
    assert stat.S_IMODE((tmp_path / "mirror" / "kafka.json").stat().st_mode) == 0o600
    with pytest.raises(LogError, match="mirrors another log"):
        OrderedKafkaLog.open(kafka.servers, prefix="elsewhere.", folder=tmp_path / "mirror")
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "photo.jpg").touch()
    with pytest.raises(LogError, match="is not empty"):
        open_ordered(folder=tmp_path / "mine")


def test_the_running_maximum_survives_everything_but_the_journal(
    open_ordered: Opener, kafka: Cluster, prefix: str
) -> None:
    log = open_ordered(admits=True)
    log.create_topic("orders", ORDERS, partitions=2, event_time="at")
    write(
        kafka, f"{prefix}orders", *((each, {"id": each, "at": (NOON + each * SECOND).isoformat()}) for each in (0, 1))
    )
    log.settle()
    log.close()
    fresh = open_ordered(patience=timedelta(seconds=20))
    assert [each.largest_time for each in fresh.describe("orders").partitions] == [NOON, NOON + SECOND]
