"""The engine: keyed counts against Spark's own aggregation, joins, many views, and what an empty batch costs.

`python -m benchmarks.engine [--quick] [--only NAME,...]`. Every comparison alternates its sides within one run, over
the same log; the time of a batch is what Spark's progress reports for it, the batch's frame in the log included.
"""

import argparse
import shutil
import statistics
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame, Row, SparkSession
from pyspark.sql import functions as sf
from pyspark.sql.streaming.query import StreamingQuery
from pyspark.sql.streaming.stateful_processor import StatefulProcessor, StatefulProcessorHandle

from benchmarks._batches import records_read
from benchmarks._report import report
from penstock.engine import session, stream_topic
from penstock.engine.run import Run, prepared
from penstock.log import Log
from penstock.model import pipeline_of

GOALS = {
    "keyed_count_large_against_spark": ">= 1.0",
    "keyed_count_small_against_spark": ">= 1.0",
    "keyed_count_against_python": ">= 25",
    "three_way_join_rows_per_s": ">= 250,000",
    "twenty_views_against_one": "<= 4",
    "nearly_empty_batch_ms": "<= 150",
}
EVENTS = "CREATE STREAM events (k BIGINT, v BIGINT);"
COUNTS = "SELECT k, count(*) AS n, sum(v) AS total FROM events GROUP BY k"
JOINED = """
    CREATE STREAM orders (customer BIGINT, product BIGINT, amount BIGINT);
    CREATE TABLE customers (id BIGINT PRIMARY KEY, city BIGINT);
    CREATE TABLE products (id BIGINT PRIMARY KEY, kind BIGINT);
    CREATE VIEW spend WITH (store = 'none') AS
      SELECT city, kind, sum(amount) AS spend, count(*) AS orders
      FROM orders JOIN customers ON customer = customers.id JOIN products ON product = products.id
      GROUP BY city, kind;"""

Times = list[tuple[int, float]]
"""For each batch that had rows: how many, and the seconds it took."""


class Bench:
    """One log in a folder of its own, and jobs over it."""

    def __init__(self, spark: SparkSession, folder: Path) -> None:
        self.spark = spark
        self.folder = folder
        self.log = Log.open(folder / "log")

    def penstock(self, name: str, sql: str, rows_per_batch: int) -> Times:
        """Drains the log by a pipeline; again under the same name, it goes on where it stood."""
        pipeline = pipeline_of(sql, name=name)
        pipeline = replace(pipeline, options=replace(pipeline.options, max_records_per_batch=rows_per_batch))
        home = self.folder / name
        run = Run(self.spark, self.log, home, prepared(self.spark, pipeline, self.log, home), lambda _: None)
        query = run.start(once=True)
        run.wait(query)
        return times_of(query, self.log)

    def native(self, name: str, made: Callable[[DataFrame], DataFrame], rows_per_batch: int) -> Times:
        """Drains the topic `events` by a query of Spark's own, into nothing."""
        stream = stream_topic(self.spark, self.log.folder, "events", max_records_per_batch=rows_per_batch)
        writer = made(stream).writeStream.format("noop").outputMode("update").queryName(name)
        query = (
            writer.option("checkpointLocation", str(self.folder / name / "checkpoint"))
            .trigger(availableNow=True)
            .start()
        )
        query.awaitTermination()
        return times_of(query, self.log)


def times_of(query: StreamingQuery, log: Log, *, also_empty: bool = False) -> Times:
    """Of every batch that read records, or of all."""
    ran = [each for each in query.recentProgress if each["durationMs"].get("addBatch")]
    found = [(records_read(each, log), each["durationMs"]["triggerExecution"] / 1000) for each in ran]
    return [(rows, seconds) for rows, seconds in found if rows or also_empty]


def rate(times: Times, warm: int) -> float:
    """Rows a second, median over the batches after the first `warm`."""
    return statistics.median(rows / seconds for rows, seconds in times[warm:])


def per_batch(times: Times, warm: int) -> float:
    return statistics.median(seconds for _, seconds in times[warm:])


def view(query: str, name: str = "answer", store: str = "none") -> str:
    return f"{EVENTS} CREATE VIEW {name} WITH (store = '{store}') AS {query};"


def random_events(count: int, keys: int, seed: int) -> pa.RecordBatch:
    chance = np.random.default_rng(seed)
    return pa.record_batch({"k": chance.integers(0, keys, count), "v": chance.integers(0, 1000, count)})


