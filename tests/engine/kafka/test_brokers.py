"""What Kafka does to a reader: transactions, records that are gone, brokers that are away."""

import json
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from confluent_kafka import Producer, TopicPartition
from confluent_kafka.admin import AdminClient
from pyspark.sql import SparkSession

from penstock.engine.source import read_topic
from penstock.log.kafka.javasettings import java_settings
from services.kafka import Cluster
from services.proxy import Proxy
from tests.engine.kafka.conftest import WAIT, Topics
from tests.engine.kafka.mirrors import Mirror, Run
from tests.log.kafka.conftest import PASSWORD, Guarded, certificate

KNOWN = {"security_protocol": "SASL_PLAINTEXT", "sasl_mechanism": "PLAIN"}


def made(topics: Topics, mirror: Mirror, records: int, partitions: int = 1) -> None:
    """A topic with as many records in each partition."""
    topics.make("orders", partitions)
    mirror.declare("orders", "id BIGINT", partitions=partitions)
    for number in range(records * partitions):
        topics.send("orders", f'{{"id": {number}}}', partition=number % partitions)
    topics.flush()


def ids(spark: SparkSession, mirror: Mirror) -> list[int]:
    return sorted(row.id for row in read_topic(spark, mirror.folder, "orders").select("id").collect())


def said(spark: SparkSession, mirror: Mirror) -> str:
    with pytest.raises(Exception, match="penstock") as caught:  # as Spark tells it, with the kernel's error inside
        read_topic(spark, mirror.folder, "orders").collect()
    return str(caught.value)


def test_only_committed_transactions_are_read_across_the_gaps_of_their_marks(
    spark: SparkSession, kafka: Cluster, topics: Topics, mirror: Mirror, prefix: str
) -> None:
    made(topics, mirror, 1)
    producer = Producer({"bootstrap.servers": kafka.servers, "transactional.id": prefix + "t"})
    producer.init_transactions(WAIT)
    for number, commits in ((10, True), (20, False), (30, True)):
        producer.begin_transaction()
        for at in range(3):
            producer.produce(prefix + "orders", f'{{"id": {number + at}}}', partition=0)
        producer.flush(WAIT)
        producer.commit_transaction(WAIT) if commits else producer.abort_transaction(WAIT)
    # 0, then three transactions of three records and a mark each; the last block ends with a mark
    mirror.frame(Run("orders", 0, 0, 4))
    mirror.frame(Run("orders", 0, 9, 13))
    assert ids(spark, mirror) == [0, 10, 11, 12, 30, 31, 32]
    found = read_topic(spark, mirror.folder, "orders", from_offsets={0: 2}).select("id", "_offset").collect()
    assert sorted(map(tuple, found)) == [(11, 2), (12, 3), (30, 9), (31, 10), (32, 11)]


def test_an_empty_stretch_of_aborted_records_is_passed(
    spark: SparkSession, kafka: Cluster, topics: Topics, mirror: Mirror, prefix: str
) -> None:
    made(topics, mirror, 1)
    producer = Producer({"bootstrap.servers": kafka.servers, "transactional.id": prefix + "t"})
    producer.init_transactions(WAIT)
    producer.begin_transaction()
    producer.produce(prefix + "orders", '{"id": 1}', partition=0)
    producer.flush(WAIT)
    producer.abort_transaction(WAIT)
    mirror.frame(Run("orders", 0, 0, 3))
    assert ids(spark, mirror) == [0]


def test_records_that_retention_took_are_named(
    spark: SparkSession, kafka: Cluster, topics: Topics, mirror: Mirror, prefix: str
) -> None:
    made(topics, mirror, 5)
    mirror.frame(Run("orders", 0, 0, 5))
    admin = AdminClient({"bootstrap.servers": kafka.servers})
    for future in admin.delete_records([TopicPartition(prefix + "orders", 0, 3)]).values():
        future.result(WAIT)
    text = said(spark, mirror)
    assert 'topic "orders", partition 0, offset 0 is kept no longer' in text
    assert "The first offset that is there is 3." in text
    found = read_topic(spark, mirror.folder, "orders", from_offsets={0: 3}).select("id")
    assert sorted(row.id for row in found.collect()) == [3, 4]


def test_a_partition_that_was_made_anew_is_noticed(spark: SparkSession, topics: Topics, mirror: Mirror) -> None:
    made(topics, mirror, 2)
    mirror.frame(Run("orders", 0, 100, 102))
    assert 'topic "orders", partition 0, offset 100 is not in Kafka' in said(spark, mirror)


def test_a_topic_that_is_not_there_is_named(spark: SparkSession, mirror: Mirror, prefix: str) -> None:
    mirror.declare("orders", "id BIGINT")
    mirror.frame(Run("orders", 0, 0, 2))
    assert f'Kafka has no topic "{prefix}orders".' in said(spark, mirror)


