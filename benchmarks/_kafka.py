"""The jobs of the log's benchmark on Kafka: one broker on this machine, started for it, in the same run.

Kafka does not sync what it appends, unless it is told to: its figures come once as it is delivered (`kafka`), where a
power failure of the only machine loses records, and once with a sync of every append (`kafka_synced`), which is what
the embedded log promises.
"""

import statistics
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import pyarrow as pa
from confluent_kafka import Consumer, Producer

from penstock.log.kafka import KafkaLog
from services.jars import ServiceError
from services.kafka import cluster_in

SYNCED = {"log.flush.interval.messages": "1"}
Row = Mapping[str, object]


def kafka_figures(folder: Path, batch: pa.RecordBatch, row: Row, schema: str, scale: int) -> dict[str, float]:
    """The figures; none where the broker's jars cannot be had, which is said."""
    figures: dict[str, float] = {}
    for name, settings in (("kafka", {}), ("kafka_synced", SYNCED)):
        try:
            with _broker(folder / name, settings) as servers:
                figures |= {f"{name}_{key}": value for key, value in _measured(servers, batch, row, schema, scale)}
        except ServiceError as error:
            print(f"Kafka is left out: {error}")
            return {}
    return figures


@contextmanager
def _broker(folder: Path, settings: Mapping[str, str]) -> Iterator[str]:
    cluster = cluster_in(folder, dies_with_us=True)
    cluster.settings = settings
    cluster.start()
    try:
        yield cluster.servers
    finally:
        cluster.stop()


def _measured(servers: str, batch: pa.RecordBatch, row: Row, schema: str, scale: int) -> Iterator[tuple[str, float]]:
    with KafkaLog.open(servers) as log:
        log.create_topic("events", schema, event_time="at")
        log.create_topic("plain")
        log.append("events", batch)  # the first transaction finds its coordinator
        commits = 100 // scale
        yield "append_records_per_s", _median_rate(3, commits, lambda: log.append("events", batch)) * len(batch)
        took = [_milliseconds(lambda: log.append("events", [row])) for _ in range(500 // scale)]
        cuts = statistics.quantiles(took, n=100)
        yield "lone_record_p50_ms", cuts[49]
        yield "lone_record_p99_ms", cuts[98]
        rates = []
        for _ in range(3):
            begun = time.perf_counter()
            read = sum(len(each) for each in log.batches("events"))
            rates.append(read / (time.perf_counter() - begun))
        yield "read_records_per_s", statistics.median(rates)
    messages = 200_000 // scale
    yield "client_messages_per_s", _produced(servers, messages)
    yield "group_records_per_s", _consumed(servers, messages)


def _median_rate(rounds: int, times: int, action: Callable[[], object]) -> float:
    rates = []
    for _ in range(rounds):
        begun = time.perf_counter()
        for _ in range(times):
            action()
        rates.append(times / (time.perf_counter() - begun))
    return statistics.median(rates)


def _milliseconds(action: Callable[[], object]) -> float:
    begun = time.perf_counter()
    action()
    return (time.perf_counter() - begun) * 1000


def _produced(servers: str, messages: int) -> float:
    """Kafka's own client, without our log: 1,000 messages of a hundred bytes, then all of them acknowledged."""
    producer, value = Producer({"bootstrap.servers": servers, "acks": "all", "linger.ms": 5}), b"x" * 100
    producer.list_topics(timeout=10)
    begun = time.perf_counter()
    for at in range(messages):
        producer.produce("plain", value, partition=0)
        if at % 1000 == 999:
            producer.flush()
    producer.flush()
    return messages / (time.perf_counter() - begun)


def _consumed(servers: str, messages: int) -> float:
    """One member of a group of Kafka's, which commits after every poll of at most 1,000."""
    settings = {"bootstrap.servers": servers, "group.id": "g", "auto.offset.reset": "earliest"}
    consumer = Consumer(settings | {"enable.auto.commit": False})
    consumer.subscribe(["plain"])
    read = len(consumer.consume(1, timeout=30))
    begun = time.perf_counter()
    while read < messages:
        read += len(consumer.consume(min(1000, messages - read), timeout=5))
        consumer.commit(asynchronous=False)
    took = time.perf_counter() - begun
    consumer.close()
    return messages / took
