"""Spark reading topics of Kafka: by our reader, and by Spark's own connector with `from_json`, on the same topic.

`python -m benchmarks.kafka [--quick]`. A broker of its own on this machine; the sides alternate within one run, each
aggregating all columns, or one of five; also with the watermark before each record, which ours has from the journal and
the connector would have from an operator. Needs Maven, which fetches the broker, the clients and the connector.
"""

import argparse
import json
import statistics
import tempfile
import time
from collections.abc import Callable, Mapping
from datetime import timedelta
from pathlib import Path

from confluent_kafka import Producer
from pyspark.sql import Column, DataFrame, SparkSession, Window
from pyspark.sql import functions as sf

from benchmarks._report import report
from benchmarks.log import SCHEMA, events
from penstock.engine import read_topic, session
from penstock.log.kafka import OrderedKafkaLog
from penstock.log.kafka.avro import Values
from penstock.log.topic import Topic
from penstock.log.values import Avro
from services.jars import jars
from services.kafka import Cluster, cluster_in
from services.kafka.client import PACKAGES as CLIENT
from services.kafka.client import make_reader

CONNECTOR = (
    "org.apache.spark:spark-sql-kafka-0-10_2.13:4.2.0",
    "org.apache.spark:spark-token-provider-kafka-0-10_2.13:4.0.0",
    "org.apache.commons:commons-pool2:2.13.1",
)
"""The newest that the mirror of the machine of the committed results has; it runs on Spark 4.3."""
PREFIX = "bench."
PARTITIONS = 2
CHUNK = 10_000
DELAY = timedelta(seconds=10)
GOALS = {"reader_against_connector": ">= 1"}


def main() -> None:
    asked = argparse.ArgumentParser(description=__doc__)
    asked.add_argument("--quick", action="store_true")
    quick = asked.parse_args().quick
    records, rounds = (100_000, 1) if quick else (1_000_000, 5)
    make_reader()
    with tempfile.TemporaryDirectory(prefix="penstock-bench-") as folder:
        cluster = cluster_in(Path(folder, "kafka"), dies_with_us=True)
        cluster.start()
        try:
            figures = measured(cluster, Path(folder), records, rounds)
        finally:
            cluster.stop()
    report("kafka-quick" if quick else "kafka", figures, GOALS)


def measured(cluster: Cluster, folder: Path, records: int, rounds: int) -> dict[str, float]:
    found = jars("spark-kafka", [*CONNECTOR, *CLIENT], alone=True).glob("*.jar")
    conf = {"spark.jars": ",".join(map(str, found))}
    with OrderedKafkaLog.open(cluster.servers, prefix=PREFIX) as log:
        log.create_topic("events", SCHEMA, partitions=PARTITIONS, event_time="at")
        log.create_topic("encoded", SCHEMA, partitions=PARTITIONS, values=Avro())
        fill(cluster, records, log.topic("encoded"))
    mirror, begun = folder / "mirror", time.perf_counter()
    with OrderedKafkaLog.open(cluster.servers, prefix=PREFIX, folder=mirror, admits=True) as log:
        log.settle()
        admitted = time.perf_counter() - begun
        with session("kafka", master="local[2]", conf=conf) as spark:
            took = alternated(jobs(spark, mirror, cluster.servers), rounds)
    rates = {f"{name}_records_per_s": records / statistics.median(times) for name, times in took.items()}
    return {
        **rates,
        "reader_against_connector": ratio(took, "connector", "reader"),
        "reader_against_connector_one_column": ratio(took, "connector_one_column", "reader_one_column"),
        "admitted_records_per_s": 2 * records / admitted,
    }


def jobs(spark: SparkSession, mirror: Path, servers: str) -> dict[str, Callable[[], DataFrame]]:
    sides: dict[str, Callable[[], DataFrame]] = {
        "reader": lambda: read_topic(spark, mirror, "events"),
        "connector": lambda: connected(spark, servers),
        "reader_avro": lambda: read_topic(spark, mirror, "encoded"),
    }
    found: dict[str, Callable[[], DataFrame]] = {}
    for name, read in sides.items():
        found[name] = lambda read=read: all_columns(read())  # type: ignore[misc]
        found[f"{name}_one_column"] = lambda read=read: one_column(read())  # type: ignore[misc]
    found["stamped_reader"] = lambda: with_stamps(
        read_topic(spark, mirror, "events", watermark=DELAY, watermark_by="partition")
    )
    found["stamped_connector"] = lambda: with_stamps(stamped(connected(spark, servers, "partition", "offset")))
    return found


def fill(cluster: Cluster, records: int, encoded: Topic) -> None:
    """The same rows in JSON and in Avro, as other programs would write them."""
    producer = Producer(
        {"bootstrap.servers": cluster.servers, "linger.ms": 20, "queue.buffering.max.messages": 500_000}
    )
    avro = Values(encoded)
    for first in range(0, records, CHUNK):
        for row in events(CHUNK, first).to_pylist():
            at = row["id"] % PARTITIONS
            text = json.dumps({**row, "at": row["at"].isoformat().replace("+00:00", "Z")}, separators=(",", ":"))
            producer.produce(PREFIX + "events", text, partition=at)
            producer.produce(PREFIX + "encoded", avro.bytes_of(row), partition=at)
        producer.poll(0)
        if first % (10 * CHUNK) == 0:
            print(f"wrote {first:,} of {records:,} records", flush=True)
            producer.flush()
    producer.flush()


def connected(spark: SparkSession, servers: str, *kept: str) -> DataFrame:
    """As one reads JSON with Spark's connector; of the messages themselves these columns are kept."""
    raw = (
        spark.read.format("kafka")
        .option("kafka.bootstrap.servers", servers)
        .option("subscribe", PREFIX + "events")
        .option("kafka.isolation.level", "read_committed")
        .load()
    )
    return raw.select(sf.from_json(raw.value.cast("string"), SCHEMA).alias("row"), *kept).select("row.*", *kept)


def stamped(rows: DataFrame) -> DataFrame:
    """Each row with the watermark of its partition before it, by Spark alone: the least that an operator which is keyed
    by the partition would have to do. It sees a partition's records in their order, so they are shuffled and sorted.
    """
    before = Window.partitionBy("partition").orderBy("offset").rowsBetween(Window.unboundedPreceding, -1)
    return rows.withColumn("_watermark", sf.max("at").over(before) - sf.lit(DELAY))


def alternated(queries: Mapping[str, Callable[[], DataFrame]], rounds: int) -> dict[str, list[float]]:
    """Seconds, of each query in every round; the first round only warms up."""
    took: dict[str, list[float]] = {name: [] for name in queries}
    for at in range(rounds + 1):
        for name, query in queries.items():
            seconds = elapsed(lambda query=query: query().collect())  # type: ignore[misc]
            if at > 0:
                took[name].append(seconds)
    return took


def all_columns(rows: DataFrame, *more: Column) -> DataFrame:
    return rows.agg(sf.sum("id"), sf.sum("customer"), sf.sum("amount"), sf.max("at"), sf.sum(sf.length("city")), *more)


def with_stamps(rows: DataFrame) -> DataFrame:
    return all_columns(rows, sf.max("_watermark"))


def one_column(rows: DataFrame) -> DataFrame:
    return rows.agg(sf.sum("id"))


def elapsed(action: Callable[[], object]) -> float:
    begun = time.perf_counter()
    action()
    return time.perf_counter() - begun


def ratio(took: Mapping[str, list[float]], slow: str, quick: str) -> float:
    return statistics.median(one / other for one, other in zip(took[slow], took[quick], strict=True))


if __name__ == "__main__":
    main()
