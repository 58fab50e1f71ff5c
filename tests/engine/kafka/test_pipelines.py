"""Pipelines on Kafka: what other programs write comes out right, batch by batch, after restarts too."""

import json
from collections.abc import Callable, Iterator
from decimal import Decimal
from pathlib import Path
from random import Random
from time import monotonic, sleep
from typing import Any

import pytest
from pyspark.sql import SparkSession

from penstock.engine.sinks import late_rows
from services.kafka import Cluster
from services.proxy import Proxy
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
    shop.check(every=4)
    assert shop.checked >= 2 and shop.content("spend") and shop.content("complete")
    late = list(shop.log.read(shop.ready.lineage.topic(late_rows("sold"))))
    assert late, "some came too late"
    tops = [each.largest_time for each in shop.log.describe("orders").partitions]
    assert all(tops)


def test_what_cannot_be_read_becomes_a_dead_letter_and_the_pipeline_lives(bench: Callable[..., KafkaBench]) -> None:
    shop = bench(SHOP)
    shop.write("customers", {"id": 1, "city": "Bern"}, key={"id": 1})
    shop.write("customers", {"id": "one", "city": "Bern"}, key={"id": 1})
    good = {"id": 1, "customer": 1, "amount": "2.50", "at": "2024-01-01T00:00:01Z"}
    shop.write("orders", good, partition=0)
    shop.write("orders", "{", partition=1)
    shop.write("orders", good | {"amount": "much"}, partition=2)
    shop.write("orders", b"\xff\xfe", partition=1)  # type: ignore[arg-type]
    shop.flush()
    shop.drain()
    shop.check()
    assert shop.content("spend") == [{"city": "Bern", "spend": Decimal("2.50"), "orders": 1}]
    letters: list[Any] = [entry.value for entry in shop.log.read("test.1.dead-letters")]
    assert sorted((each["relation"], each["partition"], each["offset"], each["reason"]) for each in letters) == [
        ("customers", letters_partition(letters), 1, 'in its value, field "id": "one" is not a BIGINT'),
        ("orders", 1, 0, "its value is not JSON"),
        ("orders", 1, 1, "its value is not UTF-8"),
        ("orders", 2, 0, 'in its value, field "amount": "much" is not a DECIMAL(10,2)'),
    ]
    rows = {(each["relation"], each["partition"], each["offset"]): json.loads(each["row"]) for each in letters}
    assert rows["orders", 1, 0] == {"topic": "orders", "key": None, "value": "{"}
    assert sum(done.letters for done in shop.batches) == 4


AVRO = """
CREATE STREAM orders (id BIGINT, customer BIGINT, amount DECIMAL(10,2)) WITH (partitions = 2, value_format = 'avro');
CREATE TABLE customers (id BIGINT PRIMARY KEY, city STRING) WITH (value_format = 'avro');
CREATE VIEW spend AS
  SELECT city, sum(amount) AS spend FROM orders JOIN customers ON customer = customers.id GROUP BY city;
"""


def test_values_in_avro_come_out_right_and_what_is_none_is_a_dead_letter(bench: Callable[..., KafkaBench]) -> None:
    shop = bench(AVRO)
    cities = [{"id": number, "city": city} for number, city in enumerate(["Bern", "Basel"])]
    orders = [{"id": n, "customer": n % 2, "amount": Decimal(n)} for n in range(10)]
    shop.append({"customers": cities, "orders": orders})
    shop.write("orders", b"\xff", partition=1)  # type: ignore[arg-type]
    shop.flush()
    shop.drain()
    shop.check()
    assert sorted((row["city"], row["spend"]) for row in shop.content("spend")) == [("Basel", 25), ("Bern", 20)]
    (letter,) = shop.log.read("test.1.dead-letters")
    value: Any = letter.value
    assert (value["relation"], value["partition"]) == ("orders", 1) and "is not Avro" in value["reason"]


def test_a_dead_letter_has_room_for_its_message(bench: Callable[..., KafkaBench]) -> None:
    shop, bad = bench(SHOP), '"' * 900_000  # four times as long as text inside of text
    shop.write("orders", bad, partition=0)
    shop.flush()
    shop.drain()
    letters: list[Any] = [entry.value for entry in shop.log.read("test.1.dead-letters")]
    assert [json.loads(each["row"])["value"] for each in letters] == [bad]


def letters_partition(letters: list[Any]) -> int:
    """Where the customer's records are: Kafka has chosen by the key."""
    return int(next(each["partition"] for each in letters if each["relation"] == "customers"))


def test_a_run_waits_for_a_killed_broker_says_so_and_goes_on(
    spark: SparkSession, frail_kafka: tuple[Cluster, Proxy], prefix: str, tmp_path: Path
) -> None:
    cluster, proxy = frail_kafka
    said: list[str] = []
    shop = KafkaBench(spark, tmp_path, SHOP, f"127.0.0.1:{proxy.port}", prefix, say=said.append)
    random, run = Random(3), shop.run()
    query = run.start(once=False)
    try:
        write_orders(shop, random, 0, 9)
        move_customers(shop, random, 20)
        shop.flush()
        await_that(lambda: sum(done.end > 0 for done in shop.batches) > 0, query)
        cluster.kill(cluster.nodes[0])
        await_that(lambda: any("waiting for Kafka at" in each for each in said), query)
        cluster.start()
        write_orders(shop, random, 9, 30)
        shop.flush()
        shop.log.settle()
        end = run._goal = shop.log.mark().next_frame
        await_that(lambda: bool(shop.batches) and run._has_caught_up(shop.batches[-1].end), query)
        assert any("goes on, after" in each for each in said)
        run.wait(query, stop=lambda: True)
    finally:
        query.stop()
        cluster.start()
    shop.check(every=1000)
    found = list(shop.log.read("orders"))
    assert len(found) == 39 and end
    shop.log.close()


def await_that(holds: Callable[[], bool], query: Any) -> None:
    until = monotonic() + 120
    while not holds():
        assert query.isActive and monotonic() < until, query.exception()
        sleep(0.05)
