"""What other programs see of a log on Kafka, and what the log makes of what they wrote."""

import json
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import pytest
from confluent_kafka import Consumer, KafkaError, Message, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from penstock.errors import BadRecord, LogError
from penstock.log import EndOffset, Place, Record
from penstock.log.kafka import KafkaLog
from services.kafka import Cluster
from tests.texts import refused

Opener = Callable[..., KafkaLog]
NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)


class Stranger:
    """A program that knows Kafka and nothing of Penstock."""

    def __init__(self, servers: str, prefix: str) -> None:
        self._servers = servers
        self._prefix = prefix
        self.admin = AdminClient({"bootstrap.servers": servers})

    def create(self, topic: str, partitions: int = 1) -> None:
        self.admin.create_topics([NewTopic(self._prefix + topic, partitions, 1)])[self._prefix + topic].result()

    def write(self, topic: str, *messages: tuple[bytes | None, bytes | None]) -> None:
        producer = Producer({"bootstrap.servers": self._servers, "partitioner": "murmur2"})
        for key, value in messages:
            producer.produce(self._prefix + topic, value, key)
        assert producer.flush(30) == 0

    def read(self, topic: str) -> list[Message]:
        consumer = Consumer(
            {
                "bootstrap.servers": self._servers,
                "group.id": "stranger",
                "isolation.level": "read_committed",
                "enable.partition.eof": True,
            }
        )
        consumer.assign([TopicPartition(self._prefix + topic, 0, 0)])
        found = []
        while (message := consumer.poll(30)) is not None and message.error() is None:
            found.append(message)
        assert message is not None and message.error().code() == KafkaError._PARTITION_EOF
        consumer.close()
        return found


@pytest.fixture
def stranger(kafka: Cluster, prefix: str) -> Stranger:
    return Stranger(kafka.servers, prefix)


# What others see


def test_a_row_is_json_under_its_key(log: KafkaLog, stranger: Stranger) -> None:
    log.create_topic("orders", "id BIGINT, city STRING, price DECIMAL(9,2), at TIMESTAMP, b BINARY", key=("id", "city"))
    row = {"id": 1, "city": "Köln", "price": 12, "at": NOON, "b": b"\x00\xff"}
    log.append("orders", [Record(row, headers={"trace": b"7"})])
    (message,) = stranger.read("orders")
    assert message.key().decode() == '{"id":1,"city":"Köln"}'
    assert json.loads(message.value()) == {
        "id": 1,
        "city": "Köln",
        "price": "12.00",
        "at": "2026-01-01T12:00:00Z",
        "b": "AP8=",
    }
    assert message.headers() == [("trace", b"7")]


def test_a_deletion_under_a_key_is_a_tombstone_that_keeps_the_rest_of_its_row(
    log: KafkaLog, stranger: Stranger
) -> None:
    log.create_topic("customers", "id BIGINT, at TIMESTAMP", key="id", event_time="at")
    log.append("customers", [Record({"id": 1}, deleted=True), Record({"id": 2, "at": NOON}, deleted=True)])
    assert [(m.key(), m.value()) for m in stranger.read("customers")] == [(b'{"id":1}', None), (b'{"id":2}', None)]
    assert [(e.key, e.time, e.deleted) for e in log.read("customers")] == [((1,), None, True), ((2,), NOON, True)]


def test_a_deletion_without_a_key_keeps_its_row(log: KafkaLog) -> None:
    log.create_topic("bag", "n INT")
    log.append("bag", [Record({"n": 1}), Record({"n": 1}, deleted=True)])
    assert [(e.value, e.deleted) for e in log.read("bag")] == [({"n": 1}, False), ({"n": 1}, True)]


