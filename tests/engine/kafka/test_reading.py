"""Spark reads records that lie in Kafka, in batch and streaming, with the hidden columns."""

from datetime import UTC, datetime, timedelta
from pathlib import Path

from pyspark.sql import SparkSession

from penstock.engine.source import read_topic, stream_topic
from tests.engine.kafka.conftest import Topics
from tests.engine.kafka.mirrors import Mirror, Run

AT = 1_700_000_000_000_000
HIDDEN = "_partition", "_offset", "_appended_at", "_place", "_deleted", "_headers"


def send_orders(topics: Topics, mirror: Mirror) -> None:
    """Two partitions with three orders each."""
    topics.make("orders", 2)
    mirror.declare("orders", "id BIGINT, customer STRING", partitions=2)
    for number in range(6):
        topics.send("orders", f'{{"id": {number}, "customer": "c{number}"}}', partition=number % 2)
    topics.flush()


def test_a_batch_has_the_rows_of_its_frames_with_their_places(
    spark: SparkSession, topics: Topics, mirror: Mirror
) -> None:
    send_orders(topics, mirror)
    first = mirror.frame(Run("orders", 0, 0, 2), Run("orders", 1, 0, 1), at=AT)
    second = mirror.frame(Run("orders", 1, 1, 3), Run("orders", 0, 2, 3), at=AT + 1)
    read = read_topic(spark, mirror.folder, "orders").select("id", "customer", *HIDDEN)
    at = datetime.fromtimestamp(AT // 1_000_000, UTC)
    rows = sorted(tuple(row) for row in read.collect())
    assert [row[:4] + row[5:6] for row in rows] == [
        (0, "c0", 0, 0, (first << 24)),
        (1, "c1", 1, 0, (first << 24) + 2),
        (2, "c2", 0, 1, (first << 24) + 1),
        (3, "c3", 1, 1, (second << 24)),
        (4, "c4", 0, 2, (second << 24) + 2),
        (5, "c5", 1, 2, (second << 24) + 1),
    ]
    assert rows[0][4].replace(tzinfo=UTC) == at and rows[0][6:] == (False, None)
    assert rows[5][4].replace(tzinfo=UTC) == at + timedelta(microseconds=1)


def test_ranges_cut_frames_in_kafka_too(spark: SparkSession, topics: Topics, mirror: Mirror) -> None:
    send_orders(topics, mirror)
    frame = mirror.frame(Run("orders", 0, 0, 3), Run("orders", 1, 0, 3))

    def ids(**within: object) -> list[int]:
        return sorted(row.id for row in read_topic(spark, mirror.folder, "orders", **within).select("id").collect())  # type: ignore[arg-type]

    assert ids(from_place=(frame << 24) + 1, until_place=(frame << 24) + 5) == [1, 2, 3, 4]
    assert ids(from_offsets={0: 1, 1: 3}) == [2, 4]
    assert read_topic(spark, mirror.folder, "orders").count() == 6


def test_a_stream_follows_the_frames(spark: SparkSession, topics: Topics, mirror: Mirror, tmp_path: Path) -> None:
    send_orders(topics, mirror)
    second = timedelta(seconds=1)
    mirror.frame(Run("orders", 0, 0, 3, times=(AT, AT + 5_000_000)), at=AT)
    rows: list[tuple[int, object]] = []
    streamed = stream_topic(spark, mirror.folder, "orders", watermark=second).select("id", "_watermark")

    def drain() -> list[tuple[int, object]]:
        rows.clear()
        query = (
            streamed.writeStream.foreachBatch(lambda batch, _: rows.extend(tuple(row) for row in batch.collect()))
            .option("checkpointLocation", str(tmp_path / "checkpoint"))
            .trigger(availableNow=True)
            .start()
        )
        query.awaitTermination()
        return sorted(rows)

    assert drain() == [(0, None), (2, None), (4, None)]
    mirror.frame(Run("orders", 1, 0, 3, times=(AT, AT)), at=AT)
    passed = datetime.fromtimestamp(AT / 1e6, UTC).replace(tzinfo=None) + 4 * second
    assert drain() == [(1, passed), (3, passed), (5, passed)]
