"""What only the clock knows is written into the log, for one pipeline, where a replay meets it."""

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from penstock.engine.idleness import Idleness
from penstock.engine.topics import ensure_sources
from penstock.errors import ConditionFailed
from penstock.log import Epoch, Log
from penstock.model import pipeline_of
from tests.engine.conftest import Bench

START = datetime(2024, 1, 1, tzinfo=UTC)
SECOND = timedelta(seconds=1)
TWO = """
    CREATE STREAM a (id INT, at TIMESTAMP) WITH (event_time = 'at', watermark = '5 seconds', idle = '1 minute');
    CREATE STREAM b (id INT, at TIMESTAMP) WITH (event_time = 'at', watermark = '2 seconds', idle = '1 minute');
"""


def wide(by: str) -> str:
    return f"""
        CREATE STREAM s (id INT, at TIMESTAMP) WITH (
          event_time = 'at', watermark = '5 seconds', watermark_by = '{by}', idle = '1 minute', partitions = 3);
    """


class Shop:
    """A log and its runner, by one clock that stands still unless it is moved."""

    def __init__(self, folder: Path, sql: str) -> None:
        self.now = START
        self.pipeline = pipeline_of(sql, name="shop")
        self.log = Log.open(folder, clock=lambda: int(self.now.timestamp() * 1_000_000))
        ensure_sources(self.log, self.pipeline)
        self.epoch = Epoch("owner", self.log.raise_epoch("owner"))
        self.start()

    def start(self) -> None:
        self._idleness = Idleness(self.log, self.pipeline, self.epoch, lambda: self.now)

    def bring(self, topic: str, seconds: int, **how: Any) -> None:
        self.log.append(topic, [{"id": 1, "at": START + seconds * SECOND}], **how)

    def wait(self, seconds: int) -> int:
        """Time passes; how many marks are in the log then."""
        self.now += seconds * SECOND
        self._idleness.look()
        return sum(len(header.punctuation) for header in self.log.frames())

    def level(self, name: str = "s") -> int | None:
        stream: Any = self.pipeline.relation(name)
        found = self.log.watermark(name, delay=stream.watermark, by=stream.watermark_by, scope="shop")
        return None if found is None else (found - START) // SECOND


@pytest.fixture
def shop(tmp_path: Path) -> Callable[[str], Shop]:
    return lambda sql: Shop(tmp_path, sql)


def test_a_partition_that_is_silent_while_others_go_on_is_idle(shop: Callable[[str], Shop]) -> None:
    it = shop(wide("partition"))
    it.bring("s", 10, partition=0)
    it.bring("s", 20, partition=1)
    assert it.wait(59) == 0
    assert it.wait(30) == 0, "all are silent: nobody is ahead"
    it.bring("s", 70, partition=1)
    assert it.wait(1) == 0, "it is looked at only from time to time"
    assert it.wait(20) == 2, "0, and 2 that never had a record"
    assert it.level() == 65
    assert it.wait(20) == 2, "what is idle is not marked again"
    it.bring("s", 71, partition=0)
    it.bring("s", 80, partition=1)
    assert it.level() == 66


def test_a_runner_that_starts_later_knows_how_long_it_was_silent(shop: Callable[[str], Shop]) -> None:
    it = shop(wide("partition"))
    it.bring("s", 10, partition=0)
    it.bring("s", 10, partition=1)
    it.now += 50 * SECOND
    it.start()
    it.bring("s", 20, partition=2)
    assert it.wait(0) == 0
    it.now += 10 * SECOND
    it.start()
    assert it.wait(0) == 2


