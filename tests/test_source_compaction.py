"""Spark reads topics that were compacted: what is left of them, where it was."""

from collections.abc import Iterator
from pathlib import Path
from random import Random
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession

from penstock.engine.source import read_topic, stream_topic
from penstock.log import Limits, Log, Record
from tests.effort import SOAK
from tests.test_source import Batches

pytestmark = pytest.mark.spark
COLUMNS = ("_partition", "_offset", "_place", "k", "v", "_deleted")


@pytest.fixture
def log(tmp_path: Path) -> Iterator[Log]:
    with Log.open(tmp_path / "log", limits=Limits(stretch_frames=3)) as log:
        log.create_topic("t", "k INT, v STRING", key="k", partitions=2)
        yield log


def fill(log: Log, seed: int, frames: int) -> None:
    chance = Random(seed)
    for _ in range(frames):
        rows = [{"k": chance.randrange(8), "v": str(chance.random())} for _ in range(chance.randrange(1, 6))]
        log.append("t", [Record(row, deleted=chance.random() < 0.2) for row in rows])


def by_spark(rows: DataFrame) -> list[tuple[Any, ...]]:
    return sorted(tuple(row) for row in rows.select(*COLUMNS).collect())


def by_python(log: Log, **where: Any) -> list[tuple[Any, ...]]:
    found = log.batches("t", columns=list(COLUMNS), **where)
    return sorted(tuple(row[name] for name in COLUMNS) for batch in found for row in batch.to_pylist())


@pytest.mark.parametrize("seed", range(20 if SOAK else 3))
def test_both_readers_read_the_same(spark: SparkSession, log: Log, seed: int) -> None:
    for part in range(3):
        fill(log, 10 * seed + part, 7)
        log.compact(["t"])
    fill(log, 10 * seed + 3, 4)
    assert by_spark(read_topic(spark, log.folder, "t")) == by_python(log)
    chance = Random(seed)
    for _ in range(4):
        offset = chance.randrange(log.ends("t")[0])
        within = read_topic(spark, log.folder, "t", from_offsets={0: offset, 1: 2**40})
        assert by_spark(within) == by_python(log, partition=0, start=offset)
    assert read_topic(spark, log.folder, "t").count() == len(by_python(log))


def test_a_file_of_which_nothing_is_left_is_passed_over(spark: SparkSession, log: Log) -> None:
    log.append("t", [{"k": 1, "v": "a"}])
    log.seal()
    log.append("t", [{"k": 1, "v": "b"}])
    log.compact(["t"])
    assert [row.v for row in read_topic(spark, log.folder, "t").collect()] == ["b"]


def test_a_read_that_was_planned_before_reads_on(spark: SparkSession, log: Log) -> None:
    fill(log, 1, 9)
    log.seal()
    rows = read_topic(spark, log.folder, "t")
    rows._jdf.queryExecution().toRdd().partitions()
    log.compact(["t"])
    newest = rows.select(*COLUMNS).collect()
    assert sorted(tuple(row) for row in newest) == by_python(log)


def test_a_read_of_a_moment_is_told_when_newer_records_took_its_place(spark: SparkSession, log: Log) -> None:
    log.append("t", [{"k": 1, "v": "a"}])
    log.seal()
    rows = read_topic(spark, log.folder, "t")
    rows._jdf.queryExecution().toRdd().partitions()
    log.append("t", [{"k": 1, "v": "b"}])
    log.compact(["t"])
    with pytest.raises(Exception, match="was compacted while it was read"):
        rows.collect()


def test_a_stream_that_is_behind_reads_what_is_left(spark: SparkSession, log: Log, tmp_path: Path) -> None:
    query = Batches(stream_topic(spark, log.folder, "t", max_records_per_batch=3).select("k", "v"), tmp_path / "c")
    fill(log, 2, 5)
    query.run()
    fill(log, 3, 12)
    log.compact(["t"])
    fill(log, 4, 3)
    query.run()
    newest = {row.k: row.v for batch in query.held for row in batch}
    assert newest.items() >= {e.value["k"]: e.value["v"] for e in log.read("t")}.items()  # type: ignore[index,call-overload]


def test_a_damaged_list_of_files_is_named(spark: SparkSession, log: Log) -> None:
    fill(log, 5, 5)
    log.compact(["t"])
    (path, *_) = sorted((log.folder / "sealed").glob("*/files"))
    data = bytearray(path.read_bytes())
    data[30] ^= 0xFF
    path.write_bytes(data)
    with pytest.raises(Exception, match=r"the list of files in .* is damaged"):
        read_topic(spark, log.folder, "t").collect()
