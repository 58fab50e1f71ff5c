"""A pipeline on Kafka that is reset is computed anew from the topics, in the order that the journal has kept."""

from pathlib import Path
from random import Random
from typing import Any

from confluent_kafka.admin import AdminClient, AlterConfigOpType, ConfigEntry, ConfigResource
from pyspark.sql import SparkSession

from penstock.engine.lineage import current
from penstock.engine.run import Run, prepared
from penstock.engine.sinks import late_rows
from services.kafka import Cluster
from tests.engine.kafka.bench import KafkaBench
from tests.engine.kafka.test_pipelines import SHOP, move_customers, write_orders
from tests.texts import refused
from tests.views.shop import folded


def late(shop: KafkaBench, lineage: int) -> list[str]:
    values: list[Any] = [entry.value for entry in shop.log.read(f"test.{lineage}.{late_rows('sold')}")]
    return sorted(value["row"] for value in values)


def test_a_reset_gives_the_same_answers_and_the_same_late_rows_in_topics_of_its_own(
    spark: SparkSession, kafka: Cluster, prefix: str, tmp_path: Path
) -> None:
    shop, random = KafkaBench(spark, tmp_path, SHOP, kafka.servers, prefix), Random(7)
    for step in range(3):  # each is a batch of its own, which the replay does not have
        for part in range(4):
            write_orders(shop, random, 40 * step + 10 * part, 10)
            move_customers(shop, random, 4)
            shop.flush()
            shop.log.settle()
        shop.drain()
    anew = prepared(shop.spark, shop.pipeline, shop.log, shop.home, anew=True)
    assert current(shop.log, "test") == 1, "readers see the old answers until the new ones have caught up"
    run = Run(shop.spark, shop.log, shop.home, anew, lambda _: None)
    run.wait(run.start(once=True))
    assert current(shop.log, "test") == 2
    for view in ("spend", "sold", "complete"):
        assert folded(shop.log, f"test.2.{view}") == folded(shop.log, f"test.1.{view}") != {}, view
    assert late(shop, 2) == late(shop, 1) != []
    compact(kafka, prefix + "customers")
    prepared(shop.spark, shop.pipeline, shop.log, shop.home)  # of a table the newest rows are enough
    compact(kafka, prefix + "orders")
    with refused("engine/kafka-compacts"):
        prepared(shop.spark, shop.pipeline, shop.log, shop.home)
    shop.log.close()


def compact(kafka: Cluster, topic: str) -> None:
    policy = ConfigEntry("cleanup.policy", "compact", incremental_operation=AlterConfigOpType.SET)
    asked = ConfigResource(ConfigResource.Type.TOPIC, topic, incremental_configs=[policy])
    admin = AdminClient({"bootstrap.servers": kafka.servers})
    admin.incremental_alter_configs([asked])[asked].result(30)
