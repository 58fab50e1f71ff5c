"""A view of a pipeline whose log is in a folder goes to a topic of Kafka, each change once."""

import os
import signal
import time
from collections import Counter
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from random import Random
from uuid import uuid4

import pytest

from penstock.app.place import place_of
from penstock.log import Log
from penstock.log.kafka import KafkaLog
from penstock.model import Pipeline
from penstock.serve import Served
from penstock.serve.outward import Outward
from penstock.views.sinks import kafka as sink
from services.kafka import Cluster
from services.proxy import Proxy
from tests.app.sinking import declared, sinking, soon
from tests.effort import SOAK
from tests.texts import refused
from tests.views.shop import VIEWS, Declared, Shop, Story, counted, folded, spend

KILLS = 60 if SOAK else 3


@pytest.fixture
def source(tmp_path: Path) -> Iterator[Log]:
    with Log.open(tmp_path / "log") as log:
        yield log


@pytest.fixture
def topic() -> str:
    return f"spend-{uuid4().hex[:12]}"


def to(servers: str, topic: str) -> Pipeline:
    return declared(f"kafka = 'kafka://{servers}/{topic}'")


def held(cluster: Cluster, topic: str) -> tuple[Counter[str], int]:
    """What the topic adds up to, by the oracle of the views, and how many records it has."""
    with KafkaLog.open(cluster.servers, create=False) as log:
        keyed: dict[object, object] = {}
        records = list(log.read(topic))
        for entry in records:
            assert isinstance(entry.value, dict)
            before = keyed.get(entry.key)
            assert before == entry.replaces, "a change does not fit what was before"
            keyed[entry.key] = None if entry.deleted else entry.value
        return counted(row for row in keyed.values() if isinstance(row, dict)), len(records)


def measured(log: Log, folder: Path) -> list[float]:
    """What the metrics say of the sink: frames that it lacks, failed attempts, dead letters."""
    home = place_of(folder)
    served = Served(log, declared("kafka = 'kafka://localhost/x'"), home.store, home.home, sinks=home.sinks)
    samples = [each for family in Outward(served).collect() for each in family.samples]
    assert [each.labels for each in samples] == [{"view": "spend", "sink": "kafka"}] * 3
    return [each.value for each in samples]


def test_a_topic_begins_with_all_rows_and_follows(kafka: Cluster, source: Log, topic: str, tmp_path: Path) -> None:
    shop = Shop(source)
    story = Story(shop, seed=4)
    story.go_on(5)
    shop.announce()
    with sinking(source, tmp_path, to(kafka.servers, topic)) as told:
        story.go_on(10)
    assert held(kafka, topic)[0] == folded(source, shop.topic("spend"))
    assert measured(source, tmp_path) == [0, 0, 0]
    before = held(kafka, topic)[1]
    with sinking(source, tmp_path, to(kafka.servers, topic)):
        pass
    assert held(kafka, topic)[1] == before and told == []


def test_after_a_reset_the_difference_is_appended(kafka: Cluster, source: Log, topic: str, tmp_path: Path) -> None:
    shop = Shop(source)
    shop.announce()
    with sinking(source, tmp_path, to(kafka.servers, topic)):
        Story(shop, seed=5).go_on(10)
        second = Shop(source, lineage=2)
        Story(second, seed=6).go_on(10)
        second.announce()
    assert held(kafka, topic)[0] == folded(source, second.topic("spend"))


def test_another_key_is_refused_and_the_topic_stays(kafka: Cluster, source: Log, topic: str, tmp_path: Path) -> None:
    shop = Shop(source)
    shop.announce()
    shop.batch(spend=[(None, spend("Bern", 1))])
    with sinking(source, tmp_path, to(kafka.servers, topic)):
        pass
    second = Shop(source, lineage=2, views=VIEWS | {"spend": Declared("town STRING", key=("town",))})
    second.batch(spend=[(None, {"town": "Bern"})])
    second.announce()
    with (
        refused("app/topic-of-another-key", topic=topic, servers=kafka.servers),
        sinking(source, tmp_path, to(kafka.servers, topic)),
    ):
        pass
    assert held(kafka, topic)[1] == 1


def test_a_topic_of_another_log_is_refused(kafka: Cluster, source: Log, topic: str, tmp_path: Path) -> None:
    shop = Shop(source)
    shop.announce()
    shop.batch(spend=[(None, spend("Bern", 1))])
    with sinking(source, tmp_path, to(kafka.servers, topic)):
        pass
    with Log.open(tmp_path / "other") as other:
        hidden = {"topic": topic, "servers": kafka.servers, "this": other.identity, "that": source.identity}
        with refused("app/topic-of-another-log", **hidden), sinking(other, tmp_path, to(kafka.servers, topic)):
            pass


def test_brokers_that_are_away_are_told_of_and_get_what_they_have_missed(
    frail_kafka: tuple[Cluster, Proxy], source: Log, topic: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cluster, proxy = frail_kafka
    monkeypatch.setattr(sink, "PATIENCE", timedelta(seconds=1))
    shop = Shop(source)
    shop.announce()
    servers = f"127.0.0.1:{proxy.port}"
    cluster.kill(cluster.nodes[0])
    with sinking(source, tmp_path, to(servers, topic)) as told:
        shop.batch(spend=[(None, spend("Bern", 1))])
        assert soon(lambda: bool(told))
        lag, failed, _ = measured(source, tmp_path)
        assert lag == 1 and failed > 0
        cluster.start()
        monkeypatch.setattr(sink, "PATIENCE", timedelta(minutes=1))
    assert held(cluster, topic) == (counted([spend("Bern", 1)]), 1)
    assert measured(source, tmp_path) == [0, 0, 0]


def follow_and_be_killed(folder: Path, pipeline: Pipeline, seconds: float) -> None:
    child = os.fork()
    if child == 0:
        try:
            with Log.open(folder / "log", create=False) as log, sinking(log, folder, pipeline):
                time.sleep(60)
        finally:
            os._exit(0)
    time.sleep(seconds)
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)


def test_killed_again_and_again_every_change_is_there_once(
    kafka: Cluster, source: Log, topic: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sink, "AT_ONCE", 3)
    chance, shop = Random(9), Shop(source)
    shop.announce()
    story = Story(shop, seed=9)
    for _ in range(KILLS):
        story.go_on(chance.randrange(20, 60))
        follow_and_be_killed(tmp_path, to(kafka.servers, topic), chance.uniform(0.2, 1.5))
    with sinking(source, tmp_path, to(kafka.servers, topic)) as told:
        pass
    found, records = held(kafka, topic)
    assert found == folded(source, shop.topic("spend")) and records == len(list(source.read(shop.topic("spend"))))
    assert told == []
