"""A topic goes to an exchange: every record, under an id that says where it stands."""

import json
from datetime import UTC, datetime
from decimal import Decimal

import pytest

from penstock.capture.amqp import Routing
from penstock.log import Log, Record
from tests.capture.amqp.rabbit import Rabbit, consumed, intake, letters, published, row
from tests.texts import refused

ROWS = [{"id": n, "name": f"thing {n}", "price": Decimal("1.50")} for n in range(3)]


def test_records_become_messages(rabbit: Rabbit, log: Log) -> None:
    queue = rabbit.queue()
    log.append("things", [*ROWS[:2], Record({"id": 1, "name": None, "price": None}, headers={"kind": b"new"})])
    tally = published(log, rabbit.url, "things", Routing("", queue))
    first, _, third = rabbit.received(queue)
    assert json.loads(first.body) == row(0) and json.loads(third.body) == {"id": 1}
    assert first.properties["message_id"] == f"{log.identity}/things/0/0"
    assert first.properties["delivery_mode"] == 2 and first.properties["content_type"] == "application/json"
    assert third.properties["application_headers"] == {"kind": "new"}
    assert (tally.messages, tally.repeated, tally.letters) == (3, 0, 0)


def test_it_goes_on_where_it_was(rabbit: Rabbit, log: Log) -> None:
    queue = rabbit.queue()
    for number in range(3):
        log.append("things", [ROWS[number]])
        assert published(log, rabbit.url, "things", Routing("", queue)).messages == 1
    assert [json.loads(each.body)["id"] for each in rabbit.received(queue)] == [0, 1, 2]
    (lag,) = log.group("test").lag()
    assert (lag.committed, lag.records) == (3, 0)


def test_the_routing_key_can_be_a_column(rabbit: Rabbit, log: Log) -> None:
    one, two = rabbit.queue(), rabbit.queue()
    exchange = rabbit.exchange(one, key="thing 1")
    log.append("things", ROWS)
    tally = published(log, rabbit.url, "things", Routing(exchange, column="name"))
    assert [json.loads(each.body)["id"] for each in rabbit.received(one)] == [1] and not rabbit.received(two)
    assert (tally.messages, tally.letters) == (1, 2)


def test_what_has_no_queue_is_a_dead_letter(rabbit: Rabbit, log: Log) -> None:
    log.append("things", [Record(ROWS[0], headers={"kind": b"new"}), ROWS[1]])
    exchange = rabbit.exchange()
    assert published(log, rabbit.url, "things", Routing(exchange, "k")).letters == 2
    first, second = log.read("amqp.test.dead-letters")
    assert first.value is not None and dict(first.headers) == {"kind": b"new"}
    found = dict(first.value)  # type: ignore[arg-type]
    assert json.loads(found.pop("body")) == row(0) and json.loads(found.pop("properties"))["app_id"] == "penstock"
    assert found == {
        "reason": "RabbitMQ has no queue for it: NO_ROUTE",
        "exchange": exchange,
        "routing_key": "k",
        "message_id": f"{log.identity}/things/0/0",
        "queue": None,
        "delivery": None,
        "redelivered": None,
        "topic": "things",
        "partition": 0,
        "offset": 0,
    }
    assert second.value["offset"] == 1  # type: ignore[index,call-overload]


def test_what_amqp_has_no_room_for_is_a_dead_letter(rabbit: Rabbit, log: Log) -> None:
    queue = rabbit.queue()
    log.append("things", [{"id": 1, "name": "x" * 256}, {"id": 2, "name": queue}])
    assert published(log, rabbit.url, "things", Routing("", column="name")).messages == 1
    assert "longer than 255 bytes" in letters(log, "test")[0]["reason"]
    log.append("things", [Record({"id": 3, "name": queue}, headers={"h" * 256: b""})])
    assert published(log, rabbit.url, "things", Routing("", column="name")).letters == 1


def test_what_ends_the_connection_is_found_and_the_rest_goes_on(rabbit: Rabbit, log: Log) -> None:
    """Headers that are larger than a frame: RabbitMQ ends the whole connection."""
    queue = rabbit.queue()
    log.append("things", [ROWS[0], Record(ROWS[1], headers={"h": b"x" * 200_000}), ROWS[2]])
    tally = published(log, rabbit.url, "things", Routing("", queue))
    assert tally.letters == 1 and letters(log, "test")[0]["offset"] == 1
    assert letters(log, "test")[0]["reason"].startswith("RabbitMQ refuses it: FRAME_ERROR")
    assert {json.loads(each.body)["id"] for each in rabbit.received(queue)} == {0, 2}