def test_a_producer_that_is_silent_while_others_go_on_is_timed_out(shop: Callable[[str], Shop]) -> None:
    it = shop(wide("producer"))
    one, two = it.log.producer("one"), it.log.producer("two")
    one.join("s")
    two.join("s", START)
    it.bring("s", 30, producer="two", sequence=0)
    assert it.level() is None and it.wait(60) == 2, "the whole stream is silent"
    it.bring("s", 40, producer="two", sequence=1)
    assert it.wait(15) == 3 and it.level() == 35
    one.announce("s", START + 50 * SECOND)
    two.announce("s", START + 45 * SECOND)
    assert it.level() == 45
    it.now += 70 * SECOND
    it.bring("s", 90, producer="one", sequence=0)
    assert it.wait(0) == 6 and it.level() == 85
    it.now += 70 * SECOND
    it.bring("s", 90, producer="two", sequence=2)
    assert it.wait(0) == 6, "one is silent, but two does not wait for it"


def test_a_silent_stream_follows_the_others(shop: Callable[[str], Shop]) -> None:
    it = shop(TWO)
    it.bring("a", 10)
    assert it.wait(50) == 0
    it.bring("b", 8)
    assert (it.wait(15), it.level("a"), it.level("b")) == (1, 6, 6)
    it.bring("b", 30)
    assert (it.wait(15), it.level("a"), it.level("b")) == (2, 28, 28)
    it.bring("a", 20)
    assert (it.wait(15), it.level("a")) == (2, 28)
    assert it.wait(100) == 2, "where all are silent, nobody follows"


def test_a_silent_stream_does_not_follow_one_that_has_no_watermark_yet(shop: Callable[[str], Shop]) -> None:
    it = shop(TWO + "CREATE STREAM c (id INT, at TIMESTAMP) WITH (event_time = 'at', watermark = '1 second');")
    it.bring("a", 10)
    it.now += 70 * SECOND
    it.bring("b", 60)
    assert it.wait(0) == 0
    it.bring("c", 20)
    assert (it.wait(15), it.level("a")) == (1, 19)


def test_a_runner_that_was_overtaken_marks_nothing(shop: Callable[[str], Shop]) -> None:
    it = shop(TWO)
    it.bring("a", 10)
    it.now += 70 * SECOND
    it.bring("b", 30)
    it.log.raise_epoch("owner")
    with pytest.raises(ConditionFailed):
        it.wait(0)


COUNTED = """
    CREATE STREAM s (id INT, at TIMESTAMP) WITH (event_time = 'at', watermark = '0 seconds',
      watermark_by = 'partition', idle = '200 milliseconds', partitions = 2);
    CREATE STREAM silent (at TIMESTAMP) WITH (event_time = 'at', watermark = '0 seconds', idle = '200 milliseconds');
    CREATE VIEW v WITH (emit = 'final') AS
      SELECT window.start, count(*) AS n FROM s GROUP BY window(at, '10 seconds');
    CREATE VIEW both WITH (emit = 'final') AS
      SELECT window.start, count(*) AS n FROM (SELECT at FROM s UNION ALL SELECT at FROM silent)
      GROUP BY window(at, '10 seconds');
"""


@pytest.mark.spark
def test_windows_close_when_a_partition_or_a_stream_is_idle(bench: Callable[..., Bench]) -> None:
    shop = bench(COUNTED)
    shop.log.append("silent", [{"at": START + SECOND}])
    shop.log.append("s", [{"id": 1, "at": START + SECOND}], partition=0)
    run = shop.run()
    query = run.start(once=False)
    seconds = iter(range(20, 1000))

    def done() -> bool:
        shop.log.append("s", [{"id": 2, "at": START + next(seconds) * SECOND}], partition=0)
        return all(any(batch.changes.get(view) for batch in shop.batches) for view in ("v", "both"))

    run.wait(query, stop=done)
    shop.check(every=5)
    assert {"start": START, "n": 1} in shop.content("v")
    assert {"start": START, "n": 2} in shop.content("both")
    said = [each for header in shop.log.frames() for each in header.punctuation]
    assert [each.partition for each in said if each.topic == "s"] == [1]
    assert {each.topic for each in said} == {"s", "silent"}
    shop.start()
    shop.drain()
    shop.check()
