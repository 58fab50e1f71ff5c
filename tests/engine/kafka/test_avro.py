"""Values in Avro: appended by us or by others, they come into Spark as JSON ones do."""

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from penstock.engine.source import read_topic
from penstock.engine.topics import ensure_sources
from penstock.errors import SchemaError
from penstock.log.kafka import OrderedKafkaLog
from penstock.log.kafka.avro import Values
from penstock.log.values import Avro
from penstock.model import pipeline_of
from services.kafka import Cluster
from tests.engine.kafka.conftest import Topics

NOON = datetime(2024, 1, 31, 12, tzinfo=UTC)
SQL = """
CREATE STREAM orders (id BIGINT, at TIMESTAMP) WITH (event_time = 'at', value_format = 'avro');
CREATE TABLE customers (id BIGINT PRIMARY KEY, city STRING) WITH (value_format = 'avro');
CREATE VIEW all_orders AS SELECT id FROM orders;
"""


def test_a_pipeline_has_its_topics_in_avro_if_it_says_so(
    spark: SparkSession, kafka: Cluster, topics: Topics, prefix: str, tmp_path: Path
) -> None:
    with OrderedKafkaLog.open(kafka.servers, prefix=prefix, folder=tmp_path / "mirror", admits=True) as log:
        ensure_sources(log, pipeline_of(SQL, name="shop"))
        assert log.topic("orders").values == Avro() == log.topic("customers").values
        log.append("orders", [{"id": 1, "at": NOON}])
        topics.send("orders", Values(log.topic("orders")).bytes_of({"id": 2, "at": NOON.replace(hour=13)}))
        topics.send("orders", b"\xff")
        topics.flush()
        log.append("customers", [{"id": 1, "city": "Rome"}])
        log.settle()
        found = read_topic(spark, tmp_path / "mirror", "orders").select("id", "at", "_bad").collect()
        assert sorted((row.id or 0, row._bad) for row in found) == [
            (0, "its value is not Avro of its schema"),
            (1, None),
            (2, None),
        ]
        assert [entry.value for entry in log.read("customers")] == [{"id": 1, "city": "Rome"}]
        assert log.watermark("orders", delay=timedelta(0)) == NOON.replace(hour=13)


def test_a_schema_that_does_not_fit_the_columns_is_refused(kafka: Cluster, prefix: str, tmp_path: Path) -> None:
    schema = '{"type": "record", "name": "r", "fields": [{"name": "id", "type": "string"}]}'
    with (
        OrderedKafkaLog.open(kafka.servers, prefix=prefix, folder=tmp_path / "mirror") as log,
        pytest.raises(SchemaError, match='the Avro schema has string for field "id"'),
    ):
        log.create_topic("orders", "id BIGINT", values=Avro(schema))
