"""One order of all topics on Kafka: the journal, its mirror, and the admission of what other programs write."""

import json
import stat
from collections.abc import Callable, Iterator, Mapping
from datetime import timedelta
from pathlib import Path

import pyarrow as pa
import pytest
from confluent_kafka import Consumer, ConsumerGroupTopicPartitions, Message, Producer, TopicPartition
from confluent_kafka.admin import AdminClient

from penstock.errors import LogError
from penstock.log import Record
from penstock.log.kafka import OrderedKafkaLog
from penstock.log.records import Span
from penstock.views import SqliteStore, ViewReader, catch_up, changes
from services.kafka import Cluster
from tests.log.contract import NOON, ORDERS, SECOND, orders
from tests.views.shop import Shop, Story, counted, folded

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


def write(kafka: Cluster, topic: str, *rows: tuple[int, Mapping[str, object]]) -> None:
    """As a program that knows nothing of Penstock would."""
    producer = Producer({"bootstrap.servers": kafka.servers})
    for partition, row in rows:
        producer.produce(topic, json.dumps(row), partition=partition)
    producer.flush()


def test_what_the_log_appends_itself_is_a_frame_at_once(
    open_ordered: Opener,
) -> None:
    log, other = open_ordered(), open_ordered()
    log.create_topic("changes", "id BIGINT, n BIGINT", key="id", own=True)
    epoch = log.raise_epoch("pipeline shop")
    start = log.mark().next_frame
    done = log.append_all(
        {"changes": [{"id": 1, "n": 1}, {"id": 2, "n": 1}]}, producer="shop/1", sequence=0, note={"batch": 0}
    )
    (header,) = log.frames(start)
    assert (header.producer, header.sequence, header.note) == ("shop/1", 0, {"batch": 0})
    assert [(b.topic, b.base, b.count, b.end) for b in header.blocks] == [("changes", 0, 2, 2)]
    assert done.spans == (Span("changes", 0, 0, 2),)
    assert log.last("shop/1") == log.find("shop/1", 0) == header
    assert log.append_all({"changes": [{"id": 3}]}, producer="shop/1", sequence=0).repeated
    assert [log.epoch("pipeline shop"), epoch] == [1, 1]
    other.settle()
    assert list(other.frames()) == list(log.frames()), "everybody finds the same"
    (batch,) = log.batches("changes", partition=0, columns=["id", "_place"])
    assert batch.to_pylist() == [{"id": each + 1, "_place": start << 24 | each} for each in range(2)]


def test_what_others_write_is_admitted_with_its_event_times(open_ordered: Opener, kafka: Cluster, prefix: str) -> None:
    log = open_ordered(admits=True)
    log.create_topic("orders", ORDERS, partitions=2, event_time="at")
    at = [(NOON + each * SECOND).isoformat() for each in range(10)]
    write(
        kafka, f"{prefix}orders", (0, {"id": 1, "at": at[5]}), (0, {"id": 2, "at": at[3]}), (1, {"id": 3, "at": at[7]})
    )
    log.settle()
    found = log.describe("orders")
    assert [(each.end, each.largest_time) for each in found.partitions] == [
        (2, NOON + 5 * SECOND),
        (1, NOON + 7 * SECOND),
    ]
    assert log.watermark("orders", delay=SECOND, by="partition") == NOON + 4 * SECOND
    write(kafka, f"{prefix}orders", (0, {"id": 4, "at": at[1]}), (1, {"id": 5, "at": "soon"}))
    log.settle()
    blocks = [block for header in log.frames() for block in header.blocks]
    assert sum(block.count for block in blocks) == 5
    assert {block.partition: block.top for block in blocks} == {
        each.partition: each.largest_time and int(each.largest_time.timestamp() * 1e6) for each in found.partitions
    }


def test_two_that_admit_do_not_fight(open_ordered: Opener, kafka: Cluster, prefix: str) -> None:
    one, two = open_ordered(admits=True), open_ordered(admits=True)
    one.create_topic("orders", ORDERS)
    for round_ in range(5):
        write(kafka, f"{prefix}orders", *((0, {"id": each}) for each in range(20)))
        (one, two)[round_ % 2].settle()
    for log in (one, two):
        log.settle()
        blocks = [block for header in log.frames() for block in header.blocks]
        assert sum(block.count for block in blocks) == 100
        assert [block.base for block in blocks[1:]] == [block.end for block in blocks[:-1]], "no record twice"
    assert list(one.frames()) == list(two.frames())


