"""Time: windows, sessions, sliding frames and joins within a range, against Spark's own streaming where it has them.

`python -m benchmarks.windows [--quick] [--only NAME,...]`. Every comparison alternates its sides within one run, over
the same log: Spark with its watermark and its state, we with ours; both write to nothing. Then what closing costs
against filling, what an open window takes in the state, and what ticks cost when nothing is due.
"""

import argparse
import shutil
import statistics
import tempfile
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sf

from benchmarks._report import report
from benchmarks.engine import Bench, Times, benched, ratio, times_of
from penstock.engine import session, stream_topic
from penstock.engine.checkpoint import address
from penstock.engine.lineage import newest

GOALS = {
    "tumbling_against_spark": ">= 2",
    "tumbling_many_keys_against_spark": ">= 2",
    "hopping_against_spark": ">= 2",
    "session_against_spark": ">= 1",
    "interval_join_against_spark": ">= 1",
    "closing_against_filling": "< 1",
}
ROUNDS = 4
MANY = 1_000_000
KEYS = 10_000
MANY_KEYS = 200_000
DAY = 1_704_067_200_000_000
DECLARED = """
    CREATE STREAM events (k BIGINT, v BIGINT, at TIMESTAMP) WITH (event_time = 'at', watermark = '10 seconds');
    CREATE STREAM others (k BIGINT, v BIGINT, at TIMESTAMP) WITH (event_time = 'at', watermark = '10 seconds');"""
TUMBLING = "SELECT k, window, count(*) AS n, sum(v) AS total FROM events GROUP BY k, window(at, '1 minute')"
HOPPING = "SELECT k, window, count(*) AS n, sum(v) AS t FROM events GROUP BY k, window(at, '1 minute', '6 seconds')"
SESSION = (
    "SELECT k, session_window, count(*) AS n, sum(v) AS t FROM events GROUP BY k, session_window(at, '20 seconds')"
)
SLIDING = """SELECT k, at, sum(v) OVER (PARTITION BY k ORDER BY at
    RANGE BETWEEN INTERVAL 1 MINUTE PRECEDING AND CURRENT ROW) AS t FROM events"""
INTERVAL = """SELECT e.k, e.v, o.v AS other FROM events e JOIN others o ON e.k = o.k
    AND o.at BETWEEN e.at AND e.at + INTERVAL 30 SECONDS"""
ASOF = "SELECT e.k, e.v, o.v AS other FROM events e ASOF JOIN others o MATCH_CONDITION (e.at >= o.at) ON e.k = o.k"


def events(rows: int, keys: int, batch: int, seconds: float) -> pa.RecordBatch:
    """Rows whose times go on through `seconds`, up to eight of them late."""
    chance = np.random.default_rng(batch)
    at = DAY + ((batch + np.sort(chance.random(rows))) * seconds * 1e6).astype(np.int64)
    late = (chance.random(rows) * min(8.0, seconds) * 1e6).astype(np.int64)
    columns = {"k": chance.integers(0, keys, rows), "v": chance.integers(0, 1000, rows)}
    return pa.record_batch({**columns, "at": pa.array(at - late, pa.timestamp("us", tz="UTC"))})


def view(query: str, name: str = "answer", options: str = "emit = 'final'") -> str:
    return f"CREATE VIEW {name} WITH (store = 'none'{', ' if options else ''}{options}) AS {query};"


def watermarked(stream: DataFrame) -> DataFrame:
    return stream.withWatermark("at", "10 seconds")


def tumbling(stream: DataFrame) -> DataFrame:
    return _summed(watermarked(stream).groupBy("k", sf.window("at", "1 minute")))


def hopping(stream: DataFrame) -> DataFrame:
    return _summed(watermarked(stream).groupBy("k", sf.window("at", "1 minute", "6 seconds")))


def sessions(stream: DataFrame) -> DataFrame:
    return _summed(watermarked(stream).groupBy("k", sf.session_window("at", "20 seconds")))


def _summed(grouped: object) -> DataFrame:
    return grouped.agg(sf.count("*").alias("n"), sf.sum("v").alias("total"))  # type: ignore[attr-defined, no-any-return]


def native(bench: Bench, name: str, made: DataFrame) -> Times:
    writer = made.writeStream.format("noop").outputMode("append").queryName(name)
    folder = bench.folder / name / "checkpoint"
    query = writer.option("checkpointLocation", str(folder)).trigger(availableNow=True).start()
    query.awaitTermination()
    return times_of(query, bench.log, also_empty=True)


def whole_rate(times: Times, warm: int) -> float:
    """Rows a second over all batches after the first ones: what closes windows may have no rows, and counts."""
    return sum(rows for rows, _ in times[warm:]) / sum(seconds for _, seconds in times[warm:])


