"""The log: durable appends against what the disk can do, opening, compaction, and reading into Spark against parquet
files; the same appends and reads on Kafka. Queues have a benchmark of their own, Kafka compacts when it likes.

`python -m benchmarks.log [--quick]`. Every comparison alternates its two sides within one run; Kafka's jobs come after
the log's own. Where the broker's jars cannot be had, they are left out.
"""

import argparse
import multiprocessing
import os
import shutil
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from multiprocessing.synchronize import Barrier
from pathlib import Path
from threading import Event, Thread

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sf

from benchmarks._kafka import kafka_figures
from benchmarks._report import report
from penstock.engine import read_topic, session
from penstock.log import Limits, Log

SCHEMA = "id BIGINT, customer BIGINT, amount DOUBLE, at TIMESTAMP, city STRING"
ROW = {"id": 1, "customer": 2, "amount": 3.5, "at": datetime(2024, 1, 1, tzinfo=UTC), "city": "Basel"}
BATCH = 1000
GOALS = {
    "append_records_per_s": ">= 400,000 or 0.6 of the floor",
    "append_against_floor": ">= 0.6",
    "lone_record_p50_ms": "<= 10",
    "lone_record_p99_ms": "<= 10",
    "open_ten_million_s": "well under 1",
    "spark_sealed_against_parquet": ">= 0.7",
    "spark_journal_against_parquet": ">= 0.7",
    "spark_while_appending_against_parquet": ">= 0.7",
}


def events(count: int, first: int = 0) -> pa.RecordBatch:
    """`count` events, the same for the same `first`."""
    ids = np.arange(first, first + count, dtype=np.int64)
    cities = np.array(["Basel", "Bern", "Chur", "Genf", "Lugano", "Olten", "Thun", "Zug"])
    return pa.record_batch(
        {
            "id": ids,
            "customer": ids * 7919 % 100_003,
            "amount": (ids % 1000) / 8,
            "at": pa.array(1_700_000_000_000_000 + ids * 1000).cast(pa.timestamp("us", "UTC")),
            "city": pa.array(cities[ids % 8]),
        }
    )


@contextmanager
def new_log(folder: Path, limits: Limits | None = None) -> Iterator[Log]:
    shutil.rmtree(folder, ignore_errors=True)
    with Log.open(folder, limits=limits) as log:
        log.create_topic("events", SCHEMA, event_time="at")
        yield log


def durable_appends(folder: Path, rounds: int, commits: int) -> dict[str, float]:
    """1,000-record appends, and bare write-and-sync of as many bytes, in turn."""
    batch = events(BATCH)
    floors, ours = [], []
    with new_log(folder / "append") as log, open(folder / "floor", "wb", buffering=0) as file:
        log.append("events", batch)
        before = log.mark().end
        log.append("events", batch)
        data = bytes(log.mark().end - before)
        for _ in range(rounds):
            floors.append(per_second(commits, lambda: written(file.fileno(), data)))
            ours.append(per_second(commits, lambda: log.append("events", batch)))
    ratio = statistics.median(our / floor for our, floor in zip(ours, floors, strict=True))
    return {
        "floor_commits_per_s": statistics.median(floors),
        "append_records_per_s": statistics.median(ours) * BATCH,
        "append_against_floor": ratio,
    }


def written(file: int, data: bytes) -> None:
    os.write(file, data)
    os.fdatasync(file)


def per_second(times: int, action: Callable[[], object]) -> float:
    begun = time.perf_counter()
    for _ in range(times):
        action()
    return times / (time.perf_counter() - begun)


def lone_records(folder: Path, count: int) -> dict[str, float]:
    took = []
    with new_log(folder / "lone") as log:
        for _ in range(count):
            begun = time.perf_counter()
            log.append("events", [ROW])
            took.append((time.perf_counter() - begun) * 1000)
    cuts = statistics.quantiles(took, n=100)
    return {"lone_record_p50_ms": cuts[49], "lone_record_p99_ms": cuts[98]}


def append_many(folder: Path, commits: int, ready: Barrier) -> None:
    batch = events(BATCH)
    with Log.open(folder) as log:
        ready.wait()
        for _ in range(commits):
            log.append("events", batch)
        ready.wait()


def four_processes(folder: Path, commits: int) -> dict[str, float]:
    spawn = multiprocessing.get_context("spawn")
    ready = spawn.Barrier(5)
    with new_log(folder / "four") as log:
        workers = [spawn.Process(target=append_many, args=(log.folder, commits, ready)) for _ in range(4)]
        for worker in workers:
            worker.start()
        ready.wait()
        begun = time.perf_counter()
        ready.wait()
        took = time.perf_counter() - begun
        for worker in workers:
            worker.join()
        assert log.ends("events")[0] == 4 * commits * BATCH
        return {"four_processes_records_per_s": 4 * commits * BATCH / took}


def reading(folder: Path, records: int) -> dict[str, float]:
    """All records in Python, as Arrow columns and by a member of a group that commits after every 1,000."""
    with new_log(folder / "read") as log:
        for first in range(0, records, BATCH):
            log.append("events", events(BATCH, first))
        rates, groups = [], []
        for at in range(3):
            begun = time.perf_counter()
            assert sum(len(batch) for batch in log.batches("events")) == records
            rates.append(records / (time.perf_counter() - begun))
            begun, read = time.perf_counter(), 0
            with log.group(f"g{at}").join("events") as member:
                while entries := member.poll(BATCH):
                    read += len(entries)
                    member.commit()
            assert read == records
            groups.append(records / (time.perf_counter() - begun))
    return {"read_records_per_s": statistics.median(rates), "group_records_per_s": statistics.median(groups)}