def test_the_mirror_goes_on_where_it_was_and_is_rebuilt_where_it_is_damaged(
    open_ordered: Opener, tmp_path: Path
) -> None:
    log = open_ordered(folder=tmp_path / "mirror")
    log.create_topic("orders", ORDERS, own=True)
    for each in range(5):
        log.append("orders", orders(each))
    frames = list(log.frames())
    log.close()
    again = open_ordered(folder=tmp_path / "mirror")
    again.append("orders", orders(5))
    assert list(again.frames())[:-1] == frames
    frames = list(again.frames())
    again.close()
    (stretch,) = (tmp_path / "mirror" / "journal").glob("*.journal")
    stretch.write_bytes(stretch.read_bytes()[:-20])
    assert list(open_ordered(folder=tmp_path / "mirror").frames()) == frames


def test_a_mirror_belongs_to_one_log_and_tells_nobody_else(
    open_ordered: Opener, kafka: Cluster, tmp_path: Path
) -> None:
    open_ordered(folder=tmp_path / "mirror")
    assert stat.S_IMODE((tmp_path / "mirror" / "kafka.json").stat().st_mode) == 0o600
    with pytest.raises(LogError, match="mirrors another log"):
        OrderedKafkaLog.open(kafka.servers, prefix="elsewhere.", folder=tmp_path / "mirror")
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "photo.jpg").touch()
    with pytest.raises(LogError, match="is not empty"):
        open_ordered(folder=tmp_path / "mine")


def test_the_running_maximum_survives_everything_but_the_journal(
    open_ordered: Opener, kafka: Cluster, prefix: str
) -> None:
    log = open_ordered(admits=True)
    log.create_topic("orders", ORDERS, partitions=2, event_time="at")
    write(
        kafka, f"{prefix}orders", *((each, {"id": each, "at": (NOON + each * SECOND).isoformat()}) for each in (0, 1))
    )
    log.settle()
    log.close()
    fresh = open_ordered(patience=timedelta(seconds=20))
    assert [each.largest_time for each in fresh.describe("orders").partitions] == [NOON, NOON + SECOND]


def test_records_are_read_by_place_and_time(open_ordered: Opener) -> None:
    log = open_ordered(admits=True)
    log.create_topic("orders", ORDERS)
    frames = []
    for each in range(3):
        log.append("orders", orders(2 * each, 2 * each + 1))
        log.settle()
        frames.append(list(log.frames())[-1])
    entries = list(log.read("orders"))
    assert [entry.value["id"] for entry in entries] == list(range(6))  # type: ignore[index,call-overload]
    assert [entry.place.frame for entry in entries] == [frame.frame for frame in frames for _ in range(2)]
    middle = entries[3]
    for start in (middle.place, middle.offset):
        assert [entry.offset for entry in log.read("orders", start=start)] == [e.offset for e in entries[3:]]
    assert [entry.offset for entry in log.read("orders", start=entries[2].appended_at, end=entries[4].place)] == [
        entry.offset for entry in entries[2:4]
    ]


def test_other_readers_can_put_the_changes_of_a_batch_together(
    open_ordered: Opener, kafka: Cluster, prefix: str
) -> None:
    log = open_ordered()
    log.create_topic("spend", "city STRING, n BIGINT", key="city", own=True)
    log.create_topic("bag", "tag STRING", partitions=4, own=True)
    bag = [{"tag": each} for each in "abcdefgh"]
    note = {"batch": 7, "from": 3, "until": 9}
    log.append_all({"spend": [{"city": "Bern", "n": 1}], "bag": bag}, producer="shop/1", sequence=7, note=note)
    log.append_all({"bag": [Record(row, deleted=True) for row in bag]}, producer="shop/1", sequence=8)
    found = {name: read_committed(kafka, f"{prefix}{name}") for name in ("spend", "bag")}
    first = [dict(m.headers() or ()) for each in found.values() for m in each]
    first = [each for each in first if each["penstock.sequence"] == b"7"]
    assert {each["penstock.producer"] for each in first} == {b"shop/1"}
    assert {(each["penstock.from"], each["penstock.until"]) for each in first} == {(b"3", b"9")}
    assert sorted(int(each["penstock.index"].split(b"/")[0]) for each in first) == list(range(9))
    assert {each["penstock.index"].split(b"/")[1] for each in first} == {b"9"}
    partitions = [{m.value(): m.partition() for m in found["bag"] if deleted(m) is is_} for is_ in (False, True)]
    assert partitions[0] == partitions[1] and len(set(partitions[0].values())) > 1, "a row and its deletion meet"


def deleted(message: Message) -> bool:
    return "penstock.deleted" in dict(message.headers() or ())