@contextmanager
def benched(spark: SparkSession, folder: Path) -> Iterator[Bench]:
    shutil.rmtree(folder, ignore_errors=True)
    bench = Bench(spark, folder)
    try:
        yield bench
    finally:
        bench.log.close()
        shutil.rmtree(folder, ignore_errors=True)


def counted(stream: DataFrame) -> DataFrame:
    return stream.groupBy("k").agg(sf.count("*").alias("n"), sf.sum("v").alias("total"))


def large_batches(spark: SparkSession, folder: Path, scale: int) -> dict[str, float]:
    """500,000 rows a batch over 100,000 keys: Spark's aggregation, ours, and ours with its changes in the log."""
    rows, batches, rounds = 500_000 // scale, 8, 3
    figures: dict[str, list[float]] = {"spark": [], "penstock": [], "durable": []}
    with benched(spark, folder) as bench:
        bench.log.create_topic("events", "k BIGINT, v BIGINT")
        for seed in range(batches):
            bench.log.append("events", random_events(rows, 100_000 // scale, seed))
        for each in range(rounds):
            figures["spark"].append(rate(bench.native(f"spark{each}", counted, rows), 3))
            figures["penstock"].append(rate(bench.penstock(f"ours{each}", view(COUNTS), rows), 3))
            figures["durable"].append(rate(bench.penstock(f"kept{each}", view(COUNTS, store="topic"), rows), 3))
    return {
        "keyed_count_large_spark_rows_per_s": statistics.median(figures["spark"]),
        "keyed_count_large_rows_per_s": statistics.median(figures["penstock"]),
        "keyed_count_large_with_topic_rows_per_s": statistics.median(figures["durable"]),
        "keyed_count_large_against_spark": ratio(figures["penstock"], figures["spark"]),
        "keyed_count_large_with_topic_against_spark": ratio(figures["durable"], figures["spark"]),
    }


def ratio(ours: Sequence[float], theirs: Sequence[float]) -> float:
    return statistics.median(a / b for a, b in zip(ours, theirs, strict=True))


def small_batches(spark: SparkSession, folder: Path, scale: int) -> dict[str, float]:
    """1,000 rows a batch over a million keys that are there already."""
    keys, rounds = 1_000_000 // scale, 3
    jobs: dict[str, Callable[[Bench, int], Times]] = {
        "spark": lambda bench, rows: bench.native("spark", counted, rows),
        "penstock": lambda bench, rows: bench.penstock("ours", view(COUNTS), rows),
        "durable": lambda bench, rows: bench.penstock("kept", view(COUNTS, store="topic"), rows),
    }
    found: dict[str, list[float]] = {name: [] for name in jobs}
    with benched(spark, folder) as bench:
        bench.log.create_topic("events", "k BIGINT, v BIGINT")
        bench.log.append("events", pa.record_batch({"k": np.arange(keys), "v": np.arange(keys)}))
        for job in jobs.values():
            job(bench, keys)
        for each in range(rounds):
            for seed in range(30):
                bench.log.append("events", random_events(1000, keys, 100 + 30 * each + seed))
            for name, job in jobs.items():
                found[name].append(per_batch(job(bench, 1000), 5))
    return {
        "keyed_count_small_spark_ms": 1000 * statistics.median(found["spark"]),
        "keyed_count_small_ms": 1000 * statistics.median(found["penstock"]),
        "keyed_count_small_with_topic_ms": 1000 * statistics.median(found["durable"]),
        "keyed_count_small_against_spark": ratio(found["spark"], found["penstock"]),
        "keyed_count_small_with_topic_against_spark": ratio(found["spark"], found["durable"]),
    }


class Counter(StatefulProcessor):
    """The keyed count as a user writes it in Python."""

    def init(self, handle: StatefulProcessorHandle) -> None:
        self._held = handle.getValueState("held", "n BIGINT, total BIGINT")

    def handleInputRows(self, key, rows, timerValues):  # type: ignore[no-untyped-def]  # noqa: N802, N803
        n, total = self._held.get() or (0, 0)
        for row in rows:
            n, total = n + 1, total + row.v
        self._held.update((n, total))
        yield Row(k=key[0], n=n, total=total)

    def close(self) -> None:
        pass


def counted_in_python(stream: DataFrame) -> DataFrame:
    return stream.groupBy("k").transformWithState(Counter(), "k BIGINT, n BIGINT, total BIGINT", "Update", "None")


def against_python(spark: SparkSession, folder: Path, scale: int) -> dict[str, float]:
    """The same count by `transformWithState` in Python; batches large enough that the fixed cost does not show."""
    rows = 100_000 // scale
    with benched(spark, folder) as bench:
        bench.log.create_topic("events", "k BIGINT, v BIGINT")
        for seed in range(5):
            bench.log.append("events", random_events(rows, 100_000 // scale, seed))
        python = rate(bench.native("python", counted_in_python, rows), 2)
        ours = rate(bench.penstock("ours", view(COUNTS), rows), 2)
    return {
        "keyed_count_python_rows_per_s": python,
        "keyed_count_beside_python_rows_per_s": ours,
        "keyed_count_against_python": ours / python,
    }


def three_way_join(spark: SparkSession, folder: Path, scale: int) -> dict[str, float]:
    """Orders with their customers and products, summed by city and kind; 500,000 orders a batch."""
    rows, customers, products = 500_000 // scale, 100_000 // scale, 10_000 // scale
    with benched(spark, folder) as bench:
        bench.log.create_topic("orders", "customer BIGINT, product BIGINT, amount BIGINT")
        bench.log.create_topic("customers", "id BIGINT NOT NULL, city BIGINT", key="id")
        bench.log.create_topic("products", "id BIGINT NOT NULL, kind BIGINT", key="id")
        ids = np.arange(customers)
        bench.log.append("customers", pa.record_batch({"id": ids, "city": ids % 1000}))
        bench.log.append("products", pa.record_batch({"id": ids[:products], "kind": ids[:products] % 50}))
        for seed in range(9):
            chance = np.random.default_rng(seed)
            columns: Mapping[str, np.ndarray] = {
                "customer": chance.integers(0, customers, rows),
                "product": chance.integers(0, products, rows),
                "amount": chance.integers(0, 1000, rows),
            }
            bench.log.append("orders", pa.record_batch(dict(columns)))
        times = bench.penstock("ours", JOINED, rows)
    return {"three_way_join_rows_per_s": rate(times, 4)}


def many_views(spark: SparkSession, folder: Path, scale: int) -> dict[str, float]:
    """One view against twenty of equal depth, 1,000 rows a batch."""
    one = view(COUNTS)
    names = [f"answer{i}" for i in range(20)]
    queries = [f"SELECT k % {100 + i} AS k, count(*) AS n, sum(v) AS total FROM events GROUP BY 1" for i in range(20)]
    twenty = EVENTS + "".join(
        f"CREATE VIEW {name} WITH (store = 'none') AS {query};" for name, query in zip(names, queries, strict=True)
    )
    found: dict[str, list[float]] = {"one": [], "twenty": []}
    with benched(spark, folder) as bench:
        bench.log.create_topic("events", "k BIGINT, v BIGINT")
        for each in range(3):
            for seed in range(30):
                bench.log.append("events", random_events(1000, 100_000, 30 * each + seed))
            found["one"].append(per_batch(bench.penstock("one", one, 1000), 8))
            found["twenty"].append(per_batch(bench.penstock("twenty", twenty, 1000), 8))
    return {
        "one_view_ms": 1000 * statistics.median(found["one"]),
        "twenty_views_ms": 1000 * statistics.median(found["twenty"]),
        "twenty_views_against_one": ratio(found["twenty"], found["one"]),
    }


def nearly_empty(spark: SparkSession, folder: Path, scale: int) -> dict[str, float]:
    """One row a batch, one level, its change in the log."""
    with benched(spark, folder) as bench:
        bench.log.create_topic("events", "k BIGINT, v BIGINT")
        for seed in range(80):
            bench.log.append("events", random_events(1, 100_000, seed))
        times = bench.penstock("ours", view(COUNTS, store="topic"), 1)
    return {"nearly_empty_batch_ms": 1000 * per_batch(times, 20)}


PARTS = {
    "large": large_batches,
    "small": small_batches,
    "python": against_python,
    "join": three_way_join,
    "views": many_views,
    "empty": nearly_empty,
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="smaller; for a look, not for the record")
    parser.add_argument("--only", help=f"some of: {', '.join(PARTS)}; not for the record")
    chosen = parser.parse_args()
    parts = chosen.only.split(",") if chosen.only else list(PARTS)
    folder = Path(tempfile.mkdtemp(prefix="penstock-bench-", dir="."))
    figures: dict[str, float] = {}
    try:
        with session("benchmark", conf={"spark.driver.memory": "4g"}) as spark:
            for name in parts:
                print(f"{name} ...", flush=True)
                figures |= PARTS[name](spark, folder / name, 10 if chosen.quick else 1)
    finally:
        shutil.rmtree(folder)
    report("engine-quick" if chosen.quick or chosen.only else "engine", figures, GOALS)


if __name__ == "__main__":
    main()