def compacting(folder: Path, records: int) -> dict[str, float]:
    """A sealed topic in which every key occurs ten times, compacted to the newest of each."""
    rates, sizes = [], []
    for _ in range(3):
        shutil.rmtree(folder / "compact", ignore_errors=True)
        with Log.open(folder / "compact") as log:
            log.create_topic("events", SCHEMA, key="customer", event_time="at")
            for first in range(0, records, 10 * BATCH):
                batch = events(10 * BATCH, first)
                keys = pa.array(np.arange(first, first + 10 * BATCH, dtype=np.int64) % (records // 10))
                log.append("events", batch.set_column(1, "customer", keys))
            log.seal()
            before = stored(log)
            begun = time.perf_counter()
            (done,) = log.compact(["events"])
            took = time.perf_counter() - begun
            assert sum(len(batch) for batch in log.batches("events")) == records // 10, done
            rates.append(records / took)
            sizes.append(before / took / 1e6)
    return {"compact_records_per_s": statistics.median(rates), "compact_mb_per_s": statistics.median(sizes)}


def stored(log: Log) -> int:
    """Bytes of the sealed records."""
    return sum(path.stat().st_size for path in (log.folder / "sealed").rglob("*.arrow"))


def opening(folder: Path, records: int) -> dict[str, float]:
    """A log of ten million records, partly sealed, partly not, opened until its topic is known."""
    with new_log(folder / "open") as log:
        for first in range(0, records, 10_000):
            log.append("events", events(10_000, first))
    took = []
    for _ in range(5):
        begun = time.perf_counter()
        with Log.open(folder / "open") as log:
            assert log.ends("events") == (records,)
            took.append(time.perf_counter() - begun)
    return {"open_ten_million_s": statistics.median(took)}


def totals(frame: DataFrame) -> tuple[object, ...]:
    """Reads every column of every row, and answers with one row."""
    row = frame.agg(
        sf.count("*"), sf.sum("id"), sf.max("customer"), sf.sum("amount"), sf.max("at"), sf.max("city")
    ).first()
    assert row is not None
    return tuple(row)


def into_spark(spark: SparkSession, folder: Path, records: int, rounds: int) -> dict[str, float]:
    """The same rows from 1,000-record frames, from sealed files, and from parquet files, in turn."""
    with new_log(folder / "spark", Limits(stretch_bytes=1 << 40, stretch_frames=1 << 30)) as log:
        for first in range(0, records, BATCH):
            log.append("events", events(BATCH, first))
        until = log.mark().next_frame
        figures = compared(spark, log, until, records, rounds, name="journal")
        log.seal()
        figures |= compared(spark, log, until, records, rounds, name="sealed")
        with appending(log):
            figures |= compared(spark, log, until, records, rounds, name="while_appending")
    return figures


def compared(spark: SparkSession, log: Log, until: int, records: int, rounds: int, *, name: str) -> dict[str, float]:
    parquet = str(log.folder.parent / "parquet")
    if not Path(parquet).exists():
        read_topic(spark, log.folder, "events").repartition(2).write.parquet(parquet)
    ours, theirs = [], []
    for at in range(rounds + 1):
        mine, took = timed(lambda: totals(read_topic(spark, log.folder, "events", until_frame=until)))
        other, reference = timed(lambda: totals(spark.read.parquet(parquet)))
        assert mine == other, (mine, other)
        if at:  # the first round warms up both sides
            ours.append(records / took)
            theirs.append(records / reference)
    ratio = statistics.median(mine / other for mine, other in zip(ours, theirs, strict=True))
    return {
        f"spark_{name}_rows_per_s": statistics.median(ours),
        f"parquet_beside_{name}_rows_per_s": statistics.median(theirs),
        f"spark_{name}_against_parquet": ratio,
    }


def timed(action: Callable[[], tuple[object, ...]]) -> tuple[tuple[object, ...], float]:
    begun = time.perf_counter()
    return action(), time.perf_counter() - begun


@contextmanager
def appending(log: Log) -> Iterator[None]:
    """Appends up to 100 batches a second, to the topic that is read and to another, for as long as the block runs."""
    stop = Event()
    log.create_topic("others", SCHEMA, event_time="at")

    def work() -> None:
        while not stop.wait(0.01):
            log.append_all({"others": events(BATCH), "events": events(BATCH)})

    thread = Thread(target=work)
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="smaller; for a look, not for the record")
    quick = parser.parse_args().quick
    folder = Path(tempfile.mkdtemp(prefix="penstock-bench-", dir="."))
    scale = 10 if quick else 1
    try:
        figures = durable_appends(folder, 5, 400 // scale)
        figures |= lone_records(folder, 1000 // scale)
        figures |= four_processes(folder, 400 // scale)
        figures |= reading(folder, 200_000 // scale)
        figures |= compacting(folder, 1_000_000 // scale)
        figures |= kafka_figures(folder, events(BATCH), ROW, SCHEMA, scale)
        figures |= opening(folder, 10_000_000 // scale)
        with session("benchmark") as spark:
            figures |= into_spark(spark, folder, 10_000_000 // scale, 5)
    finally:
        shutil.rmtree(folder)
    report("log-quick" if quick else "log", figures, GOALS)


if __name__ == "__main__":
    main()
