"""A queue becomes a topic: every message once, and what cannot be a record is a dead letter."""

import json
from datetime import datetime, timedelta
from decimal import Decimal
from threading import Event, Thread

import pytest
from amqp import serialization

from penstock.capture.amqp.consuming import PREFETCH
from penstock.errors import CaptureError
from penstock.log import Log
from penstock.log.bound import Bound
from penstock.log.consumers import Terms
from tests.capture.amqp.rabbit import Rabbit, consumed, ids, intake, letters, row
from tests.texts import refused


def test_messages_become_records(rabbit: Rabbit, log: Log) -> None:
    queue = rabbit.queue()
    rabbit.send(queue, {"a": row(1), "b": {"id": 2}}, application_headers={"kind": "new", "n": 3})
    tally = consumed(log, rabbit.url, intake(queue))
    first, second = log.read("things")
    assert first.value == {"id": 1, "name": "thing 1", "price": Decimal("1.50")}
    assert second.value == {"id": 2, "name": None, "price": None}
    assert dict(first.headers) == {
        "kind": b"new",
        "n": b"3",
        "amqp.message-id": b"a",
        "amqp.routing-key": queue.encode(),
    }
    assert (tally.messages, tally.repeated, tally.letters, rabbit.waiting(queue)) == (2, 0, 0, 0)


def test_a_message_that_was_published_twice_is_there_once(rabbit: Rabbit, log: Log) -> None:
    queue = rabbit.queue()
    rabbit.send(queue, {"a": row(1)})
    rabbit.send(queue, {"a": row(1), "b": row(2)})
    assert consumed(log, rabbit.url, intake(queue)).repeated == 1
    rabbit.send(queue, {"b": row(2), "c": row(3)})  # and by another run, which reads the ids from the log
    assert consumed(log, rabbit.url, intake(queue)).repeated == 1
    assert ids(log) == [1, 2, 3]


def test_an_id_that_two_messages_have_loses_neither(rabbit: Rabbit, log: Log) -> None:
    queue = rabbit.queue()
    for _ in range(2):
        rabbit.send(queue, {"a": row(1)})
        rabbit.send(queue, {"a": row(2)})
        consumed(log, rabbit.url, intake(queue))
    assert ids(log) == [1]
    (letter,) = letters(log, queue)
    assert letter["reason"] == 'its id "a" was that of another message'
    assert json.loads(letter["body"]) == row(2)


def test_the_id_can_be_in_a_header(rabbit: Rabbit, log: Log) -> None:
    queue = rabbit.queue()
    long = "x" * 1000
    for number in (1, 1, 2):
        rabbit.send(queue, [row(number)], application_headers={"event": f"{long} {number}"})
    assert consumed(log, rabbit.url, intake(queue, id_header="event")).repeated == 1
    assert ids(log) == [1, 2]


def test_messages_without_an_id_are_taken_and_that_is_said(rabbit: Rabbit, log: Log) -> None:
    queue, said = rabbit.queue(), list[str]()
    rabbit.send(queue, [row(1), row(1)])
    tally = consumed(log, rabbit.url, intake(queue), say=said.append)
    assert (ids(log), tally.nameless) == ([1, 1], 2)
    assert [text for text in said if "without a message-id" in text] and len(said) == 1


def test_messages_without_an_id_can_be_dead_letters(rabbit: Rabbit, log: Log) -> None:
    queue = rabbit.queue()
    rabbit.send(queue, [row(1)])
    consumed(log, rabbit.url, intake(queue, strict=True))
    assert ids(log) == [] and letters(log, queue)[0]["reason"] == "it has no id"


POISON = {
    "bytes": (b"\xff\xfe", "the body is not UTF-8"),
    "text": (b"{", "the body is not JSON"),
    "exponent": (b'{"id": 1e99999999999999999999}', "the body is not JSON"),
    "list": (b"[1]", "the body is not a JSON object"),
    "field": (b'{"id": 1, "nam": "x"}', 'field "nam" does not exist in topic "things" (Did you mean "name"?)'),
    "value": (b'{"id": "one"}', 'field "id": "one" is not a BIGINT'),
    "digits": (b'{"id": 1, "price": "1.234"}', 'field "price": "1.234" is not a DECIMAL(10,2)'),
    "missing": (b'{"name": "x"}', 'field "id" is missing, and the column is NOT NULL'),
}


