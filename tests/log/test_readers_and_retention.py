"""Retention and readers: what a group or a queue has not read is kept if asked so, and missed clearly if not."""

from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from typing import Literal

import pytest

from penstock.errors import LogError
from penstock.log import Log
from penstock.log.consumers import Delivering, Terms
from penstock.log.retention import Retention

Opener = Callable[..., Log]
Missing = Literal["skip", "fail"]
SECOND = 1_000_000


@pytest.fixture
def clock() -> list[int]:
    return [1_000 * SECOND]


@pytest.fixture
def log(open_log: Opener, clock: list[int]) -> Log:
    """A log with the topics `kept`, of which nothing unread goes, and `gone`: ten records each, all of them old."""
    log = open_log(clock=lambda: clock[0])
    for topic, unread in (("kept", True), ("gone", False)):
        log.create_topic(topic, "n INT", retention=Retention(age=timedelta(seconds=1), unread=unread))
        log.group("g").reset(topic, "earliest")
        log.create_queue(f"q-{topic}", topic, Delivering(missing="skip"))
    for n in range(10):
        log.append_all({"kept": [{"n": n}], "gone": [{"n": n}]})
        log.seal()
    return log


def pass_by(log: Log, clock: list[int]) -> None:
    clock[0] += 60 * SECOND
    log.retain()


def test_what_a_group_or_a_queue_has_not_read_is_kept(log: Log, clock: list[int]) -> None:
    log.group("g").reset("kept", 7, partition=0)
    pass_by(log, clock)
    assert log.begins("kept") == (0,)
    with log.queue("q-kept").worker() as worker:
        for message in worker.take(4):
            message.acknowledge()
        worker.sync()
        pass_by(log, clock)
        assert log.begins("kept") == (4,)
        for message in worker.take(99):
            message.acknowledge()
    pass_by(log, clock)
    assert log.begins("kept") == (7,)


def test_what_is_gone_is_missed_clearly(log: Log, clock: list[int]) -> None:
    pass_by(log, clock)
    log.append("gone", [{"n": 10}])
    with log.group("g").join("gone") as member, pytest.raises(LogError, match="cannot go on at offset 0"):
        member.poll()
    with log.group("g").join("gone", terms=Terms(missing="earliest")) as member:
        assert [entry.offset for entry in member.poll()] == [10]
    with log.queue("q-gone").worker() as worker:
        assert [message.entry.offset for message in worker.take(99)] == [10]
    assert log.queue("q-gone").describe().skipped == 10


@pytest.mark.parametrize("missing", ["skip", "fail"])
def test_what_was_delivered_too_often_and_is_gone_stops_no_queue(log: Log, clock: list[int], missing: Missing) -> None:
    delivering = Delivering(visibility=timedelta(seconds=10), deliveries=1, missing=missing)
    with log.create_queue("q", "gone", delivering).worker() as worker:
        one, _unsettled, three = worker.take(3)
        one.acknowledge()
        pass_by(log, clock)
        three.reject("bad")
        log.append("gone", [{"n": 10}])
        if missing == "fail":
            with pytest.raises(LogError, match='messages of queue "q" are gone'):
                worker.take()
            log.queue("q").change(replace(delivering, missing="skip"))
    with log.queue("q").worker() as worker:
        assert [message.entry.offset for message in worker.take(99)] == [10]
    assert (log.queue("q").describe().skipped, log.queue("q").describe().dead) == (9, 0)


@pytest.mark.parametrize("missing", ["skip", "fail"])
def test_what_was_acknowledged_is_not_missed(log: Log, clock: list[int], missing: Missing) -> None:
    queue = log.create_queue("q", "gone", Delivering(visibility=timedelta(hours=1), missing=missing))
    with queue.worker() as one, queue.worker() as other:
        for message in one.take(10):
            message.acknowledge()
        pass_by(log, clock)
        assert other.take() == []
        log.append("gone", [{"n": 10}])
        assert [message.entry.offset for message in other.take(99)] == [10]
    assert queue.describe().skipped == 0


def test_readers_of_a_compacted_topic_get_what_is_left(open_log: Opener) -> None:
    log = open_log()
    log.create_topic("t", "id INT, n INT", key="id")
    for n in range(12):
        log.append("t", [{"id": n % 3, "n": n}])
    log.seal()
    log.compact("t")
    left = [entry.offset for entry in log.read("t")]
    assert len(left) < 12
    with log.group("g").join("t") as member:
        assert [entry.offset for _ in range(12) for entry in member.poll(2)] == left
    with log.create_queue("q", "t").worker() as worker:
        assert [message.entry.offset for _ in range(12) for message in worker.take(2)] == left
    assert log.queue("q").describe().waiting == len(left)
