"""What others do to the topics of a log: nothing is passed over or counted twice without a word."""

import json
import time
from collections.abc import Callable, Iterator
from threading import Event, Thread

import pytest
from confluent_kafka import Message, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, ConfigResource, NewPartitions, NewTopic

from penstock.errors import LogError, RecordsGone
from penstock.log.frame import INDEX_BITS
from penstock.log.kafka import KafkaLog, OrderedKafkaLog
from penstock.log.kafka import admission as admitting_thread
from penstock.log.kafka.admitting import framed
from penstock.log.kafka.journal import unplaced
from penstock.log.records import Span
from penstock.log.topic import Topic
from services.kafka import Cluster

Opener = Callable[..., OrderedKafkaLog]


@pytest.fixture
def open_ordered(kafka: Cluster, prefix: str) -> Iterator[Opener]:
    opened: list[OrderedKafkaLog] = []

    def open_(**options: object) -> OrderedKafkaLog:
        opened.append(OrderedKafkaLog.open(kafka.servers, prefix=prefix, **options))  # type: ignore[arg-type]
        return opened[-1]

    yield open_
    for log in opened:
        log.close()


@pytest.fixture
def admin(kafka: Cluster) -> AdminClient:
    return AdminClient({"bootstrap.servers": kafka.servers})


def write(kafka: Cluster, topic: str, *texts: str) -> None:
    producer = Producer({"bootstrap.servers": kafka.servers})
    for text in texts:
        producer.produce(topic, text, partition=0)
    producer.flush()


def settings_of(admin: AdminClient, topic: str) -> dict[str, str]:
    asked = ConfigResource(ConfigResource.Type.TOPIC, topic)
    return {name: found.value for name, found in admin.describe_configs([asked])[asked].result(10).items()}


def test_looking_for_a_topic_does_not_make_it(log: KafkaLog, admin: AdminClient, prefix: str) -> None:
    """Brokers make topics by themselves unless told otherwise, and keep what is in them for a week."""
    journal = settings_of(admin, f"{prefix}_penstock.journal")
    assert (journal["cleanup.policy"], journal["retention.ms"]) == ("delete", "-1")
    for name in ("catalog", "commits"):
        assert settings_of(admin, f"{prefix}_penstock.{name}")["cleanup.policy"] == "compact"
    assert log.client.partitions(f"{prefix}nothing") is None
    assert log.client.partitions(f"{prefix}nothing") is None, "nor is it there now"


def test_topics_are_kept_whatever_the_brokers_do_with_others(log: KafkaLog, admin: AdminClient, prefix: str) -> None:
    log.create_topic("orders", "id BIGINT")
    asked = ConfigResource(ConfigResource.Type.TOPIC, f"{prefix}orders")
    found = admin.describe_configs([asked])[asked].result(10)
    for name in ("cleanup.policy", "retention.ms", "retention.bytes"):
        assert not found[name].is_default, name


def test_the_gaps_of_a_compacted_topic_do_not_run_over_into_the_next_frame() -> None:
    topic = Topic("orders", (), partitions=32)
    blocks = [unplaced(Span("orders", each, 7, 2), topic, end=7 + (1 << 20)) for each in range(40)]
    frames = framed(blocks)
    assert [block for frame in frames for block in frame] == blocks
    assert [sum(block.end - block.base for block in frame) for frame in frames] == [16 << 20, 16 << 20, 8 << 20]
    assert 1 << INDEX_BITS == 16 << 20


def test_a_number_beyond_all_bounds_does_not_end_admission(open_ordered: Opener, kafka: Cluster, prefix: str) -> None:
    log = open_ordered(admits=True)
    log.create_topic("orders", "id BIGINT, at TIMESTAMP", event_time="at")
    good = json.dumps({"id": 1, "at": "2024-01-01T00:00:00Z"})
    write(kafka, f"{prefix}orders", '{"id": 1e99999999999999999999, "at": "2024-01-01T00:00:00Z"}', good)
    log.settle()
    assert log.ends("orders") == (2,)