def test_poison_is_a_dead_letter_and_the_rest_goes_on(rabbit: Rabbit, log: Log) -> None:
    queue = rabbit.queue()
    rabbit.send(queue, {name: body for name, (body, _) in POISON.items()}, application_headers={"penstock.x": "1"})
    rabbit.send(queue, {"good": row(7)})
    tally = consumed(log, rabbit.url, intake(queue))
    found = list(log.read(f"amqp.{queue}.dead-letters"))
    assert {e.value["message_id"]: (e.value["body"], e.value["reason"]) for e in found} == POISON  # type: ignore[index,call-overload]
    assert [e.value["delivery"] for e in found] == [*range(1, len(POISON) + 1)]  # type: ignore[index,call-overload]
    assert dict(found[0].headers) == {"header.penstock.x": b"1"}
    assert ids(log) == [7] and (tally.letters, rabbit.waiting(queue)) == (len(POISON), 0)


def test_half_a_character_is_written_out(rabbit: Rabbit, log: Log) -> None:
    queue = rabbit.queue()
    rabbit.send(queue, {"\ud800": row(1), "x\ud801": b"{"}, application_headers={"\udfff": "\udfff"})
    consumed(log, rabbit.url, intake(queue))
    (entry,) = log.read("things")
    assert entry.headers["amqp.message-id"] == b"\\ud800" and "\\udfff" in entry.headers
    assert [letter["message_id"] for letter in letters(log, queue)] == ["x\\ud801"]


def test_a_header_that_the_client_cannot_decode_is_told(
    rabbit: Rabbit, log: Log, monkeypatch: pytest.MonkeyPatch
) -> None:
    queue = rabbit.queue()
    with monkeypatch.context() as wrong:  # as some publishers do it: AMQP counts seconds
        wrong.setattr(serialization.calendar, "timegm", lambda _: 1_700_000_000_000)
        rabbit.send(queue, {"a": row(1)}, application_headers={"sent": datetime(2024, 1, 1)})
    with pytest.raises(CaptureError, match="cannot be read") as told:
        consumed(log, rabbit.url, intake(queue))
    assert "year" in told.value.detail and rabbit.waiting(queue) == 1


def test_poison_that_comes_again_is_one_dead_letter(rabbit: Rabbit, log: Log) -> None:
    queue = rabbit.queue()
    for _ in range(2):
        rabbit.send(queue, {"a": b"{"})
        consumed(log, rabbit.url, intake(queue))
    assert len(letters(log, queue)) == 1


def test_what_is_encoded_is_a_dead_letter(rabbit: Rabbit, log: Log) -> None:
    queue = rabbit.queue()
    rabbit.send(queue, {"a": row(1)}, content_encoding="gzip")
    rabbit.send(queue, {"b": row(2)}, content_encoding="utf-8")
    consumed(log, rabbit.url, intake(queue))
    assert letters(log, queue)[0]["reason"] == 'its content-encoding is "gzip"' and ids(log) == [2]


def test_fields_that_the_topic_does_not_have_can_be_left_out(rabbit: Rabbit, log: Log) -> None:
    queue = rabbit.queue()
    rabbit.send(queue, {"a": row(1) | {"more": 1}})
    consumed(log, rabbit.url, intake(queue, unknown_fields=True))
    assert ids(log) == [1]


def test_columns_that_are_added_are_taken_from_then_on(rabbit: Rabbit, log: Log) -> None:
    queue = rabbit.queue()
    rabbit.send(queue, {"a": row(1) | {"more": 1}})
    consumed(log, rabbit.url, intake(queue))
    log.change_schema("things", "id BIGINT NOT NULL, name STRING, price DECIMAL(10,2), more INT")
    rabbit.send(queue, {"b": row(2) | {"more": 1}})
    consumed(log, rabbit.url, intake(queue))
    assert ids(log) == [2] and len(letters(log, queue)) == 1


def test_a_raw_topic_takes_any_bytes(rabbit: Rabbit, log: Log) -> None:
    queue = rabbit.queue()
    log.create_topic("raw")
    headers = {"penstock.key": b"\xffk", "penstock.time": "2024-05-01T09:00:00.5Z"}
    rabbit.send(queue, {"a": b"\xff\x00"}, application_headers=headers)
    rabbit.send(queue, {"b": b"text"}, timestamp=1_700_000_000, content_encoding="latin-1")
    consumed(log, rabbit.url, intake(queue, "raw"))
    first, second = log.read("raw")
    assert (first.value, first.key) == (b"\xff\x00", b"\xffk") and str(first.time) == "2024-05-01 09:00:00.500000+00:00"
    assert (second.value, second.key) == (b"text", None) and str(second.time) == "2023-11-14 22:13:20+00:00"


