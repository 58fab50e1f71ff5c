"""Stamps are a function of the log: partitions, producers, idleness and punctuation in any order, whatever the cuts,
sealed or not, with damaged preludes too; and the log's own watermark is the one that Spark reads.
"""

import shutil
from datetime import UTC, datetime, timedelta
from pathlib import Path
from random import Random

import pytest
from pyspark.sql import SparkSession

from penstock.engine.source import read_topic, stream_topic, watermark_at
from penstock.log import Limits, Log
from penstock.log.pace import NONE
from penstock.log.standing import By
from tests.effort import SOAK
from tests.log.paces import Model

pytestmark = pytest.mark.spark

START = datetime(2024, 1, 1, tzinfo=UTC)
DELAY = timedelta(seconds=5)
WAYS: tuple[By, ...] = ("stream", "partition", "producer")
SCOPES = ("", "mine", "theirs")
PRODUCERS = ("one", "two", "three")
Stamps = dict[int, datetime | None]


class Story:
    """A log that many write to, and the watermarks before each record by the plain rule, in seconds since the start."""

    def __init__(self, log: Log, random: Random) -> None:
        self.log = log
        self.stamps: dict[By, Stamps] = {way: {} for way in WAYS}
        self._random = random
        self._partitions = Model([5], ["mine"], ["0", "1", "2"])
        self._producers = Model([5], ["mine"])
        self._top = self._until = NONE
        self._sequence = self._now = 0
        log.create_topic("orders", "id BIGINT, at TIMESTAMP", partitions=3, event_time="at")

    def tell(self, frames: int) -> None:
        acts = [self._records] * 6 + [self._rest, self._produce, self._produce, self._punctuate]
        for _ in range(frames):
            self._now += 1
            self._random.choice(acts)(self._now)

    def level(self, way: By) -> datetime | None:
        least = {
            "stream": NONE if self._top == NONE else self._top - 5,
            "partition": self._partitions.levels[5, "mine"],
            "producer": self._producers.levels[5, "mine"],
        }
        found = max(least[way], self._until)
        return None if found == NONE else START + timedelta(seconds=found)

    def _records(self, now: int) -> None:
        partition, producer = self._random.randrange(3), self._random.choice([None, *PRODUCERS])
        times = [None if self._random.random() < 0.1 else now + self._random.randrange(-9, 3) for _ in range(3)]
        first = len(self.stamps["stream"])
        for way in WAYS:
            self.stamps[way] |= {first + each: self.level(way) for each in range(3)}
        rows = [{"id": first + n, "at": None if t is None else self._at(t)} for n, t in enumerate(times)]
        self._sequence += 1
        numbered = {} if producer is None else {"producer": producer, "sequence": self._sequence}
        self.log.append("orders", rows, partition=partition, **numbered)  # type: ignore[arg-type]
        top = max((time for time in times if time is not None), default=NONE)
        self._top = max(self._top, top)
        self._partitions.take("bring", str(partition), top)
        if producer is not None:
            self._producers.take("bring", producer, top)

    def _rest(self, now: int) -> None:
        scope, partition, producer = (
            self._random.choice(SCOPES),
            self._random.randrange(3),
            self._random.choice(PRODUCERS),
        )
        self.log.rest("orders", partitions=[partition], producers=[producer], scope=scope)
        self._partitions.take("rest", str(partition), scope)
        self._producers.take("rest", producer, scope)

    def _produce(self, now: int) -> None:
        producer, until = self._random.choice(PRODUCERS), now + self._random.randrange(-20, 5)
        if producer not in self._producers.members:
            kept = self._random.random() < 0.5
            self.log.producer(producer).join("orders", self._at(until) if kept else None)
            self._producers.take("join", producer, until if kept else NONE)
        elif self._random.random() < 0.3:
            self.log.producer(producer).leave("orders")
            self._producers.take("leave", producer)
        else:
            self.log.producer(producer).announce("orders", self._at(until))
            self._producers.take("announce", producer, until)

    def _punctuate(self, now: int) -> None:
        scope, until = self._random.choice(SCOPES), now - self._random.randrange(30)
        self.log.punctuate("orders", self._at(until), scope=scope)
        if scope != "theirs":
            self._until = max(self._until, until)

    def _at(self, seconds: int) -> datetime:
        return START + timedelta(seconds=seconds)


@pytest.mark.parametrize("seed", range(20 if SOAK else 2))
def test_stamps_are_the_plain_rule_over_the_log(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, seed: int
) -> None:
    with Log.open(tmp_path / "log", limits=Limits(stretch_frames=30)) as log:
        monkeypatch.setattr(log._sealing, "look", lambda stretch: None)
        story = Story(log, Random(seed))
        story.tell(100)
        check(spark, story, log.folder)
        log.seal()
        story.tell(50)
        check(spark, story, log.folder)
        for way in WAYS:
            assert followed(spark, story.log, way, tmp_path / way) == story.stamps[way]
        shutil.copytree(log.folder, tmp_path / "damaged")
        damage_preludes(tmp_path / "damaged")
        check(spark, story, tmp_path / "damaged")


def check(spark: SparkSession, story: Story, folder: Path) -> None:
    frame = story.log.mark().next_frame
    for way in WAYS:
        found = stamps(spark, folder, way)
        assert found == story.stamps[way]
        later = stamps(spark, folder, way, from_frame=frame - 25)
        assert later == {each: found[each] for each in later} and later
        last = watermark_at(spark, folder, "orders", frame, watermark=DELAY, watermark_by=way, scope="mine")
        assert story.log.watermark("orders", delay=DELAY, by=way, scope="mine") == story.level(way)
        assert story.level(way) == (None if last == NONE else datetime.fromtimestamp(last / 1e6, UTC))


def stamps(spark: SparkSession, folder: Path, way: By, from_frame: int = 0) -> Stamps:
    rows = read_topic(spark, folder, "orders", watermark=DELAY, watermark_by=way, scope="mine", from_frame=from_frame)
    return {row.id: zoned(row._watermark) for row in rows.select("id", "_watermark").collect()}


def followed(spark: SparkSession, log: Log, way: By, checkpoint: Path) -> Stamps:
    """As a stream, in small batches, stopped and started again."""
    found: Stamps = {}
    stream = stream_topic(
        spark, log.folder, "orders", watermark=DELAY, watermark_by=way, scope="mine", max_records_per_batch=60
    )

    def take(batch: object, number: int) -> None:
        found.update({row.id: zoned(row._watermark) for row in batch.collect()})  # type: ignore[attr-defined]

    selected = stream.select("id", "_watermark").writeStream.foreachBatch(take)
    query = selected.option("checkpointLocation", str(checkpoint)).trigger(availableNow=True).start()
    query.awaitTermination()
    return found


def zoned(time: datetime | None) -> datetime | None:
    return None if time is None else time.replace(tzinfo=UTC)


def damage_preludes(folder: Path) -> None:
    """Of all stretches that are not sealed but the first of them."""
    _, *later = sorted((folder / "journal").glob("*.journal"))
    assert later
    for path in later:
        data = bytearray(path.read_bytes())
        data[40] ^= 1
        path.write_bytes(data)