def test_many_records_are_read_by_several_tasks(spark: SparkSession, topics: Topics, mirror: Mirror) -> None:
    made(topics, mirror, 50_000, partitions=2)
    for first in range(0, 50_000, 10_000):
        mirror.frame(Run("orders", 0, first, first + 10_000), Run("orders", 1, first, first + 10_000))
    for _ in range(3):
        read = read_topic(spark, mirror.folder, "orders")
        assert read.rdd.getNumPartitions() == 2
        assert read.selectExpr("count(*)", "sum(id)", "count(DISTINCT _place)").first() == (
            100_000,
            sum(range(100_000)),
            100_000,
        )


def test_brokers_that_are_away_are_waited_for(
    spark: SparkSession, frail_kafka: tuple[Cluster, Proxy], prefix: str, tmp_path: Path
) -> None:
    cluster, proxy = frail_kafka
    topics = Topics(cluster.servers, prefix)
    mirror = Mirror(tmp_path / "mirror", f"127.0.0.1:{proxy.port}", prefix)
    made(topics, mirror, 3)
    mirror.frame(Run("orders", 0, 0, 3))
    assert ids(spark, mirror) == [0, 1, 2]
    cluster.kill(cluster.nodes[0])
    with ThreadPoolExecutor(1) as pool:
        reading = pool.submit(ids, spark, mirror)
        cluster.start()
        assert reading.result(120) == [0, 1, 2]


def test_waiting_has_a_bound(spark: SparkSession, kafka: Cluster, topics: Topics, prefix: str, tmp_path: Path) -> None:
    nobody = Mirror(tmp_path / "mirror", "127.0.0.1:1", prefix, patience=2)
    nobody.declare("orders", "id BIGINT")
    nobody.frame(Run("orders", 0, 0, 1))
    text = said(spark, nobody)
    assert "Kafka at 127.0.0.1:1 has not answered for 2 seconds" in text


def test_a_broker_that_asks_for_a_password_is_told(
    spark: SparkSession, guarded_kafka: str, prefix: str, tmp_path: Path
) -> None:
    topics = Topics(guarded_kafka, prefix, **KNOWN, sasl_username="penstock", sasl_password=PASSWORD)
    login = "org.apache.kafka.common.security.plain.PlainLoginModule required"
    settings = {
        "security.protocol": "SASL_PLAINTEXT",
        "sasl.mechanism": "PLAIN",
        "sasl.jaas.config": f'{login} username="penstock" password="{PASSWORD}";',
    }
    mirror = Mirror(tmp_path / "mirror", guarded_kafka, prefix, settings)
    made(topics, mirror, 2)
    mirror.frame(Run("orders", 0, 0, 2))
    assert ids(spark, mirror) == [0, 1]
    wrong = {**settings, "sasl.jaas.config": settings["sasl.jaas.config"].replace(PASSWORD, "swordfish")}
    (tmp_path / "mirror" / "kafka.json").write_text(
        json.dumps({"bootstrap": guarded_kafka, "prefix": prefix, "settings": wrong})
    )
    text = said(spark, mirror)
    assert "SaslAuthenticationException" in text and "swordfish" not in text


def test_a_broker_with_a_certificate_is_read(
    spark: SparkSession, guarded: Guarded, prefix: str, tmp_path: Path
) -> None:
    topics = Topics(guarded.plain, prefix, **KNOWN, sasl_username="penstock", sasl_password=PASSWORD)
    login = {"sasl.mechanism": "PLAIN", "sasl.username": "penstock", "sasl.password": PASSWORD}
    for name, authority in (("own", guarded.authority), ("strange", certificate(tmp_path))):
        given = login | {"security.protocol": "SASL_SSL", "ssl.ca.location": str(authority)}
        mirror = Mirror(tmp_path / name, guarded.secured, prefix, java_settings(given), patience=5)
        mirror.declare("orders", "id BIGINT")
        mirror.frame(Run("orders", 0, 0, 2))
        if name == "own":
            made(topics, mirror, 2)
            assert ids(spark, mirror) == [0, 1]
        else:
            text = said(spark, mirror)
            assert "SslAuthenticationException" in text and PASSWORD not in text


def test_secrets_are_neither_in_plans_nor_in_errors(spark: SparkSession, prefix: str, tmp_path: Path) -> None:
    settings = {"security.protocol": "SASL_PLAINTEXT", "sasl.mechanism": "PLAIN", "sasl.jaas.config": "not a swordfish"}
    mirror = Mirror(tmp_path / "mirror", "127.0.0.1:1", prefix, settings, patience=1)
    mirror.declare("orders", "id BIGINT")
    mirror.frame(Run("orders", 0, 0, 1))
    table = read_topic(spark, mirror.folder, "orders")
    plan = table._jdf.queryExecution().toString()
    text = said(spark, mirror)
    assert "swordfish" not in plan + text
    assert "Kafka's client does not take the settings for 127.0.0.1:1" in text
