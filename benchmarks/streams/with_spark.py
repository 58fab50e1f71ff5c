"""The jobs in Python on Spark: a function for the map, `transformWithState` for the others.

`python -m benchmarks.streams.with_spark --jobs count --log FOLDER`
"""

import json
import tempfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame, Row, SparkSession
from pyspark.sql import functions as sf
from pyspark.sql.streaming.stateful_processor import StatefulProcessor, StatefulProcessorHandle

from benchmarks.streams.jobs import Asked, asked, minute_of, write_answer
from benchmarks.streams.metering import Samples, figures
from penstock.engine import session, stream_topic
from penstock.log import Log


class Counting(StatefulProcessor):
    """How many bids an auction has had, and what they come to; told anew in every batch that has more of them."""

    def init(self, handle: StatefulProcessorHandle) -> None:
        self._held = handle.getValueState("held", "n BIGINT, total BIGINT")

    def handleInputRows(self, key: Any, rows: Iterator[Row], timerValues: Any) -> Iterator[Row]:  # noqa: N802, N803
        n, total = self._held.get() or (0, 0)
        for row in rows:
            n, total = n + 1, total + row.price
        self._held.update((n, total))
        yield Row(auction=key[0], n=n, total=total)

    def close(self) -> None:
        pass


class Closing(StatefulProcessor):
    """How many bids an auction has had in a minute; told when the watermark has passed the minute's end."""

    def init(self, handle: StatefulProcessorHandle) -> None:
        self._handle = handle
        self._held = handle.getValueState("held", "n BIGINT")

    def handleInputRows(self, key: Any, rows: Iterator[Row], timerValues: Any) -> Iterator[Row]:  # noqa: N802, N803
        held = self._held.get()
        if held is None:
            self._handle.registerTimer((int(key[1].timestamp()) + 60) * 1000)
        self._held.update(((held[0] if held else 0) + sum(1 for _ in rows),))
        yield from ()

    def handleExpiredTimer(self, key: Any, timerValues: Any, expiredTimerInfo: Any) -> Iterator[Row]:  # noqa: N802, N803
        held = self._held.get() or (0,)
        self._held.clear()
        yield Row(auction=key[0], start=key[1], n=held[0])

    def close(self) -> None:
        pass


def mapped(bids: DataFrame) -> DataFrame:
    cheaper = sf.udf(lambda price: price * 908 // 1000, "BIGINT")
    return bids.select("auction", "bidder", cheaper("price").alias("price"), "at")


def counted(bids: DataFrame) -> DataFrame:
    grouped = bids.groupBy("auction")
    return grouped.transformWithState(Counting(), "auction BIGINT, n BIGINT, total BIGINT", "Update", "None")


def windowed(bids: DataFrame) -> DataFrame:
    late = bids.withWatermark("at", "10 seconds").withColumn("start", sf.date_trunc("minute", "at"))
    grouped = late.groupBy("auction", "start")
    return grouped.transformWithState(Closing(), "auction BIGINT, start TIMESTAMP, n BIGINT", "Append", "EventTime")


JOBS: dict[str, tuple[Callable[[DataFrame], DataFrame], str]] = {
    "map": (mapped, "append"),
    "count": (counted, "update"),
    "window": (windowed, "append"),
}


def run(spark: SparkSession, asked: Asked, job: str, folder: Path) -> dict[str, float]:
    made, mode = JOBS[job]
    bids = stream_topic(spark, asked.log, "bid", max_records_per_batch=asked.batch)
    writer = made(bids.select("auction", "bidder", "price", "at")).writeStream.outputMode(mode).queryName(job)
    writer = writer.format("memory" if asked.answers else "noop").option("checkpointLocation", str(folder))
    with Samples() as samples:
        query = writer.trigger(availableNow=True).start()
        query.awaitTermination()
    with Log.open(asked.log, create=False) as log:
        return figures(query.recentProgress, samples, asked.warm, log)


def answer(spark: SparkSession, job: str) -> Iterable[Sequence[int]]:
    found = spark.table(job)
    match job:
        case "map":
            return [tuple(found.select(sf.count("*"), sf.sum("price")).first() or ())]
        case "count":
            latest = found.groupBy("auction").agg(sf.max("n"), sf.max("total"))
            return [tuple(row) for row in latest.collect()]
        case _:
            table: pa.Table = found.toArrow()
            columns = table["auction"].to_pylist(), minute_of(table["start"]).to_pylist(), table["n"].to_pylist()
            return list(zip(*columns, strict=True))


def main() -> None:
    this = asked()
    memory = {"spark.driver.memory": "4g"}
    with tempfile.TemporaryDirectory(dir=this.log.parent) as folder, session("rivals", conf=memory) as spark:
        for job in this.jobs:
            print(json.dumps(run(spark, this, job, Path(folder) / job)), flush=True)
            if this.answers:
                write_answer(this.answers, "spark", job, answer(spark, job))


if __name__ == "__main__":
    main()
