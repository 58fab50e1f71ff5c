"""Pipelines on Kafka: what other programs write comes out right, batch by batch, after restarts too."""

from collections.abc import Callable, Iterator
from pathlib import Path
from random import Random
from typing import Any

import pytest
from pyspark.sql import SparkSession

from penstock.engine.sinks import late_rows
from services.kafka import Cluster
from tests.engine.kafka.bench import KafkaBench

SHOP = """
CREATE STREAM orders (id BIGINT, customer BIGINT, amount DECIMAL(10,2), at TIMESTAMP)
  WITH (event_time = 'at', watermark = '5 seconds', watermark_by = 'partition', partitions = 3);
CREATE TABLE customers (id BIGINT PRIMARY KEY, city STRING) WITH (partitions = 2);
CREATE VIEW spend AS
  SELECT city, sum(amount) AS spend, count(*) AS orders FROM orders JOIN customers ON customer = customers.id
  GROUP BY city;
CREATE VIEW sold AS
  SELECT window.start AS since, count(*) AS orders, max(amount) AS largest
  FROM orders GROUP BY window(at, '10 seconds');
CREATE VIEW complete WITH (emit = 'final') AS
  SELECT window.start AS since, count(*) AS orders FROM orders GROUP BY window(at, '10 seconds');
"""


@pytest.fixture
def bench(spark: SparkSession, kafka: Cluster, prefix: str, tmp_path: Path) -> Iterator[Callable[..., KafkaBench]]:
    opened: list[KafkaBench] = []

    def make(sql: str, **options: Any) -> KafkaBench:
        opened.append(KafkaBench(spark, tmp_path / str(len(opened)), sql, kafka.servers, prefix, **options))
        return opened[-1]

    yield make
    for each in opened:
        each.log.close()


def write_orders(shop: KafkaBench, random: Random, first: int, count: int) -> None:
    for number in range(first, first + count):
        partition = number % 3
        late = random.choice([0, 0, 1, 3, 30])
        second = 3 * (number // 3) + partition - late
        at = f"2024-01-01T00:{max(second, 0) // 60:02}:{max(second, 0) % 60:02}Z"
        row = {"id": number, "customer": random.randrange(8), "amount": f"{random.randrange(5000) / 100:.2f}", "at": at}
        shop.write("orders", row, partition=partition)


def move_customers(shop: KafkaBench, random: Random, count: int) -> None:
    for _ in range(count):
        customer = random.randrange(8)
        gone = random.random() < 0.25
        city = random.choice(["Bern", "Basel", "Genf"])
        shop.write("customers", None if gone else {"id": customer, "city": city}, key={"id": customer})


def test_a_stream_and_a_table_that_others_write_come_out_right_after_restarts_too(
    bench: Callable[..., KafkaBench],
) -> None:
    shop, random = bench(SHOP, max_records_per_batch=20), Random(7)
    for step in range(3):
        for part in range(4):
            write_orders(shop, random, 40 * step + 10 * part, 10)
            move_customers(shop, random, 4)
            shop.flush()
            shop.log.settle()
        shop.drain()
        shop.start()
    shop.check()
    assert shop.checked >= 6 and shop.content("spend") and shop.content("complete")
    late = list(shop.log.read(shop.ready.lineage.topic(late_rows("sold"))))
    assert late, "some came too late"
    tops = [each.largest_time for each in shop.log.describe("orders").partitions]
    assert all(tops)
