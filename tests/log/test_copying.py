"""Copying a topic to another log: every record once, whatever comes between, and again only what is new."""

from collections.abc import Callable, Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from penstock.errors import LogError, SchemaError
from penstock.log import Log, Record, copying
from penstock.log.bound import Bound
from penstock.log.copying import Copying, chosen, declare
from penstock.log.protocol import AnyLog
from penstock.log.retention import Retention
from penstock.log.topic import EventTime
from tests.texts import refused

Opener = Callable[..., Log]


@pytest.fixture
def source(open_log: Opener) -> Log:
    return filled(open_log())


@pytest.fixture
def target(tmp_path: Path) -> Iterator[Log]:
    with Log.open(tmp_path / "target") as log:
        yield log


def filled(log: Log) -> Log:
    time = EventTime("at", plausible=timedelta(hours=3))
    log.create_topic("orders", "id BIGINT, text STRING, at TIMESTAMP", partitions=3, key="id", event_time=time)
    log.create_topic("raw")
    for number in range(30):
        row = {"id": number, "text": f"order {number}", "at": None}
        log.append("orders", [Record(row, headers={"from": b"here"} if number % 7 == 0 else {})])
    log.append("orders", [Record({"id": 3, "text": None, "at": None}, deleted=True)])
    log.append("orders", [Record({"id": 4, "text": "new", "at": None}, replaces={"id": 4, "text": "old", "at": None})])
    log.append("raw", [Record(b"value", key=b"key"), Record(None, key=b"gone")])
    return log


def told(log: AnyLog, topic: str) -> list[list[Any]]:
    """All of a topic but where and when it was appended."""
    return [
        [(entry.key, entry.value, entry.time, dict(entry.headers), entry.deleted, entry.replaces) for entry in entries]
        for entries in (log.read(topic, partition=each) for each in range(log.topic(topic).partitions))
    ]


def copy(source: AnyLog, target: AnyLog, topic: str = "orders") -> int:
    return Copying(source, target, topic).run()


def test_all_of_a_topic_is_copied_and_again_only_what_is_new(source: Log, target: Log) -> None:
    for topic, records in (("orders", 32), ("raw", 2)):
        assert copy(source, target, topic) == records
        assert told(target, topic) == told(source, topic)
        assert target.topic(topic) == source.topic(topic)
        assert copy(source, target, topic) == 0
    source.append("orders", [{"id": 99}])
    assert Copying(source, target, "orders").ahead == 1
    assert copy(source, target) == 1 and told(target, "orders") == told(source, "orders")


@pytest.mark.parametrize("appends", [0, 1, 5, 11])
def test_stopped_anywhere_it_goes_on_there(
    source: Log, target: Log, appends: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(copying, "ROWS", 2)
    heard: list[int] = []

    def stop(records: int) -> None:
        heard.append(records)
        if len(heard) > appends:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        Copying(source, target, "orders").run(stop)
    assert copy(source, target) == 32 - heard[-1]
    assert told(target, "orders") == told(source, "orders")


def test_of_two_at_once_the_first_is_refused_and_nothing_is_doubled(source: Log, target: Log) -> None:
    first = Copying(source, target, "orders")
    batches = first._batches(0)
    first._append(0, next(batches))
    source.seal()  # from now on batches are cut elsewhere
    second = Copying(source, target, "orders")
    with refused("log/copied-by-another"):
        first.run()
    second.run()
    assert told(target, "orders") == told(source, "orders")


def test_what_a_full_topic_leaves_out_is_told(source: Log, target: Log) -> None:
    declare(target, source.topic("orders"))
    target.group("slow").reset("orders", "earliest")
    target.set_bound("orders", Bound(20, "drop"))
    copying = Copying(source, target, "orders")
    assert copying.run() + copying.dropped == 32 and copying.dropped > 0
    assert sum(target.ends("orders")) == 32 - copying.dropped


def test_columns_that_were_added_are_added(source: Log, target: Log) -> None:
    copy(source, target)
    source.change_schema("orders", "id BIGINT, text STRING, at TIMESTAMP, more INT")
    source.append("orders", [{"id": 100, "more": 1}])
    assert copy(source, target) == 1 and told(target, "orders") == told(source, "orders")


def test_what_is_kept_no_longer_is_not_copied(open_log: Opener, target: Log) -> None:
    log = open_log()
    log.create_topic("t", "id BIGINT")
    for number in range(4):
        log.append("t", [{"id": number}])
        if number == 1:
            log.seal()
            log.change_retention("t", Retention(age=timedelta(0)))
            log.retain()
            log.change_retention("t", Retention())
    assert copy(log, target, "t") == 2 and told(target, "t") == told(log, "t")


def test_another_topic_of_that_name_is_refused(source: Log, target: Log) -> None:
    target.create_topic("orders", "id STRING")
    with pytest.raises(SchemaError, match='column "id" would change'):
        copy(source, target)
    assert list(target.read("orders")) == []


def test_a_log_is_not_copied_to_itself(source: Log) -> None:
    with refused("log/copied-to-itself", identity=source.identity):
        copy(source, source)


def test_all_topics_are_copied_if_none_is_named(source: Log) -> None:
    assert chosen(source, []) == ["orders", "raw"]
    with pytest.raises(LogError, match="order"):
        chosen(source, ["order"])
