"""Spark reads the log: every type, range and hidden column, in batch and streaming, sealed or not, damaged or not."""

import random
import shutil
import struct
import subprocess
import sys
import threading
import zlib
from collections.abc import Callable, Iterator
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from itertools import pairwise
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, Row, SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from penstock.engine.source import read_topic, stream_topic
from penstock.log import Limits, Log, Place, Record

pytestmark = pytest.mark.spark

NOON = datetime(2024, 1, 1, 12, tzinfo=UTC)
FRAME = "shiftright(_place, 24) AS frame"
EVERY_TYPE = """
    b BOOLEAN, i8 TINYINT, i16 SMALLINT, i32 INT, i64 BIGINT, f32 FLOAT, f64 DOUBLE, short DECIMAL(10,2),
    long DECIMAL(38,10), text STRING, bytes BINARY, day DATE, at TIMESTAMP, plain TIMESTAMP_NTZ, list ARRAY<STRING>,
    lists ARRAY<ARRAY<INT>>, map MAP<STRING, DECIMAL(10,2)>, struct STRUCT<a: INT, b: STRING, c: ARRAY<BOOLEAN>>
"""


@pytest.fixture
def log(tmp_path: Path) -> Iterator[Log]:
    with Log.open(tmp_path / "log") as log:
        yield log


def rows_of(batch: DataFrame) -> list[dict[str, Any]]:
    return [row.asDict(recursive=True) for row in batch.collect()]


def ids(batch: DataFrame) -> list[int]:
    return sorted(row.id for row in batch.select("id").collect())


def after(seconds: float) -> datetime:
    return NOON + timedelta(seconds=seconds)


def numbered(start: int, end: int) -> list[dict[str, Any]]:
    return [{"id": number, "at": after(number)} for number in range(start, end)]


def with_orders(log: Log, *, partitions: int = 1) -> Log:
    log.create_topic("orders", "id BIGINT NOT NULL, at TIMESTAMP", event_time="at", key="id", partitions=partitions)
    return log


class Batches:
    """Runs a query and keeps what each of its batches held."""

    def __init__(self, rows: DataFrame, checkpoint: Path, *, then: Callable[[int], Any] = lambda batch: None) -> None:
        self.held: list[list[Row]] = []
        self._rows, self._checkpoint, self._then = rows, checkpoint, then

    def start(self, **trigger: Any) -> StreamingQuery:
        writer = self._rows.writeStream.foreachBatch(self._keep).option("checkpointLocation", str(self._checkpoint))
        return (writer.trigger(**trigger) if trigger else writer).start()

    def run(self) -> "Batches":
        """Until everything that is committed now has been read."""
        assert self.start(availableNow=True).awaitTermination(120)
        return self

    def ids(self) -> list[list[int]]:
        return [sorted(row.id for row in batch) for batch in self.held]

    def _keep(self, batch: DataFrame, number: int) -> None:
        self.held.append(batch.collect())
        self._then(number)


def some_of_every_type(count: int) -> list[dict[str, Any]]:
    """Rows in which every column is null now and then, and nested values too."""
    values: dict[str, Callable[[int], Any]] = {
        "b": lambda n: n % 2 == 0,
        "i8": lambda n: n % 256 - 128,
        "i16": lambda n: n * 31 - 32_768,
        "i32": lambda n: n * 65_537 - 2**31,
        "i64": lambda n: n * 2**40 - 2**63,
        "f32": lambda n: n / 4,
        "f64": lambda n: -n / 8,
        "short": lambda n: Decimal(n * 7 - 500) / 100,
        "long": lambda n: Decimal(f"{'-' * (n % 2)}123456789012345678901234567.{n:010}"),
        "text": lambda n: "naïve ☂ " * (n % 4),
        "bytes": lambda n: bytes(range(n % 7)),
        "day": lambda n: date(1969, 12, 1) + timedelta(days=n),
        "at": lambda n: after(n / 1000),
        "plain": lambda n: datetime(1969, 12, 31) + timedelta(microseconds=n),
        "list": lambda n: [None if m % 3 == 0 else f"e{m}" for m in range(n % 5)],
        "lists": lambda n: [None, [], [n, None]][: n % 4],
        "map": lambda n: {f"k{m}": None if m == 1 else Decimal(m) for m in range(n % 4)},
        "struct": lambda n: {"a": n, "b": None if n % 2 else "b", "c": [True, None, False][: n % 4]},
    }
    return [
        {name: None if (n + at) % 5 == 0 else value(n) for at, (name, value) in enumerate(values.items())}
        for n in range(count)
    ]


