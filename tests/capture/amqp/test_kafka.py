"""The same bridge with the log on Kafka: one transaction for records, dead letters and ids; places by producers."""

import json
import uuid
from collections.abc import Iterator

import pytest
from confluent_kafka import Producer

from penstock.capture.amqp import Routing
from penstock.capture.amqp.feeds import ProducerFeed
from penstock.errors import CaptureError
from penstock.log.kafka import KafkaLog
from services.kafka import Cluster
from tests.capture.amqp.rabbit import SCHEMA, Rabbit, consumed, ids, intake, letters, published, row
from tests.log.kafka.conftest import made


@pytest.fixture(scope="module")
def kafka(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    cluster = made(tmp_path_factory.mktemp("kafka"))
    cluster.start()
    yield cluster
    cluster.stop()


@pytest.fixture
def log(kafka: Cluster) -> Iterator[KafkaLog]:
    with KafkaLog.open(kafka.servers, prefix=f"{uuid.uuid4().hex[:8]}.") as log:
        log.create_topic("things", SCHEMA)
        yield log


pytestmark = pytest.mark.kafka


def test_a_queue_becomes_a_topic_each_message_once(rabbit: Rabbit, log: KafkaLog) -> None:
    queue = rabbit.queue()
    rabbit.send(queue, {"1": row(1), "2": row(2), "bad": b"{"})
    consumed(log, rabbit.url, intake(queue))
    rabbit.send(queue, {"2": row(2), "bad": b"{", "3": row(3)})
    assert consumed(log, rabbit.url, intake(queue)).repeated == 2
    assert ids(log) == [1, 2, 3] and [each["body"] for each in letters(log, queue)] == [b"{"]


def test_a_topic_goes_to_an_exchange_and_goes_on_where_it_was(rabbit: Rabbit, log: KafkaLog) -> None:
    queue = rabbit.queue()
    log.create_topic("wide", "id BIGINT NOT NULL", partitions=2, key="id")
    for start in (0, 10):
        log.append("wide", [{"id": n} for n in range(start, start + 10)])
        assert published(log, rabbit.url, "wide", Routing("", queue)).messages == 10
    found = rabbit.received(queue)
    assert sorted(json.loads(each.body)["id"] for each in found) == [*range(20)]
    assert len({each.properties["message_id"] for each in found}) == 20


def test_no_partition_waits_for_the_end_of_another(log: KafkaLog) -> None:
    log.create_topic("wide", "id BIGINT NOT NULL", partitions=3)
    for partition in range(3):
        log.append("wide", [{"id": n} for n in range(10)], partition=partition)
    feed = ProducerFeed(log, "test", "wide", print)
    assert {entry.partition for _ in range(3) for entry in feed.poll(2)} == {0, 1, 2}


def test_a_message_of_kafka_that_is_no_record_is_a_dead_letter(rabbit: Rabbit, log: KafkaLog, kafka: Cluster) -> None:
    queue = rabbit.queue()
    producer = Producer({"bootstrap.servers": kafka.servers})
    producer.produce(f"{log.prefix}things", b"{")
    producer.flush()
    log.append("things", [{"id": 1}])
    tally = published(log, rabbit.url, "things", Routing("", queue))
    (letter,) = letters(log, "test")
    assert (tally.messages, letter["body"], letter["offset"]) == (1, b"{", 0) and "is not JSON" in letter["reason"]


def test_of_two_publishers_of_a_name_the_newer_goes_on(rabbit: Rabbit, log: KafkaLog) -> None:
    queue, said = rabbit.queue(), list[int]()

    def overtake(_: object) -> None:
        if not said:
            said.append(1)
            published(log, rabbit.url, "things", Routing("", queue))

    log.append("things", [{"id": 1}])
    with pytest.raises(CaptureError, match="has taken over"):
        published(log, rabbit.url, "things", Routing("", queue), told=overtake)
    assert [json.loads(each.body)["id"] for each in rabbit.received(queue)] == [1, 1]