def test_a_key_goes_where_other_programs_put_it(log: KafkaLog, stranger: Stranger) -> None:
    log.create_topic("orders", "id BIGINT, x DOUBLE", key=("id", "x"), partitions=4)
    log.append("orders", [{"id": each, "x": -0.0} for each in range(20)])
    keys = [json.dumps({"id": each, "x": 0.0}, separators=(",", ":")).encode() for each in range(20)]
    stranger.write("orders", *((key, b'{"id": -1}') for key in keys))
    ours = [e.partition for e in sorted(log.read("orders"), key=lambda e: e.offset) if e.value["id"] >= 0]  # type: ignore[index,call-overload]
    assert sorted(set(ours)) == [0, 1, 2, 3]
    ends = [sum(e.partition == p for e in log.read("orders")) for p in range(4)]
    assert ends == [2 * ours.count(p) for p in range(4)]


def test_headers_of_our_own_are_not_free(log: KafkaLog) -> None:
    log.create_topic("raw")
    with pytest.raises(LogError, match=r'header "penstock\.row" is not free'):
        log.append("raw", [Record(b"x", headers={"penstock.row": b""})])
    with pytest.raises(LogError, match=r'"_penstock\.catalog" is not free'):
        log.create_topic("_penstock.catalog")


# What others wrote


def test_rows_of_other_programs_are_read(log: KafkaLog, stranger: Stranger) -> None:
    log.create_topic("orders", "id BIGINT NOT NULL, price DECIMAL(9,2), at TIMESTAMP", key="id")
    stranger.write("orders", (b"1", b'{"id": 1, "price": 12.5, "at": "2026-01-01T13:00:00+01:00", "more": []}'))
    stranger.write("orders", (b"1", None), (b'{"id": 2}', None))
    first, *deleted = log.read("orders")
    assert first.value == {"id": 1, "price": pytest.approx(12.5), "at": NOON}
    assert [(entry.key, entry.deleted) for entry in deleted] == [((1,), True), ((2,), True)]


TOO_EARLY = 'In its value, field "at": "0001-01-01T00:00:00+01:00" is not a TIMESTAMP.'
BAD: list[tuple[bytes | None, bytes | None, str]] = [
    (None, b"{", "Its value is not JSON."),
    (None, b"\xff", "Its value is not UTF-8."),
    (None, b"[1]", "Its value is not a JSON object."),
    (None, b'{"id": "one"}', 'In its value, field "id": "one" is not a BIGINT.'),
    (None, b'{"id": 1, "tags": [1, {}]}', 'In its value, field "tags[1]": {} is not a BIGINT.'),
    (None, b'{"id": 1, "at": "0001-01-01T00:00:00+01:00"}', TOO_EARLY),
    (None, b"{}", 'Field "id" is NULL, and the column is NOT NULL.'),
    (None, None, "It has no value, and no key to delete by."),
    (b"x", None, "Its key is not JSON."),
    (b'{"idd": 1}', None, 'In its key, field "id": {"idd": 1} is not a BIGINT.'),
]


@pytest.mark.parametrize(("key", "value", "reason"), BAD, ids=[reason for _, _, reason in BAD])
def test_what_is_no_record_is_told_with_its_position_and_passed_over_if_asked(
    log: KafkaLog, stranger: Stranger, key: bytes | None, value: bytes | None, reason: str
) -> None:
    log.create_topic("orders", "id BIGINT NOT NULL, tags ARRAY<BIGINT>, at TIMESTAMP", key="id")
    good = (b"1", b'{"id": 1}')
    stranger.write("orders", good, (key, value), good)
    with pytest.raises(BadRecord, match='offset 1 of partition 0 of "orders" is not a record of the topic') as raised:
        list(log.read("orders"))
    assert reason in raised.value.detail
    bad: list[BadRecord] = []
    assert [entry.offset for entry in log.read("orders", bad=bad.append)] == [0, 2]
    assert [(each.position, each.found) for each in bad] == [(("orders", 0, 1), (key, value))]


def test_a_bad_record_is_an_error_that_teaches(log: KafkaLog, stranger: Stranger) -> None:
    log.create_topic("orders", "id BIGINT NOT NULL")
    stranger.write("orders", (None, b'{"id": 1.5}'))
    with refused("log/kafka-bad-record"):
        list(log.batches("orders"))