def read_committed(kafka: Cluster, topic: str) -> list[Message]:
    """All messages of a topic, as a program that knows nothing of Penstock reads them."""
    settings = {"bootstrap.servers": kafka.servers, "group.id": "others", "isolation.level": "read_committed"}
    consumer = Consumer({**settings, "enable.partition.eof": True, "enable.auto.commit": False})
    partitions = consumer.list_topics(topic).topics[topic].partitions
    consumer.assign([TopicPartition(topic, each, 0) for each in partitions])
    found, open_ = [], set(partitions)
    while open_:
        message = consumer.poll(10)
        assert message is not None
        if message.error() is None:
            found.append(message)
        else:
            open_.discard(message.partition())
    consumer.close()
    return found


def test_a_store_follows_on_kafka(open_ordered: Opener, tmp_path: Path) -> None:
    log = open_ordered()
    business = Shop(log)  # type: ignore[arg-type]
    business.announce()
    story = Story(business, 1)
    with SqliteStore(tmp_path / "views.sqlite") as store:
        for _ in range(5):
            story.go_on(1)
            catch_up(log, "shop", store)
        with ViewReader(tmp_path / "views.sqlite") as reader:
            for view in ("spend", "names"):
                assert counted(reader.rows(view)) == folded(log, business.topic(view)), view  # type: ignore[arg-type]
                assert len(reader.rows(view))
    assert {change.batch for change in changes(log, "shop", "spend")} <= set(range(5))


def test_kafkas_own_tools_see_how_far_a_reader_has_come(open_ordered: Opener, kafka: Cluster, prefix: str) -> None:
    log = open_ordered(admits=True)
    log.create_topic("orders", ORDERS, partitions=2)
    ends = []
    for count in (3, 4):
        write(kafka, f"{prefix}orders", *((0, {"id": each}) for each in range(count)))
        log.settle()
        ends.append(log.mark().next_frame)
    log.report("shop", ["orders"], ends[0])
    log.close()
    assert committed(kafka, f"{prefix}penstock.shop") == {(f"{prefix}orders", 0): 3}
    log = open_ordered()
    log.report("shop", ["orders"], ends[1])
    log.close()
    assert committed(kafka, f"{prefix}penstock.shop") == {(f"{prefix}orders", 0): 7}


def committed(kafka: Cluster, group: str) -> dict[tuple[str, int], int]:
    admin = AdminClient({"bootstrap.servers": kafka.servers})
    found = admin.list_consumer_group_offsets([ConsumerGroupTopicPartitions(group)])[group].result()
    return {(each.topic, each.partition): each.offset for each in found.topic_partitions}


def test_files_are_appended_as_records(open_ordered: Opener, tmp_path: Path) -> None:
    log = open_ordered(folder=tmp_path / "mirror")
    log.create_topic("changes", "id BIGINT", key="id", own=True)
    path = log.staging_path()
    with pa.ipc.new_file(path, pa.schema([("id", pa.int64())])) as file:
        file.write_batch(pa.record_batch([[1, 2, 3]], names=["id"]))
    for repeated in (False, True):
        assert log.append_files({("changes", 0): [path]}, producer="shop/1", sequence=0).repeated is repeated
    assert [entry.key for entry in log.read("changes")] == [(1,), (2,), (3,)] and not path.exists()
    far = pa.table({"id": [1], "at": pa.array([1 << 60], pa.timestamp("us", "UTC"))})
    log.create_topic("times", "id BIGINT, at TIMESTAMP", own=True)
    with pytest.raises(LogError, match="cannot be written to Kafka"):
        log.append_all({"times": far}, far_times=True)


def test_what_kafka_had_let_go_before_it_was_admitted_is_not_missed(
    open_ordered: Opener, kafka: Cluster, prefix: str
) -> None:
    open_ordered().create_topic("orders", ORDERS)
    write(kafka, f"{prefix}orders", *((0, {"id": each}) for each in range(5)))
    delete_before(kafka, f"{prefix}orders", 3)
    log = open_ordered(admits=True)
    log.settle()
    assert [entry.offset for entry in log.read("orders")] == [3, 4]
    assert log.begins("orders") == (0,)
    delete_before(kafka, f"{prefix}orders", 4)
    assert log.begins("orders") == (4,), "that one is missed"


def delete_before(kafka: Cluster, topic: str, offset: int) -> None:
    admin = AdminClient({"bootstrap.servers": kafka.servers})
    for done in admin.delete_records([TopicPartition(topic, 0, offset)]).values():
        done.result(10)