def test_a_queue_that_is_full_is_waited_for(rabbit: Rabbit, log: Log) -> None:
    """RabbitMQ refuses what does not fit; it is sent again until it does, and nothing else is."""
    queue = rabbit.queue(**{"x-max-length": 2, "x-overflow": "reject-publish"})
    log.append("things", [{"id": n} for n in range(6)])
    got = list[int]()

    def make_room(text: str) -> None:
        assert "refused" in text or "there again" in text
        got.extend(json.loads(each.body)["id"] for each in rabbit.received(queue))

    tally = published(log, rabbit.url, "things", Routing("", queue), say=make_room)
    make_room("refused")
    assert sorted(got) == [*range(6)] and (tally.messages, tally.repeated) == (6, 0)


def test_deletions_and_replaced_rows_go_to_another_log(rabbit: Rabbit, log: Log) -> None:
    queue = rabbit.queue()
    log.create_topic("items", "id BIGINT NOT NULL, name STRING NOT NULL", key="id")
    rows = [{"id": 1, "name": "a"}, Record({"id": 1, "name": "b"}, replaces={"id": 1, "name": "a"})]
    log.append("items", [*rows, Record({"id": 1}, deleted=True)])
    published(log, rabbit.url, "items", Routing("", queue))
    log.create_topic("copies", "id BIGINT NOT NULL, name STRING NOT NULL", key="id")
    assert consumed(log, rabbit.url, intake(queue, "copies")).messages == 3
    assert [(e.value, e.deleted, e.replaces) for e in log.read("copies")] == [
        (e.value, e.deleted, e.replaces) for e in log.read("items")
    ]


def test_raw_records_are_the_same_on_the_other_side(rabbit: Rabbit, log: Log) -> None:
    queue, at = rabbit.queue(), datetime(2024, 5, 1, 9, 0, 0, 123456, tzinfo=UTC)
    log.create_topic("raw")
    log.create_topic("copies")
    log.append("raw", [Record(b"\xff", key=b"\xfe", time=at, headers={"h": b"\x00\xff"}), Record(None, key=b"k")])
    published(log, rabbit.url, "raw", Routing("", queue))
    consumed(log, rabbit.url, intake(queue, "copies"))
    one, two = [[(e.key, e.value, e.time, e.deleted) for e in log.read(name)] for name in ("raw", "copies")]
    assert one == two and next(log.read("copies")).headers["h"] == b"\x00\xff"


def test_partitions_and_more_than_one_batch(rabbit: Rabbit, log: Log) -> None:
    queue = rabbit.queue()
    log.create_topic("wide", "id BIGINT NOT NULL", partitions=3, key="id")
    log.append("wide", [{"id": n} for n in range(1_700)])
    assert published(log, rabbit.url, "wide", Routing("", queue)).messages == 1_700
    found = rabbit.received(queue)
    assert sorted(json.loads(each.body)["id"] for each in found) == [*range(1_700)]
    assert len({each.properties["message_id"] for each in found}) == 1_700


def test_what_is_not_there_is_refused(rabbit: Rabbit, log: Log) -> None:
    with refused("capture/no-exchange", port=rabbit.broker.port):
        published(log, rabbit.url, "things", Routing("nowhere"))
    with refused("capture/no-column"):
        published(log, rabbit.url, "things", Routing("", column="nmae"))
    log.create_topic("raw")
    with refused("capture/no-column-of-raw"):
        published(log, rabbit.url, "raw", Routing("", column="name"))


@pytest.mark.parametrize("name", ["things-to-", "a b"])
def test_a_name_that_cannot_be_is_refused(rabbit: Rabbit, log: Log, name: str) -> None:
    if name == "a b":
        with refused("capture/bad-name"):
            published(log, rabbit.url, "things", Routing("", "q"), name=name)
    else:
        assert published(log, rabbit.url, "things", Routing("", "q"), name=name).messages == 0
