"""Spark reading topics of Kafka: by our reader, and by Spark's own connector with `from_json`, on the same topic.

`python -m benchmarks.kafka [--quick]`. A broker of its own on this machine; the sides alternate within one run, each
aggregating all columns, or one of five. Needs Maven, which fetches the broker, the clients and the connector.
"""

import argparse
import json
import statistics
import tempfile
import time
from collections.abc import Callable, Mapping
from pathlib import Path

from confluent_kafka import Producer
from pyspark.sql import DataFrame, SparkSession
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
    with (
        OrderedKafkaLog.open(cluster.servers, prefix=PREFIX, folder=folder / "mirror", admits=True) as log,
        session("kafka", master="local[2]", conf=conf) as spark,
    ):
        log.create_topic("events", SCHEMA, partitions=PARTITIONS)
        log.create_topic("encoded", SCHEMA, partitions=PARTITIONS, values=Avro())
        fill(cluster, records, log.topic("encoded"))
        log.settle()
        mirror = folder / "mirror"
        sides: Mapping[str, Callable[[], DataFrame]] = {
            "reader": lambda: read_topic(spark, mirror, "events"),
            "connector": lambda: connected(spark, cluster.servers),
            "reader_avro": lambda: read_topic(spark, mirror, "encoded"),
        }
        took = alternated(sides, rounds)
    rates = {f"{name}_records_per_s": records / statistics.median(times) for name, times in took.items()}
    return {
        **rates,
        "reader_against_connector": ratio(took, "connector", "reader"),
        "reader_against_connector_one_column": ratio(took, "connector_one_column", "reader_one_column"),
    }


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


def connected(spark: SparkSession, servers: str) -> DataFrame:
    """As one reads JSON with Spark's connector."""
    raw = (
        spark.read.format("kafka")
        .option("kafka.bootstrap.servers", servers)
        .option("subscribe", PREFIX + "events")
        .option("kafka.isolation.level", "read_committed")
        .load()
    )
    return raw.select(sf.from_json(raw.value.cast("string"), SCHEMA).alias("row")).select("row.*")


def alternated(sides: Mapping[str, Callable[[], DataFrame]], rounds: int) -> dict[str, list[float]]:
    """Seconds, of each side in every round; the first round only warms up."""
    took: dict[str, list[float]] = {}
    for at in range(rounds + 1):
        for name, read in sides.items():
            for suffix, query in (("", all_columns), ("_one_column", one_column)):
                seconds = elapsed(lambda read=read, query=query: query(read()).collect())  # type: ignore[misc]
                if at > 0:
                    took.setdefault(name + suffix, []).append(seconds)
    return took


def all_columns(rows: DataFrame) -> DataFrame:
    return rows.agg(sf.sum("id"), sf.sum("customer"), sf.sum("amount"), sf.max("at"), sf.sum(sf.length("city")))


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