def test_messages_up_to_an_offset_are_waited_for(
    open_log: Callable[..., KafkaLog], kafka: Cluster, prefix: str
) -> None:
    said: list[str] = []
    log = open_log(say=said.append)
    log.create_topic("orders", "id BIGINT")
    producer = Producer({"bootstrap.servers": kafka.servers, "transactional.id": f"{prefix}stranger"})
    producer.init_transactions(10)
    producer.begin_transaction()
    for each in range(3):
        producer.produce(f"{prefix}orders", json.dumps({"id": each}))
    assert producer.flush(10) == 0
    found: list[list[Message]] = []
    reading = Thread(target=lambda: found.extend(log.client.messages(f"{prefix}orders", 0, 0, 3)))
    reading.start()
    await_that(lambda: bool(said) or not reading.is_alive())
    producer.commit_transaction(10)
    reading.join(30)
    assert [message.offset() for messages in found for message in messages] == [0, 1, 2]


def test_a_repeated_append_is_in_the_order(open_ordered: Opener, monkeypatch: pytest.MonkeyPatch) -> None:
    one, two = open_ordered(), open_ordered()
    one.create_topic("changes", "id BIGINT", own=True)
    two.settle()
    may, extend, end = Event(), two._mirror.extend, two.plain.journal_end

    def late(*words: object) -> None:
        may.wait(30)
        extend(*words)  # type: ignore[arg-type]

    def asked() -> int:
        may.set()
        return end()

    monkeypatch.setattr(two._mirror, "extend", late)
    monkeypatch.setattr(two.plain, "journal_end", asked)
    one.append_all({"changes": [{"id": 1}]}, producer="p", sequence=0)
    assert two.append_all({"changes": [{"id": 1}]}, producer="p", sequence=0).repeated
    assert two.find("p", 0) is not None
    may.set()


def test_a_topic_that_was_made_anew_is_refused(
    open_ordered: Opener, admin: AdminClient, kafka: Cluster, prefix: str
) -> None:
    log = open_ordered(admits=True)
    log.create_topic("orders", "id BIGINT")
    write(kafka, f"{prefix}orders", '{"id": 1}', '{"id": 2}')
    log.settle()
    admin.delete_topics([f"{prefix}orders"])[f"{prefix}orders"].result(10)
    await_that(lambda: f"{prefix}orders" not in admin.list_topics(timeout=5).topics)
    admin.create_topics([NewTopic(f"{prefix}orders", 1)])[f"{prefix}orders"].result(10)
    await_that(lambda: is_refused(log))
    write(kafka, f"{prefix}orders", *('{"id": 3}' for _ in range(3)))
    again = open_ordered(admits=True)
    await_that(lambda: is_refused(again))
    with pytest.raises(LogError, match='topic "orders" is not what it was') as refused:
        again.check()
    assert "made anew" in refused.value.detail


def test_partitions_that_were_added_are_not_passed_over(
    open_ordered: Opener, admin: AdminClient, prefix: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(admitting_thread, "CHECK_SECONDS", 0.1)
    log = open_ordered(admits=True)
    log.create_topic("orders", "id BIGINT", partitions=2)
    log.settle()
    admin.create_partitions([NewPartitions(f"{prefix}orders", 3)])[f"{prefix}orders"].result(10)
    await_that(lambda: is_refused(log))
    with pytest.raises(LogError) as refused:
        log.check()
    assert refused.value.detail == "It has 3 partitions now, and was declared with 2."


def test_a_journal_without_its_first_messages_is_no_order(
    open_ordered: Opener, admin: AdminClient, prefix: str
) -> None:
    open_ordered().create_topic("orders", "id BIGINT")
    gone = TopicPartition(f"{prefix}_penstock.journal", 0, 1)
    for done in admin.delete_records([gone]).values():
        done.result(10)
    with pytest.raises(RecordsGone, match="the order of the log has gone"):
        open_ordered()


def is_refused(log: OrderedKafkaLog) -> bool:
    try:
        log.check()
    except LogError:
        return True
    return False


def await_that(condition: Callable[[], bool]) -> None:
    until = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < until
        time.sleep(0.01)