def test_a_raw_topic_of_others_has_the_times_of_its_messages(log: KafkaLog, stranger: Stranger) -> None:
    stranger.create("clicks")
    log.create_topic("clicks")
    stranger.write("clicks", (b"k", b"v"))
    (entry,) = log.read("clicks")
    assert (entry.key, entry.value, entry.time) == (b"k", b"v", entry.appended_at)


def test_a_topic_that_kafka_has_is_taken_as_it_is(log: KafkaLog, stranger: Stranger) -> None:
    stranger.create("orders", partitions=3)
    stranger.write("orders", (b"1", b'{"id": 1}'))
    with refused("log/kafka-other-partitions", prefix=log.prefix):
        log.create_topic("orders", "id BIGINT", key="id")
    log.create_topic("orders", "id BIGINT", key="id", partitions=3)
    assert [entry.value for entry in log.read("orders")] == [{"id": 1}]


def test_what_retention_took_is_told(log: KafkaLog, stranger: Stranger) -> None:
    log.create_topic("numbers", "n INT")
    log.append("numbers", [{"n": each} for each in range(6)])
    place = TopicPartition(log.prefix + "numbers", 0, 4)
    stranger.admin.delete_records([place])[place].result()
    assert [entry.offset for entry in log.read("numbers")] == [4, 5]
    assert log.describe("numbers").partitions[0].begin == 4
    with refused("log/kafka-offset-gone"):
        log.read("numbers", start=2)


def test_a_topic_is_made_with_settings_of_kafka(log: KafkaLog, stranger: Stranger) -> None:
    log.create_topic("orders", "id INT", key="id", settings={"cleanup.policy": "compact"})
    with pytest.raises(LogError, match=r'Kafka refused, creating topic ".*other"'):
        log.create_topic("other", "id INT", settings={"cleanup.policy": "never"})


# Limits


def test_there_are_no_places(log: KafkaLog) -> None:
    log.create_topic("numbers", "n INT")
    with refused("log/kafka-no-places"):
        log.read("numbers", start=Place(3))  # type: ignore[arg-type]


def test_a_condition_on_another_partition_is_refused(log: KafkaLog) -> None:
    log.create_topic("numbers", "n INT", partitions=2)
    with refused("log/kafka-end-elsewhere"):
        log.append("numbers", [{"n": 1}], partition=0, expect=[EndOffset("numbers", 1, 0)])


def test_a_record_that_is_too_large_is_refused_and_the_log_goes_on(log: KafkaLog) -> None:
    log.create_topic("texts", "t STRING")
    with pytest.raises(LogError, match="a record is too large for Kafka"):
        log.append("texts", [{"t": "small"}, {"t": "x" * 9_000_000}])
    log.append("texts", [{"t": "next"}])
    assert [entry.value for entry in log.read("texts")] == [{"t": "next"}]


def test_a_log_that_is_not_there_is_not_made_unless_asked(kafka: Cluster, prefix: str) -> None:
    with refused("log/kafka-no-log", prefix=prefix, servers=kafka.servers):
        KafkaLog.open(kafka.servers, prefix=prefix, create=False)


def test_a_producer_leaves_a_note_and_its_last_commits_are_known(log: KafkaLog, open_log: Opener) -> None:
    log.create_topic("numbers", "n INT")
    for sequence in range(20):
        log.append_all({"numbers": [{"n": sequence}]}, producer="p", sequence=sequence, note={"batch": sequence})
    last = open_log().last("p")
    assert last is not None and (last.sequence, last.note) == (19, {"batch": 19})
    assert log.append("numbers", [{"n": 4}], producer="p", sequence=4).repeated
    with refused("log/kafka-sequence-too-old"):
        log.append("numbers", [{"n": 3}], producer="p", sequence=3)
    with refused("log/kafka-note-without-producer"):
        log.append_all({"numbers": [{"n": 1}]}, note={"batch": 1})


def test_many_records_come_back_in_order(log: KafkaLog) -> None:
    log.create_topic("numbers", "n INT")
    log.append("numbers", [{"n": each} for each in range(30_000)])
    batches: list[Any] = list(log.batches("numbers", columns=["n"]))
    assert len(batches) > 1
    assert [n for batch in batches for n in batch.column("n").to_pylist()] == list(range(30_000))