def shown(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """As Python shows what Spark gives: times without their zone."""
    return [row | {"at": row["at"] and row["at"].replace(tzinfo=None)} for row in rows]


def test_every_type_comes_back_as_it_was_appended(spark: SparkSession, log: Log) -> None:
    log.create_topic("all", EVERY_TYPE)
    rows = some_of_every_type(100)
    log.append("all", rows[:60])
    log.append("all", rows[60:])
    assert rows_of(read_topic(spark, log.folder, "all").orderBy("_place")) == shown(rows)
    log.seal()
    assert rows_of(read_topic(spark, log.folder, "all").orderBy("_place")) == shown(rows)


def test_hidden_columns_say_where_a_record_stands(spark: SparkSession, log: Log) -> None:
    with_orders(log, partitions=2)
    done = [log.append("orders", numbered(start, start + 10)) for start in (0, 10, 20)]
    want = where_they_stand(log)
    for _ in range(2):
        rows = read_topic(spark, log.folder, "orders")
        found = rows.select("_partition", "_offset", "_place", "id").collect()
        assert sorted(tuple(row) for row in found) == want
        times = {row.frame: row._appended_at for row in rows.selectExpr(FRAME, "_appended_at").collect()}
        assert times == {each.frame: each.appended_at.replace(tzinfo=None) for each in done}
        log.seal()


def where_they_stand(log: Log) -> list[tuple[Any, ...]]:
    columns = ("_partition", "_offset", "_place", "id")
    batches = [batch.to_pylist() for batch in log.batches("orders", columns=columns)]
    return sorted(tuple(row[name] for name in columns) for batch in batches for row in batch)


def test_deletions_headers_and_replaced_rows_are_hidden_columns(spark: SparkSession, log: Log) -> None:
    with_orders(log)
    log.append("orders", numbered(0, 1))
    old, new = {"id": 0, "at": NOON}, {"id": 0, "at": after(1)}
    log.append("orders", [Record(new, replaces=old, headers={"by": b"ann"}), Record({"id": 0}, deleted=True)])
    naive = NOON.replace(tzinfo=None)
    for _ in range(2):
        rows = read_topic(spark, log.folder, "orders").orderBy("_place")
        first, second, third = rows.select("*", "_deleted", "_replaces", "_headers").collect()
        assert (first._deleted, first._replaces, first._headers or {}) == (False, None, {})
        assert (second._replaces.asDict(), second._headers) == ({"id": 0, "at": naive}, {"by": b"ann"})
        assert (third._deleted, third.at, third._replaces) == (True, None, None)
        assert [row.id for row in rows.select("_replaces.id").collect()] == [None, 0, None]
        log.seal()


def test_only_the_columns_asked_for_are_read(spark: SparkSession, log: Log) -> None:
    log.create_topic("all", EVERY_TYPE)
    rows = some_of_every_type(50)
    log.append("all", rows)
    found = read_topic(spark, log.folder, "all").select("map", "i16", "_offset")
    assert "[map#" in plan(found) and "i32" not in plan(found)
    assert [row.i16 for row in found.collect()] == [row["i16"] for row in rows]
    assert found.count() == 50
    assert read_topic(spark, log.folder, "all").where("struct.a > 40").count() == sum(
        1 for row in rows if row["struct"] and row["struct"]["a"] > 40
    )


def plan(rows: DataFrame) -> str:
    return str(rows._jdf.queryExecution().executedPlan().toString())


def test_a_column_added_later_is_null_in_earlier_records(spark: SparkSession, log: Log) -> None:
    with_orders(log)
    log.append("orders", [Record({"id": 1}, replaces={"id": 1})])
    log.change_schema("orders", "id BIGINT NOT NULL, at TIMESTAMP, city STRING")
    log.append("orders", [Record({"id": 2, "city": "Graz"}, replaces={"id": 2, "city": "Linz"})])
    for _ in range(2):
        rows = read_topic(spark, log.folder, "orders").orderBy("id").select("id", "city", "_replaces").collect()
        assert [(row.id, row.city, row._replaces.city) for row in rows] == [(1, None, None), (2, "Graz", "Linz")]
        log.seal()


def test_a_stream_does_not_mind_columns_that_are_added_while_it_runs(
    spark: SparkSession, log: Log, tmp_path: Path
) -> None:
    stream = stream_topic(spark, with_orders(log).folder, "orders").select("id", "_deleted")
    log.change_schema("orders", "id BIGINT NOT NULL, at TIMESTAMP, city STRING")
    log.append("orders", [{"id": 1, "city": "Graz"}, Record({"id": 2}, deleted=True)])
    assert Batches(stream, tmp_path / "c").run().held == [[Row(id=1, _deleted=False), Row(id=2, _deleted=True)]]


def test_a_range_of_frames_or_offsets_is_read_exactly(spark: SparkSession, log: Log) -> None:
    with_orders(log)
    first, *_ = [log.append("orders", numbered(start, start + 10)).frame for start in range(0, 50, 10)]

    def read(**within: Any) -> list[int]:
        return ids(read_topic(spark, log.folder, "orders", **within))

    for _ in range(2):
        assert read(from_frame=first + 1, until_frame=first + 3) == list(range(10, 30))
        assert read(from_frame=first + 4) == list(range(40, 50))
        assert read(from_frame=first + 5) == []
        assert read(until_frame=first) == []
        assert read(from_offsets={0: 7}, until_offsets={0: 33}) == list(range(7, 33))
        assert read(from_frame=first + 1, until_offsets={0: 12}) == [10, 11]
        log.seal()


def test_offsets_are_counted_in_each_partition(spark: SparkSession, log: Log) -> None:
    with_orders(log, partitions=2)
    for partition in (0, 1, 0, 1):
        log.append("orders", numbered(0, 10), partition=partition)
    rows = read_topic(spark, log.folder, "orders", from_offsets={0: 5, 1: 18}, until_offsets={0: 12})
    found = [(row._partition, row._offset) for row in rows.select("_partition", "_offset").collect()]
    assert sorted(found) == [(0, offset) for offset in range(5, 12)] + [(1, 18), (1, 19)]


def test_a_range_beyond_the_end_is_refused(spark: SparkSession, log: Log) -> None:
    with_orders(log).append("orders", numbered(0, 3))
    with pytest.raises(Exception, match="frame 99 is beyond the end of the log"):
        read_topic(spark, log.folder, "orders", until_frame=99).collect()


def test_an_unknown_topic_is_refused_with_those_that_exist(spark: SparkSession, log: Log) -> None:
    with_orders(log)
    with pytest.raises(Exception, match=r'topic "orderz" does not exist(.|\n)*The topics are orders'):
        read_topic(spark, log.folder, "orderz")


def test_large_reads_are_divided_and_nothing_is_lost_or_doubled(spark: SparkSession, log: Log) -> None:
    log.create_topic("numbers", "id BIGINT")
    for start, count in ((0, 200_000), (200_000, 10), (200_010, 90_000)):
        log.append("numbers", pa.table({"id": list(range(start, start + count))}))
    for _ in range(2):
        rows = read_topic(spark, log.folder, "numbers")
        assert rows.rdd.getNumPartitions() == 2
        assert rows.selectExpr("count(*)", "count(distinct id)", "max(id)").collect()[0] == (290_010, 290_010, 290_009)
        assert rows.where("id != _offset").count() == 0
        log.seal()


def test_small_reads_are_one_task(spark: SparkSession, log: Log) -> None:
    with_orders(log).append("orders", numbered(0, 1000))
    assert read_topic(spark, log.folder, "orders").rdd.getNumPartitions() == 1


def write_staged(log: Log, batches: list[list[dict[str, Any]]]) -> Path:
    schema = pa.schema([("id", pa.int64()), ("at", pa.timestamp("us", "UTC"))])
    path = log.staging_path()
    with pa.ipc.new_file(str(path), schema) as writer:
        for rows in batches:
            writer.write_batch(pa.RecordBatch.from_pylist(rows, schema))
    return path


def test_staged_files_are_read_where_they_lie_and_after_sealing(spark: SparkSession, log: Log) -> None:
    with_orders(log).append("orders", numbered(0, 5))
    log.append_files({("orders", 0): [write_staged(log, [numbered(5, 12), numbered(12, 13), numbered(13, 20)])]})
    for _ in range(2):
        rows = read_topic(spark, log.folder, "orders").select("id", "_offset", "_place").orderBy("_place").collect()
        assert [(row.id, row._offset) for row in rows] == [(n, n) for n in range(20)]
        assert [row._place & 0xFFFFFF for row in rows] == [*range(5), *range(15)]
        assert ids(read_topic(spark, log.folder, "orders", from_offsets={0: 9}, until_offsets={0: 14})) == [
            *range(9, 14)
        ]
        log.seal()


def test_a_damaged_staged_file_is_refused(spark: SparkSession, log: Log) -> None:
    path = write_staged(with_orders(log), [numbered(0, 100)])
    log.append_files({("orders", 0): [path]})
    flip(path, path.read_bytes().rindex((99).to_bytes(8, "little")))
    with pytest.raises(Exception, match='topic "orders", partition 0, offsets 0 to 99 are damaged'):
        read_topic(spark, log.folder, "orders").collect()


def flip(path: Path, *at: int) -> None:
    data = bytearray(path.read_bytes())
    for each in at:
        data[each] ^= 0xFF
    path.write_bytes(data)


def named(log: Log) -> Path:
    """Three frames of one record each, and the file that they are in."""
    log.create_topic("names", "name STRING")
    for name in ("first", "second", "third"):
        log.append("names", [{"name": f"the {name} name"}])
    (path,) = (log.folder / "journal").iterdir()
    return path


def test_a_damaged_block_is_refused_with_its_offsets(spark: SparkSession, log: Log) -> None:
    path = named(log)
    flip(path, path.read_bytes().index(b"the second name"))
    with pytest.raises(Exception, match=r'topic "names", partition 0, offsets 1 to 1 are damaged(.|\n)*frame 2'):
        read_topic(spark, log.folder, "names").collect()
    assert read_topic(spark, log.folder, "names", from_offsets={0: 2}).collect() == [Row(name="the third name")]


def test_a_damaged_sealed_file_is_refused_with_its_offsets(spark: SparkSession, log: Log) -> None:
    named(log)
    log.seal()
    (path,) = (log.folder / "sealed").glob("*/names.0.arrow")
    flip(path, path.read_bytes().index(b"the second name"))
    with pytest.raises(Exception, match='topic "names", partition 0, offsets 0 to 2 are damaged'):
        read_topic(spark, log.folder, "names").collect()


def test_one_damaged_header_hides_nothing(spark: SparkSession, log: Log) -> None:
    path = named(log)
    flip(path, path.read_bytes().index(b'"base":1,'))
    assert read_topic(spark, log.folder, "names").count() == 3


def test_records_whose_headers_are_both_damaged_are_missed(spark: SparkSession, log: Log) -> None:
    path = named(log)
    flip(path, path.read_bytes().index(b'"base":1,'), path.read_bytes().rindex(b'"base":1,'))
    with pytest.raises(Exception, match='topic "names", partition 0, offsets 1 to 1 are damaged'):
        read_topic(spark, log.folder, "names").collect()
    assert read_topic(spark, log.folder, "names", from_offsets={0: 2}).collect() == [Row(name="the third name")]


def test_sealing_between_planning_and_reading_goes_unnoticed(spark: SparkSession, log: Log) -> None:
    with_orders(log, partitions=2)
    log.append("orders", numbered(0, 30))
    log.append_files({("orders", 1): [write_staged(log, [numbered(30, 40), numbered(40, 50)])]})
    rows = read_topic(spark, log.folder, "orders", from_offsets={0: 3})
    rows = rows.select("_partition", "_offset", "_place", "id")
    rows._jdf.queryExecution().toRdd().partitions()
    want = [row for row in where_they_stand(log) if row >= (0, 3)]
    log.seal()
    assert not list((log.folder / "staged").iterdir())
    assert sorted(tuple(row) for row in rows.collect()) == want


def test_topics_of_one_query_advance_together_and_never_inside_a_frame(
    spark: SparkSession, log: Log, tmp_path: Path
) -> None:
    for name in ("a", "b"):
        log.create_topic(name, "id BIGINT")
    streams = (stream_topic(spark, log.folder, name, max_records_per_batch=101) for name in "ab")
    a, b = (stream.selectExpr("id", FRAME, f"'{name}' AS topic") for stream, name in zip(streams, "ab", strict=True))
    batches = Batches(a.union(b), tmp_path / "c")
    query = batches.start()
    appending = threading.Thread(target=append_pairs, args=(log, 300))
    appending.start()
    appending.join()
    query.processAllAvailable()
    query.stop()
    held = [[{(row.frame, row.id) for row in batch if row.topic == name} for name in "ab"] for batch in batches.held]
    assert all(in_a == in_b for in_a, in_b in held)
    frames = [{frame for frame, _ in in_a} for in_a, _ in held if in_a]
    assert len(frames) >= 6 and all(max(one) < min(other) for one, other in pairwise(frames))
    assert sorted(row.id for batch in batches.held for row in batch) == sorted([*range(300), *range(300)])


def append_pairs(log: Log, count: int) -> None:
    for number in range(count):
        log.append_all({"a": [{"id": number}], "b": [{"id": number}]})
        if number % 100 == 99:
            log.seal()


def test_frames_of_other_topics_do_not_wake_a_query(spark: SparkSession, log: Log, tmp_path: Path) -> None:
    with_orders(log).append("orders", numbered(0, 3))
    log.create_topic("other", "x INT")
    batches = Batches(stream_topic(spark, log.folder, "orders", scope="mine"), tmp_path / "c")
    query = batches.start()
    query.processAllAvailable()
    for _ in range(3):
        log.append("other", [{"x": 1}])
    log.punctuate("orders", NOON, scope="theirs")
    query.processAllAvailable()
    assert batches.ids() == [[0, 1, 2]]
    log.punctuate("orders", NOON, scope="mine")
    query.processAllAvailable()
    log.append("orders", numbered(3, 4))
    query.processAllAvailable()
    query.stop()
    assert batches.ids() == [[0, 1, 2], [], [3]]


def test_a_batch_holds_at_most_the_records_that_it_may_over_all_topics(
    spark: SparkSession, log: Log, tmp_path: Path
) -> None:
    for name in ("a", "b"):
        log.create_topic(name, "id BIGINT")
    for count in (4, 4, 4, 20, 1, 1):
        log.append_all({"a": [{"id": count}] * count, "b": [{"id": count}] * count})
    a, b = (stream_topic(spark, log.folder, name, max_records_per_batch=17) for name in "ab")
    held = Batches(a.union(b), tmp_path / "c").run().held
    assert [len(batch) for batch in held] == [16, 8, 40, 4]


def test_available_now_reads_what_was_there_at_the_start(spark: SparkSession, log: Log, tmp_path: Path) -> None:
    with_orders(log).append("orders", numbered(0, 3))
    log.append("orders", numbered(3, 6))
    stream = stream_topic(spark, log.folder, "orders", max_records_per_batch=3)
    more = Batches(stream, tmp_path / "c", then=lambda number: log.append("orders", numbered(90, 91)))
    assert more.run().ids() == [[0, 1, 2], [3, 4, 5]]


def test_a_restarted_query_goes_on_where_it_stopped(spark: SparkSession, log: Log, tmp_path: Path) -> None:
    with_orders(log).append("orders", numbered(0, 3))
    stream = stream_topic(spark, log.folder, "orders")
    assert Batches(stream, tmp_path / "c").run().ids() == [[0, 1, 2]]
    log.seal()
    log.append("orders", numbered(3, 5))
    assert Batches(stream, tmp_path / "c").run().ids() == [[3, 4]]
    assert Batches(stream, tmp_path / "c").run().ids() == []


def test_a_checkpoint_of_another_log_is_refused(spark: SparkSession, log: Log, tmp_path: Path) -> None:
    with_orders(log).append("orders", numbered(0, 3))
    Batches(stream_topic(spark, log.folder, "orders"), tmp_path / "c").run()
    with Log.open(tmp_path / "log2") as other:
        with_orders(other).append("orders", numbered(0, 9))
        with pytest.raises(Exception, match="the checkpoint was made with another log"):
            Batches(stream_topic(spark, other.folder, "orders"), tmp_path / "c").run()


def test_a_checkpoint_beyond_the_end_of_the_log_is_refused(spark: SparkSession, log: Log, tmp_path: Path) -> None:
    with_orders(log).append("orders", numbered(0, 3))
    shutil.copytree(log.folder, tmp_path / "older")
    log.append("orders", numbered(3, 6))
    Batches(stream_topic(spark, log.folder, "orders"), tmp_path / "c").run()
    with pytest.raises(Exception, match="is beyond the end of the log"):
        Batches(stream_topic(spark, tmp_path / "older", "orders"), tmp_path / "c").run()


def test_stamps_are_the_watermark_before_each_frame(spark: SparkSession, log: Log, tmp_path: Path) -> None:
    want = random_events(with_orders(log, partitions=2), random.Random(7))
    delay = timedelta(seconds=5)
    for _ in range(2):
        rows = read_topic(spark, log.folder, "orders", watermark=delay, scope="mine")
        assert {row.id: row._watermark for row in rows.select("id", "_watermark").collect()} == want
        later = read_topic(spark, log.folder, "orders", watermark=delay, scope="mine", from_frame=40)
        found = {row.id: row._watermark for row in later.select("id", "_watermark").collect()}
        assert found == {each: want[each] for each in found} and 0 < len(found) < len(want)
        log.seal()
    stream = stream_topic(spark, log.folder, "orders", watermark=delay, scope="mine", max_records_per_batch=17)
    held = Batches(stream.select("id", "_watermark"), tmp_path / "c").run().held
    assert {row.id: row._watermark for batch in held for row in batch} == want


def random_events(log: Log, dice: random.Random) -> dict[int, datetime | None]:
    """Appends records and punctuation; the stamp that each record should have with a delay of 5 s, in plain Python."""
    stamps: dict[int, datetime | None] = {}
    none = level = datetime(1, 1, 1, tzinfo=UTC)
    for step in range(80):
        if dice.random() < 0.2:
            until, scope = after(step + dice.randrange(-20, 10)), dice.choice(("", "mine", "theirs"))
            log.punctuate("orders", until, scope=scope)
            level = level if scope == "theirs" else max(level, until)
            continue
        rows = {step * 10 + n: after(step + dice.randrange(-30, 5)) for n in range(dice.randrange(1, 9))}
        log.append("orders", [{"id": each, "at": at} for each, at in rows.items()])
        stamps |= dict.fromkeys(rows, None if level == none else level.replace(tzinfo=None))
        level = max(level, max(rows.values()) - timedelta(seconds=5))
        if step % 30 == 29:
            log.seal()
    return stamps


def test_without_a_delay_only_punctuation_moves_the_watermark(spark: SparkSession, log: Log) -> None:
    with_orders(log).append("orders", numbered(0, 2))
    log.append("orders", numbered(2, 3))
    log.punctuate("orders", after(1))
    log.append("orders", numbered(3, 4))
    rows = read_topic(spark, log.folder, "orders").orderBy("id").select("_watermark").collect()
    assert [row._watermark for row in rows] == [None, None, None, after(1).replace(tzinfo=None)]


@pytest.fixture
def short(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Log:
    """A log in stretches of four frames that are sealed only when asked: ids 0 to 2, 3 to 6, 7 and 8."""
    log = Log.open(tmp_path / "short", limits=Limits(stretch_frames=4))
    monkeypatch.setattr(log._sealing, "look", lambda stretch: None)
    with_orders(log)
    for number in range(9):
        log.append("orders", numbered(number, number + 1))
    return log


def stretch_file(log: Log, first: int) -> Path:
    return log.folder / "journal" / f"{first:020}.journal"


def lose(path: Path, header: bytes) -> None:
    """Damages both headers of the frame that has these bytes in its header."""
    data = path.read_bytes()
    flip(path, data.index(header), data.rindex(header))


def test_records_lost_at_the_end_of_a_stretch_are_missed(spark: SparkSession, short: Log, tmp_path: Path) -> None:
    lose(stretch_file(short, 0), b'"base":2,')
    ranges: tuple[dict[str, Any], ...] = ({}, {"from_frame": 3}, {"until_frame": 4}, {"until_offsets": {0: 3}})
    for within in ranges:
        with pytest.raises(Exception, match='topic "orders", partition 0, offsets 2 to 2 are damaged'):
            read_topic(spark, short.folder, "orders", **within).collect()
    with pytest.raises(Exception, match='topic "orders", partition 0, offsets 2 to 2 are damaged'):
        Batches(stream_topic(spark, short.folder, "orders"), tmp_path / "c").run()
    assert ids(read_topic(spark, short.folder, "orders", until_frame=3)) == [0, 1]
    assert ids(read_topic(spark, short.folder, "orders", from_frame=4)) == [*range(3, 9)]
    assert ids(read_topic(spark, short.folder, "orders", from_offsets={0: 3})) == [*range(3, 9)]


def test_records_of_a_stretch_that_is_gone_are_missed(spark: SparkSession, short: Log, tmp_path: Path) -> None:
    for name in ("journal", "sealed"):
        gone = stretch_file(short, 4)
        if name == "sealed":
            short._sealing.run()
            gone = short.folder / "sealed" / gone.stem
        kept = gone.rename(tmp_path / name)
        with Log.open(shutil.copytree(short.folder, tmp_path / f"without-{name}")) as copy:
            with pytest.raises(Exception, match='topic "orders", partition 0, offsets 3 to 6 are damaged'):
                read_topic(spark, copy.folder, "orders").collect()
            assert ids(read_topic(spark, copy.folder, "orders", from_offsets={0: 7})) == [7, 8]
        kept.rename(gone)


def test_a_range_that_ends_with_a_lost_frame_is_refused(spark: SparkSession, log: Log) -> None:
    lose(named(log), b'"base":1,')
    with pytest.raises(Exception, match='topic "names", partition 0, offsets 1 to 1 are damaged'):
        read_topic(spark, log.folder, "names", from_frame=2, until_frame=3).collect()
    assert read_topic(spark, log.folder, "names", from_frame=3).collect() == [Row(name="the third name")]


def test_a_last_frame_that_cannot_be_read_is_refused(spark: SparkSession, log: Log) -> None:
    lose(named(log), b'"base":2,')
    with pytest.raises(Exception, match="frames 3 to 3 cannot be read"):
        read_topic(spark, log.folder, "names").collect()
    assert read_topic(spark, log.folder, "names", until_frame=3).count() == 2


def test_a_header_lost_in_a_sealed_stretch_hides_only_where_its_records_stand(spark: SparkSession, short: Log) -> None:
    short._sealing.run()
    lose(short.folder / "sealed" / f"{4:020}" / "headers.journal", b'"base":4,')
    assert ids(read_topic(spark, short.folder, "orders")) == [*range(9)]
    assert ids(read_topic(spark, short.folder, "orders", from_frame=4, until_frame=7)) == [3, 4, 5]
    ranges: tuple[dict[str, Any], ...] = ({"from_frame": 5, "until_frame": 7}, {"from_frame": 3, "until_frame": 6})
    for within in ranges:
        with pytest.raises(Exception, match='topic "orders", partition 0, offsets 4 to 4 are damaged'):
            read_topic(spark, short.folder, "orders", **within).collect()


def test_frames_that_recovery_cut_off_are_forgotten(spark: SparkSession, log: Log) -> None:
    path = named(log)
    assert read_topic(spark, log.folder, "names").count() == 3
    lose(path, b'"base":2,')
    with Log.open(log.folder) as other:
        assert other.set_aside()
        other.append("names", [{"name": "a longer name " * 100}] * 3)
    rows = read_topic(spark, log.folder, "names").select("_offset", "name").orderBy("_offset").collect()
    assert [row._offset for row in rows] == [0, 1, 2, 3, 4]
    assert [row.name[:10] for row in rows] == ["the first ", "the second", *["a longer n"] * 3]


def test_a_note_may_hold_any_number(spark: SparkSession, log: Log) -> None:
    with_orders(log).append_all({"orders": numbered(0, 1)}, note={"lag": [123, 123456789]})
    (path,) = (log.folder / "journal").iterdir()
    rewrite_header(path, path.read_bytes().index(b'{"frame":1,'), b"[123,123456789]", b"[NaN,-Infinity]")
    assert ids(read_topic(spark, log.folder, "orders")) == [0]


@pytest.mark.parametrize(("old", "new"), [(b'"at":', b'"at";'), (b"[{", b"{{"), (b'{"frame"', b'5"frame"')])
def test_a_header_that_makes_no_sense_is_named(spark: SparkSession, log: Log, old: bytes, new: bytes) -> None:
    path = named(log)
    rewrite_header(path, path.read_bytes().index(b'{"frame":2,'), old, new)
    with pytest.raises(Exception, match=r"DamagedLog: the header of (frame 2|the frame at byte \d+) cannot be read"):
        read_topic(spark, log.folder, "names").collect()


def rewrite_header(path: Path, at: int, old: bytes, new: bytes) -> None:
    """Another header of the same length, checksums included, for the frame whose header is at byte `at`."""
    data = bytearray(path.read_bytes())
    length, body = struct.unpack_from("<IQ", data, at - 20)
    text = bytes(data[at : at + length]).replace(old, new, 1)
    crc = struct.pack("<I", zlib.crc32(text, zlib.crc32(data[at - 24 : at - 8])))
    second = at + length + body
    data[at : at + length] = data[second : second + length] = text
    data[at - 8 : at - 4] = data[second + length + 4 : second + length + 8] = crc
    path.write_bytes(data)


def test_a_log_is_known_by_its_preludes(spark: SparkSession, log: Log) -> None:
    path = named(log)
    (log.folder / "identity.json").write_text("{")
    assert read_topic(spark, log.folder, "names").count() == 3
    flip(path, 30)
    with pytest.raises(Exception, match=r'identity\.json" cannot be read'):
        read_topic(spark, log.folder, "names").collect()


def test_what_is_called_otherwise_is_no_stretch(spark: SparkSession, short: Log) -> None:
    shutil.copy(stretch_file(short, 4), short.folder / "journal" / "5.journal")
    (short.folder / "sealed" / "1").mkdir(parents=True)
    assert ids(read_topic(spark, short.folder, "orders")) == [*range(9)]


def test_a_sealed_file_that_is_gone_is_named(spark: SparkSession, log: Log) -> None:
    named(log)
    log.seal()
    (path,) = (log.folder / "sealed").glob("*/names.0.arrow")
    path.unlink()
    with pytest.raises(Exception, match=r'topic "names", partition 0, offsets 0 to 2 are damaged(.|\n)*There is no .*'):
        read_topic(spark, log.folder, "names").collect()


def test_a_staged_file_that_is_gone_is_named(spark: SparkSession, log: Log) -> None:
    log.append_files({("orders", 0): [write_staged(with_orders(log), [numbered(0, 100)])]})
    for path in (log.folder / "staged").iterdir():
        path.unlink()
    with pytest.raises(Exception, match='topic "orders", partition 0, offsets 0 to 99 are damaged'):
        read_topic(spark, log.folder, "orders").collect()


def test_a_range_of_places_is_read_exactly(spark: SparkSession, log: Log) -> None:
    with_orders(log, partitions=2)
    for start in range(0, 30, 10):
        log.append("orders", numbered(start, start + 10))
    log.append_files({("orders", 1): [write_staged(log, [numbered(30, 40), numbered(40, 50)])]})
    places = sorted(place for _, _, place, _ in where_they_stand(log))
    cuts = [0, places[0], places[4], places[10], places[17], places[29], places[33], places[44], places[-1] + 1]
    for _ in range(2):
        for low, high in [*pairwise(cuts), (places[3], places[4]), (places[4], places[3]), (0, places[-1] + 1)]:
            rows = read_topic(spark, log.folder, "orders", from_place=low, until_place=Place.of(high))
            found = sorted(row._place for row in rows.select("_place").collect())
            assert found == [place for place in places if low <= place < high]
        both = read_topic(spark, log.folder, "orders", from_place=Place.of(places[12]), until_offsets={0: 0, 1: 9})
        assert {row._partition for row in both.select("_partition").collect()} <= {1}
        assert all(row._place >= places[12] and row._offset < 9 for row in both.select("_place", "_offset").collect())
        log.seal()


def test_a_place_beyond_the_end_is_refused(spark: SparkSession, log: Log) -> None:
    with_orders(log).append("orders", numbered(0, 3))
    with pytest.raises(Exception, match="frame 99 is beyond the end of the log"):
        read_topic(spark, log.folder, "orders", from_place=Place(99)).collect()


def test_a_stream_starts_at_the_frame_asked_for(spark: SparkSession, log: Log, tmp_path: Path) -> None:
    with_orders(log).append("orders", numbered(0, 3))
    second = log.append("orders", numbered(3, 5)).frame
    stream = stream_topic(spark, log.folder, "orders", starting_frame=second)
    assert Batches(stream, tmp_path / "c").run().ids() == [[3, 4]]


CLUSTER = """
import sys
from datetime import timedelta
from penstock.engine import read_topic, session, stream_topic

log, checkpoint = sys.argv[1:]
quick = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
conf = {f"spark.{side}.extraJavaOptions": quick for side in ("driver", "executor")} | {"spark.executor.memory": "512m"}
with session("cluster", master="local-cluster[2,1,1024]", conf=conf) as spark:
    rows = read_topic(spark, log, "orders", watermark=timedelta(seconds=5))
    rows = rows.selectExpr("id", "_watermark", "spark_partition_id() AS task")
    print(*rows.selectExpr("count(*)", "sum(id)", "count(_watermark)", "max(task)").collect()[0])
    writer = stream_topic(spark, log, "orders", max_records_per_batch=50_000).writeStream.format("memory")
    query = writer.queryName("found").option("checkpointLocation", checkpoint).trigger(availableNow=True).start()
    assert query.awaitTermination(120)
    print(*spark.sql("SELECT count(*), sum(id) FROM found").collect()[0], query.lastProgress.batchId)
"""


def test_executors_of_their_own_read_the_log(log: Log, tmp_path: Path) -> None:
    with_orders(log, partitions=2)
    log.append("orders", numbered(0, 50_000))
    log.seal()
    log.append("orders", numbered(50_000, 90_000))
    log.append_files({("orders", 1): [write_staged(log, [numbered(90_000, 99_000), numbered(99_000, 100_000)])]})
    command = [sys.executable, "-c", CLUSTER, str(log.folder), str(tmp_path / "c")]
    ran = subprocess.run(command, capture_output=True, text=True, timeout=240, start_new_session=True, check=False)
    assert ran.returncode == 0, ran.stderr
    assert ran.stdout.split() == ["100000", "4999950000", "50000", "1", "100000", "4999950000", "1"]