def compared(  # noqa: PLR0913 (both sides, and over what)
    spark: SparkSession,
    folder: Path,
    name: str,
    query: str,
    made: Callable[[DataFrame], DataFrame],
    rows: int,
    keys: int = KEYS,
) -> dict[str, float]:
    """Rounds of each side, one after the other; the first one warms both up."""
    ours, theirs = [], []
    with benched(spark, folder) as bench:
        fill(bench, ["events"], rows, keys, 8, 30.0)
        sql = DECLARED.split(";")[0] + ";" + view(query)
        for each in range(1 + ROUNDS):
            stream = stream_topic(spark, bench.log.folder, "events", max_records_per_batch=rows)
            theirs.append(whole_rate(native(bench, f"spark{each}", made(stream)), 2))
            ours.append(whole_rate(bench.penstock(f"ours{each}", sql, rows), 2))
    return {
        f"{name}_spark_rows_per_s": statistics.median(theirs[1:]),
        f"{name}_rows_per_s": statistics.median(ours[1:]),
        f"{name}_against_spark": ratio(ours[1:], theirs[1:]),
    }


def fill(bench: Bench, topics: list[str], rows: int, keys: int, batches: int, seconds: float) -> None:
    for topic in topics:
        bench.log.create_topic(topic, "k BIGINT, v BIGINT, at TIMESTAMP", event_time="at")
    for batch in range(batches):
        tables = {topic: events(rows, keys, batch * 2 + i, seconds / 2) for i, topic in enumerate(topics)}
        bench.log.append_all(tables)


def joined(spark: SparkSession, folder: Path, scale: int) -> dict[str, float]:
    """Two streams, within half a minute; Spark's own join of streams has the same condition and both watermarks."""
    rows, ours, theirs = 100_000 // scale, [], []
    with benched(spark, folder) as bench:
        fill(bench, ["events", "others"], rows, 20_000, 8, 30.0)
        for each in range(3):
            left, right = (
                watermarked(stream_topic(spark, bench.log.folder, topic, max_records_per_batch=2 * rows)).alias(topic)
                for topic in ("events", "others")
            )
            condition = "events.k = others.k AND others.at BETWEEN events.at AND events.at + INTERVAL 30 SECONDS"
            made = left.join(right, sf.expr(condition)).select("events.k", "events.v", "others.v")
            theirs.append(whole_rate(native(bench, f"spark{each}", made), 2))
            ours.append(whole_rate(bench.penstock(f"ours{each}", DECLARED + view(INTERVAL, options=""), 2 * rows), 2))
    return {
        "interval_join_spark_rows_per_s": statistics.median(theirs),
        "interval_join_rows_per_s": statistics.median(ours),
        "interval_join_against_spark": ratio(ours, theirs),
    }


def alone(spark: SparkSession, folder: Path, scale: int) -> dict[str, float]:
    """What Spark's streaming does not have: frames that slide with each row, as-of joins."""
    rows = 100_000 // scale
    with benched(spark, folder) as bench:
        fill(bench, ["events", "others"], rows, 10_000, 6, 30.0)
        sliding = bench.penstock("sliding", DECLARED + view(SLIDING, options=""), 2 * rows)
        asof = bench.penstock("asof", DECLARED + view(ASOF, options=""), 2 * rows)
    return {"sliding_rows_per_s": whole_rate(sliding, 2), "asof_join_rows_per_s": whole_rate(asof, 2)}


def closing(spark: SparkSession, folder: Path, scale: int) -> dict[str, float]:
    """One window of 100,000 keys: filling it, and closing it."""
    keys = 100_000 // scale
    with benched(spark, folder) as bench:
        bench.log.create_topic("events", "k BIGINT, v BIGINT, at TIMESTAMP", event_time="at")
        sql = DECLARED.split(";")[0] + ";" + view(TUMBLING)
        fills, closes = [], []
        for window in range(6):
            rows = events(4 * keys, keys, 0, 40.0)
            moved = pa.compute.add(rows["at"], pa.scalar((window * 60 + 10) * 1_000_000, pa.duration("us")))
            bench.log.append("events", rows.set_column(2, "at", moved))
            fills.append(bench.penstock("ours", sql, 10**9)[-1][1])
            last = pa.array([DAY + (window * 60 + 70) * 1_000_000 + 1], pa.timestamp("us", tz="UTC"))
            bench.log.append("events", pa.record_batch({"k": pa.array([0]), "v": pa.array([0]), "at": last}))
            closes.append(bench.penstock("ours", sql, 10**9)[-1][1])
    return {
        "filling_a_window_s": statistics.median(fills[2:]),
        "closing_a_window_s": statistics.median(closes[2:]),
        "closing_against_filling": statistics.median(closes[2:]) / statistics.median(fills[2:]),
    }


