"""Stamps are a function of the log: partitions, producers, idleness and punctuation in any order, whatever the cuts,
sealed or not, with damaged preludes too; and the log's own watermark is the one that Spark reads.
"""

import shutil
from datetime import UTC, datetime
from pathlib import Path
from random import Random

import pytest
from pyspark.sql import SparkSession

from penstock.engine.source import read_topic, stream_topic, watermark_at
from penstock.log import Limits, Log
from penstock.log.pace import NONE
from penstock.log.standing import By
from tests.effort import SOAK
from tests.marking import DELAY, WAYS, Stamps, Story

pytestmark = pytest.mark.spark


@pytest.mark.parametrize("seed", range(20 if SOAK else 2))
def test_stamps_are_the_plain_rule_over_the_log(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, seed: int
) -> None:
    with Log.open(tmp_path / "log", limits=Limits(stretch_frames=8)) as log:
        monkeypatch.setattr(log._sealing, "look", lambda *_: None)
        story = Story(log, Random(seed))
        story.tell(100)
        check(spark, story, log.folder)
        seen = {way: followed(spark, log, way, tmp_path / way) for way in WAYS}
        log.seal()
        story.tell(50)
        check(spark, story, log.folder)
        for way in WAYS:
            assert seen[way] | followed(spark, log, way, tmp_path / way) == story.stamps[way]
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
        last = watermark_at(spark, folder, "orders", frame, watermark=DELAY, watermark_by=way, scope="test")
        assert story.log.watermark("orders", delay=DELAY, by=way, scope="test") == story.level(way)
        assert story.level(way) == (None if last == NONE else datetime.fromtimestamp(last / 1e6, UTC))


def stamps(spark: SparkSession, folder: Path, way: By, from_frame: int = 0) -> Stamps:
    rows = read_topic(spark, folder, "orders", watermark=DELAY, watermark_by=way, scope="test", from_frame=from_frame)
    return {row.id: zoned(row._watermark) for row in rows.select("id", "_watermark").collect()}


def followed(spark: SparkSession, log: Log, way: By, checkpoint: Path) -> Stamps:
    """What is new to a stream with this checkpoint, in small batches."""
    found: Stamps = {}
    stream = stream_topic(
        spark, log.folder, "orders", watermark=DELAY, watermark_by=way, scope="test", max_records_per_batch=60
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