@pytest.mark.parametrize("kind", ["classic", "quorum"])
def test_what_was_not_acknowledged_is_taken_once(rabbit: Rabbit, log: Log, kind: str) -> None:
    """Another consumer takes all and goes away: RabbitMQ delivers them again, marked as such."""
    queue = rabbit.queue(**{"x-queue-type": kind})
    rabbit.send(queue, {str(n): row(n) for n in range(10)})
    consumed(log, rabbit.url, intake(queue, "things", name="other"))
    rabbit.send(queue, {str(n): row(n) for n in range(10)})
    with rabbit.broker.connection() as connection:
        channel, seen = connection.channel(), list[object]()
        channel.basic_consume(queue, callback=seen.append)
        while len(seen) < 10:
            connection.drain_events(timeout=10)
    assert consumed(log, rabbit.url, intake(queue, "things", name="other")).repeated == 10
    assert ids(log) == [*range(10)]


def test_more_than_is_delivered_at_once(rabbit: Rabbit, log: Log) -> None:
    queue, count = rabbit.queue(), PREFETCH + 500
    rabbit.send(queue, {str(n): row(n) for n in range(count)})
    assert consumed(log, rabbit.url, intake(queue)).messages == count
    assert ids(log) == [*range(count)]


def test_the_oldest_ids_are_forgotten(rabbit: Rabbit, log: Log) -> None:
    queue, most = rabbit.queue(), 2 * PREFETCH
    rabbit.send(queue, {str(n): row(n) for n in range(most + 1)})
    consumed(log, rabbit.url, intake(queue, remembered=most))
    rabbit.send(queue, {"0": row(0), "1": row(1)})
    assert consumed(log, rabbit.url, intake(queue, remembered=most)).repeated == 1
    with refused("capture/too-few-ids"):
        intake(queue, remembered=most - 1)


def test_a_full_topic_is_waited_for(rabbit: Rabbit, log: Log) -> None:
    """What goes in, goes in; nothing else is acknowledged meanwhile, also if it is more than the topic ever takes."""
    queue, said, over = rabbit.queue(), list[str](), Event()
    member = log.group("g").join("things", terms=Terms(session=timedelta(minutes=5)))
    log.set_bound("things", Bound(3, "fail"))
    rabbit.send(queue, {"1": row(1), "2": row(2)})
    consumed(log, rabbit.url, intake(queue))
    rabbit.send(queue, {str(n): row(n) for n in range(3, 10)})
    doing = {"say": said.append, "stop": over.is_set}
    working = Thread(target=consumed, args=(log, rabbit.url, intake(queue)), kwargs=doing)
    working.start()
    try:
        while not any("is full" in text for text in said):
            assert working.is_alive()
        assert ids(log) == [1, 2, 3]
        while working.is_alive():
            member.poll(wait=timedelta(seconds=1))
            member.commit()
    finally:
        over.set()
        member.leave()
    assert ids(log) == [*range(1, 10)] and rabbit.waiting(queue) == 0


def test_what_a_full_topic_leaves_out_is_counted_apart(rabbit: Rabbit, log: Log) -> None:
    queue = rabbit.queue()
    log.group("slow").reset("things", "earliest")
    log.set_bound("things", Bound(3, "drop"))
    for numbers in (range(2), range(2, 7)):
        rabbit.send(queue, {str(n): row(n) for n in numbers})
        tally = consumed(log, rabbit.url, intake(queue))
    assert (tally.messages, tally.dropped) == (len(ids(log)) - 2, 7 - len(ids(log)))
    assert tally.dropped > 0 and rabbit.waiting(queue) == 0


def test_what_is_not_there_is_refused(rabbit: Rabbit, log: Log) -> None:
    with refused("capture/no-queue", port=rabbit.broker.port):
        consumed(log, rabbit.url, intake("nowhere"))
    with refused("capture/no-topic"):
        consumed(log, rabbit.url, intake(rabbit.queue(), "thigns"))
    with refused("capture/no-vhost", port=rabbit.broker.port):
        consumed(log, rabbit.url + "other", intake(rabbit.queue()))


def test_a_wrong_password_is_refused_and_not_shown(rabbit: Rabbit, log: Log) -> None:
    url = rabbit.url.replace(":guest@", ":hunter2@")
    with refused("capture/wrong-password", port=rabbit.broker.port):
        consumed(log, url, intake(rabbit.queue()))
    with pytest.raises(CaptureError) as error:
        consumed(log, url, intake(rabbit.queue()))
    assert "hunter2" not in repr(error.value) + str(error.value) + repr(error.value.__cause__)
