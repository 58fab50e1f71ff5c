"""What Kafka's own tools say of a pipeline: how far it has come, and how far it is behind."""

import os
from collections.abc import Mapping
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from services.jars import ServiceError
from services.kafka import Cluster
from services.kafka.tools import consumer_groups
from tests.engine.kafka.bench import KafkaBench

ORDERS = """
CREATE STREAM orders (id BIGINT) WITH (partitions = 2);
CREATE VIEW total AS SELECT count(*) AS n FROM orders;
"""


def lags(servers: str, group: str) -> Mapping[int, tuple[int, int]]:
    """Of each partition, the offset that is read next and how many are behind it, as the tool's table has them."""
    try:
        said = consumer_groups(servers, "--describe", "--group", group, "--offsets")
    except ServiceError as error:
        if os.environ.get("PENSTOCK_SERVICES") == "required":
            raise
        pytest.skip(f"no tools of Kafka: {error.primary}")
    rows = [line.split() for line in said.splitlines() if line.startswith(group)]
    heads = next(line.split() for line in said.splitlines() if line.startswith("GROUP"))
    found = [dict(zip(heads, row, strict=False)) for row in rows]
    return {int(row["PARTITION"]): (int(row["CURRENT-OFFSET"]), int(row["LAG"])) for row in found}


def test_the_lag_of_a_pipeline_is_what_kafkas_tool_for_groups_shows(
    spark: SparkSession, kafka: Cluster, prefix: str, tmp_path: Path
) -> None:
    shop = KafkaBench(spark, tmp_path, ORDERS, kafka.servers, prefix)
    for number in range(9):
        shop.write("orders", {"id": number}, partition=number % 2)
    shop.flush()
    shop.drain()
    shop.log.close()  # what was read is reported by then
    group = f"{prefix}penstock.test"
    assert lags(kafka.servers, group) == {0: (5, 0), 1: (4, 0)}
    for number in range(3):
        shop.write("orders", {"id": number}, partition=1)
    shop.flush()
    assert lags(kafka.servers, group) == {0: (5, 0), 1: (4, 3)}
