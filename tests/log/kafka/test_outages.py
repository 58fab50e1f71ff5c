"""Brokers and networks fail: appends wait, say so, go on, and nothing is lost or doubled."""

import random
import time
from collections.abc import Callable, Iterator
from datetime import timedelta
from pathlib import Path
from threading import Event, Thread

import pytest

from penstock.errors import LogError
from penstock.log.kafka import KafkaLog
from services.kafka import Cluster, free_ports
from services.proxy import Proxy
from tests.effort import SOAK
from tests.log.kafka.conftest import made
from tests.texts import refused

Frail = tuple[Cluster, Proxy]


class Story:
    """A log, somebody who appends 0, 1, 2, ... to it, one by one, and what the log said meanwhile."""

    def __init__(self, servers: str, prefix: str) -> None:
        self.said: list[str] = []
        self.log = KafkaLog.open(servers, prefix=prefix, say=self.said.append, patience=timedelta(seconds=90))
        self.log.create_topic("numbers", "n BIGINT NOT NULL")
        self.count = 0
        self._over = Event()
        self._failures: list[BaseException] = []
        self._thread = Thread(target=self._append, daemon=True)

    def _append(self) -> None:
        try:
            while not self._over.is_set():
                self.log.append("numbers", [{"n": self.count}])
                self.count += 1
        except BaseException as error:
            self._failures.append(error)

    def begin(self) -> None:
        self._thread.start()

    def reach(self, condition: Callable[[], bool]) -> None:
        until = time.monotonic() + 90
        while not condition():
            assert not self._failures, self._failures
            assert time.monotonic() < until, self.said
            time.sleep(0.01)

    def more(self, numbers: int) -> None:
        """Returns when so many more have been appended."""
        wanted = self.count + numbers
        self.reach(lambda: self.count >= wanted)

    def end(self) -> None:
        self._over.set()
        self._thread.join(90)
        assert not self._failures, self._failures
        numbers = [entry.value["n"] for entry in self.log.read("numbers")]  # type: ignore[index,call-overload]
        assert numbers == list(range(self.count)), "nothing is lost, nothing doubled"


@pytest.fixture
def story(frail_kafka: Frail, prefix: str) -> Iterator[Story]:
    cluster, proxy = frail_kafka
    story = Story(f"127.0.0.1:{proxy.port}", prefix)
    yield story
    proxy.heal()
    cluster.start()
    story.log.close()


def test_an_append_waits_for_a_killed_broker_and_says_so(frail_kafka: Frail, story: Story) -> None:
    cluster, _ = frail_kafka
    story.begin()
    story.more(5)
    cluster.kill(cluster.nodes[0])
    story.reach(lambda: bool(story.said))
    assert story.said[0].startswith("waiting for Kafka at")
    cluster.start()
    story.more(5)
    assert "goes on, after" in story.said[1]
    story.end()


@pytest.mark.parametrize("seed", range(20 if SOAK else 1))
def test_a_broker_that_is_killed_again_and_again_doubles_nothing(frail_kafka: Frail, story: Story, seed: int) -> None:
    cluster, _ = frail_kafka
    chance = random.Random(seed)
    story.begin()
    for _ in range(3):
        story.more(1)
        time.sleep(chance.random() / 10)
        cluster.kill(cluster.nodes[0])
        cluster.start()
    story.more(1)
    story.end()


def test_a_follower_goes_on_when_the_broker_is_back(frail_kafka: Frail, story: Story) -> None:
    cluster, _ = frail_kafka
    seen: list[int] = []
    entries = story.log.tail("numbers", start=0, stop=lambda: len(seen) >= 4)
    thread = Thread(target=lambda: seen.extend(e.value["n"] for e in entries), daemon=True)  # type: ignore[index,call-overload]
    story.log.append("numbers", [{"n": 0}, {"n": 1}])
    thread.start()
    cluster.kill(cluster.nodes[0])
    cluster.start()
    story.log.append("numbers", [{"n": 2}, {"n": 3}])
    thread.join(60)
    assert seen == [0, 1, 2, 3]


def test_connections_that_are_cut_are_made_again(frail_kafka: Frail, story: Story) -> None:
    _, proxy = frail_kafka
    story.begin()
    for _ in range(5):
        story.more(3)
        proxy.cut()
        proxy.heal()
    story.more(3)
    story.end()


def test_a_network_that_swallows_everything_is_waited_out(frail_kafka: Frail, story: Story) -> None:
    _, proxy = frail_kafka
    story.begin()
    story.more(3)
    proxy.swallow()
    story.reach(lambda: bool(story.said))
    proxy.heal()
    story.more(3)
    story.end()


def test_a_slow_network_only_makes_appends_slow(frail_kafka: Frail, story: Story) -> None:
    _, proxy = frail_kafka
    proxy.delay(0.05)
    story.begin()
    story.more(5)
    proxy.heal()
    story.end()
    assert story.said == []


def test_patience_ends_with_an_error() -> None:
    (port,) = free_ports(1)
    said: list[str] = []
    with refused("log/kafka-unreachable", port=port):
        KafkaLog.open(f"127.0.0.1:{port}", patience=timedelta(seconds=3), say=said.append)
    assert len(said) == 1


def test_an_append_that_runs_out_of_patience_keeps_nothing(frail_kafka: Frail, story: Story, prefix: str) -> None:
    cluster, _ = frail_kafka
    with KafkaLog.open(cluster.servers, prefix=prefix, patience=timedelta(seconds=1), say=story.said.append) as log:
        log.append("numbers", [{"n": 0}])
        cluster.kill(cluster.nodes[0])
        with pytest.raises(LogError, match="does not answer"):
            log.append("numbers", [{"n": 1}])
    cluster.start()
    story.log.append("numbers", [{"n": 2}])
    assert [entry.value["n"] for entry in story.log.read("numbers")] == [0, 2]  # type: ignore[index,call-overload]


@pytest.mark.kafka
@pytest.mark.skipif(not SOAK, reason="three nodes take long; run by make soak")
def test_of_three_nodes_each_may_go(tmp_path: Path, prefix: str) -> None:
    cluster = made(tmp_path, nodes=3)
    cluster.start()
    story = Story(cluster.servers, prefix)
    story.begin()
    for node in cluster.nodes:
        story.more(5)
        cluster.kill(node)
        story.more(5)
        cluster.start()
    story.end()
    story.log.close()
    cluster.stop()
