"""Spark reads a log whose old records are kept no longer."""

from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import pytest
from pyspark.errors import StreamingQueryException
from pyspark.sql import SparkSession

from penstock.engine.source import read_topic, stream_topic
from penstock.log import Log
from penstock.log.retention import Retention
from tests.test_source import Batches, ids

pytestmark = pytest.mark.spark

NOTHING = Retention(age=timedelta(0))


@pytest.fixture
def log(tmp_path: Path) -> Iterator[Log]:
    """Three stretches with ten records each of `t` and of `other`; the records of the first two are kept no longer."""
    with Log.open(tmp_path / "log") as log:
        log.create_topic("t", "id BIGINT NOT NULL", key="id", partitions=2)
        log.create_topic("other", "id BIGINT")
        for stretch in range(2):
            fill(log, stretch)
        log.change_retention("t", NOTHING)
        log.retain()
        log.change_retention("t", Retention())
        fill(log, 2)
        yield log


def fill(log: Log, stretch: int) -> None:
    rows = [{"id": each} for each in range(10 * stretch, 10 * stretch + 10)]
    log.append_all({"t": rows, "other": rows})
    log.seal()


def test_a_read_of_what_is_gone_is_refused_with_the_first_offset_that_is_there(spark: SparkSession, log: Log) -> None:
    with pytest.raises(Exception, match=r"offset 0 is kept no longer") as refused:
        read_topic(spark, log.folder, "t").count()
    assert f"The first offset that is there is {log.begins('t')[0]}." in str(refused.value)
    assert ids(read_topic(spark, log.folder, "other")) == list(range(30))


def test_what_is_kept_is_read_by_offsets_frames_and_places(spark: SparkSession, log: Log) -> None:
    kept = list(range(20, 30))
    begins = dict(enumerate(log.begins("t")))
    frame = next(iter(log.read("t"))).place.frame
    assert ids(read_topic(spark, log.folder, "t", from_offsets=begins)) == kept
    assert ids(read_topic(spark, log.folder, "t", from_frame=frame)) == kept
    with pytest.raises(Exception, match="kept no longer"):
        read_topic(spark, log.folder, "t", from_offsets={0: begins[0] - 1, 1: begins[1]}).count()


def test_a_stream_from_the_first_record_on_is_refused(spark: SparkSession, log: Log, tmp_path: Path) -> None:
    with pytest.raises(StreamingQueryException, match="kept no longer"):
        Batches(stream_topic(spark, log.folder, "t"), tmp_path / "checkpoint").run()


def test_a_quiet_query_goes_on_however_old_the_frame_is_at_which_it_stands(
    spark: SparkSession, log: Log, tmp_path: Path
) -> None:
    log.create_topic("quiet", "id BIGINT")
    log.append("quiet", [{"id": 1}])
    query = Batches(stream_topic(spark, log.folder, "quiet"), tmp_path / "checkpoint").run()
    for stretch in range(3, 6):
        fill(log, stretch)
    for topic in ("t", "other", "quiet"):
        log.change_retention(topic, NOTHING)
    assert {gone.topic for gone in log.retain()} == {"t", "other", "quiet"}
    log.change_retention("quiet", Retention())
    query.run()
    log.append("quiet", [{"id": 2}])
    fill(log, 6)
    assert query.run().ids() == [[1], [2]]


def test_a_query_that_was_stopped_for_too_long_is_told(spark: SparkSession, log: Log, tmp_path: Path) -> None:
    query = Batches(stream_topic(spark, log.folder, "other"), tmp_path / "checkpoint").run()
    fill(log, 3)
    log.change_retention("other", NOTHING)
    log.retain()
    with pytest.raises(StreamingQueryException, match="offset 30 is kept no longer"):
        query.run()


def test_records_that_go_between_planning_and_reading_are_told(spark: SparkSession, log: Log) -> None:
    rows = read_topic(spark, log.folder, "other")
    rows._jdf.queryExecution().toRdd().partitions()
    log.change_retention("other", NOTHING)
    log.retain()
    with pytest.raises(Exception, match="offset 0 is kept no longer"):
        rows.collect()