def state(spark: SparkSession, folder: Path, scale: int) -> dict[str, float]:
    """What a window of one key takes in the state while it is open: all that is live then, less what is left when no
    window is open.
    """
    rows = events(400_000 // scale, 100_000 // scale, 0, 4.0)  # within eight seconds: no row ends a window of another
    found: dict[str, float] = {}
    for name, query in (("tumbling", TUMBLING), ("hopping", HOPPING), ("session", SESSION)):
        with benched(spark, folder) as bench:
            bench.log.create_topic("events", "k BIGINT, v BIGINT, at TIMESTAMP", event_time="at")
            sql = DECLARED.split(";")[0] + ";" + view(query)
            bench.log.append("events", rows)
            bench.penstock("ours", sql, 10**9)
            filled = state_bytes(bench, "ours")
            bench.log.punctuate("events", datetime.fromtimestamp(DAY / 1e6 + 3600, UTC))
            bench.penstock("ours", sql, 10**9)
            floor = state_bytes(bench, "ours")
            found[f"{name}_state_bytes_per_open_window"] = (filled - floor) / groups(spark, query, rows)
    return found


def state_bytes(bench: Bench, name: str) -> int:
    """Of the pages that the state has now; what the checkpoint keeps of earlier batches is not counted."""
    lineage = newest(bench.folder / name, name)
    assert lineage is not None
    states = bench.spark.read.format("statestore").option("path", address(lineage.checkpoint))
    found = 0
    for operator in (lineage.checkpoint / "state").glob("[0-9]*"):
        pages = states.option("operatorId", operator.name).option("stateVarName", "pages").load()
        found += pages.selectExpr("sum(length(user_map_value.value)) AS n").collect()[0].n or 0
    return found


def groups(spark: SparkSession, query: str, rows: pa.RecordBatch) -> int:
    """How many windows the rows are in, each key's its own."""
    batch = spark.newSession()
    batch.createDataFrame(pa.Table.from_batches([rows])).createOrReplaceTempView("events")
    return batch.sql(query).count()


def ticking(spark: SparkSession, folder: Path, scale: int) -> dict[str, float]:
    """Batches of one row that move the watermark, with twenty views of windows of their own lengths, none of which is
    due, and with twenty views without windows.
    """
    windows = "SELECT k, window, count(*) AS n FROM events GROUP BY k, window(at, '{} hours')"
    plain = "SELECT k, v % {} AS part, count(*) AS n FROM events GROUP BY k, v % {}"
    found = {}
    for name, query in (("windows", windows), ("plain", plain)):
        with benched(spark, folder) as bench:
            bench.log.create_topic("events", "k BIGINT, v BIGINT, at TIMESTAMP", event_time="at")
            views = "".join(view(query.format(i + 1, i + 1), f"v{i}", "") for i in range(20))
            sql = DECLARED.split(";")[0] + ";" + views
            for batch in range(24 // min(scale, 2)):
                bench.log.append("events", events(1, 10, batch, 1.0))
            found[name] = statistics.median(seconds for _, seconds in bench.penstock("ours", sql, 1)[8:])
    return {
        "ticks_of_twenty_views_ms": 1000 * found["windows"],
        "no_ticks_of_twenty_views_ms": 1000 * found["plain"],
        "ticks_against_none": found["windows"] / found["plain"],
    }


PARTS: dict[str, Callable[[SparkSession, Path, int], dict[str, float]]] = {
    "tumbling": lambda spark, folder, scale: compared(spark, folder, "tumbling", TUMBLING, tumbling, MANY // scale),
    "tumbling_many_keys": lambda spark, folder, scale: compared(
        spark, folder, "tumbling_many_keys", TUMBLING, tumbling, MANY // scale, MANY_KEYS // scale
    ),
    "hopping": lambda spark, folder, scale: compared(spark, folder, "hopping", HOPPING, hopping, MANY // 10 // scale),
    "session": lambda spark, folder, scale: compared(spark, folder, "session", SESSION, sessions, MANY // 10 // scale),
    "interval": joined,
    "alone": alone,
    "closing": closing,
    "state": state,
    "ticking": ticking,
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--only", default=",".join(PARTS))
    asked = parser.parse_args()
    names = asked.only.split(",")
    folder = Path(tempfile.mkdtemp(prefix="penstock-bench-", dir="."))
    figures: dict[str, float] = {}
    try:
        with session("benchmark", conf={"spark.driver.memory": "4g"}) as spark:
            for name in names:
                figures |= PARTS[name](spark, folder / "bench", 20 if asked.quick else 1)
                print(f"{name}: done")
    finally:
        shutil.rmtree(folder)
    whole = names == list(PARTS) and not asked.quick
    report("windows" if whole else "windows-quick", figures, GOALS if whole else {})


if __name__ == "__main__":
    main()
