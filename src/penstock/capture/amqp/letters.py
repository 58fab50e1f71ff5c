"""Dead letters of a bridge: messages that could not go over, with the reason, where each stood, and its bytes.

Those of a queue are appended with the messages that came with them. Those of a topic are appended under a producer,
with a note of which they are, so that a bridge that dies before it remembers how far it has come leaves no second ones.
"""

import json
from collections.abc import Mapping
from typing import Any

import amqp

from penstock.capture.amqp.decoding import body_of, headers_of
from penstock.errors import CaptureError
from penstock.log import Record
from penstock.log.protocol import AnyLog
from penstock.log.topic import NAME

SCHEMA = (
    "reason STRING NOT NULL, exchange STRING, routing_key STRING, message_id STRING, queue STRING, delivery BIGINT, "
    "redelivered BOOLEAN, topic STRING, partition INT, offset BIGINT, properties STRING, body BINARY"
)
Position = tuple[str, int, int]
"""Topic, partition and offset."""
REMEMBERED = 1_000
"""So many positions stand in a note: more than are sent at once."""
TAKEN = ("application_headers", "message_id")
OURS, THEIRS = "penstock.", "header.penstock."
"""Names of headers that are the log's own, and what becomes of such names in a message."""


def letters_topic(name: str) -> str:
    return f"amqp.{name}.dead-letters"


def declare_letters(log: AnyLog, name: str) -> str:
    """The topic of the dead letters, which is there then."""
    if not NAME.fullmatch(letters_topic(name)):
        raise CaptureError(
            f'"{name}" cannot be the name of a bridge',
            detail=f'Its topics would be "{letters_topic(name)}" and the like.',
            hint="Choose a name of letters, digits, dot, dash and underscore: --name",
        )
    return log.create_topic(letters_topic(name), SCHEMA).name


def append_letters(log: AnyLog, name: str, letters: Mapping[Position, Record]) -> None:
    """Appends those that are not there already."""
    for partition in {position[1] for position in letters}:
        mine = {position: letter for position, letter in letters.items() if position[1] == partition}
        while not _appended(log, name, partition, mine):
            continue


def _appended(log: AnyLog, name: str, partition: int, letters: Mapping[Position, Record]) -> bool:
    """False if another bridge was quicker."""
    producer = f"amqp {name} dead letters {partition}"
    last = log.last(producer)
    before = [(topic, part, offset) for topic, part, offset in last.note.get("dead", ())] if last else []
    fresh = {position: letter for position, letter in letters.items() if position not in before}
    if not fresh:
        return True
    sequence = 0 if last is None or last.sequence is None else last.sequence + 1
    note = {"dead": [*before, *fresh][-REMEMBERED:]}
    rows = {letters_topic(name): list(fresh.values())}
    return not log.append_all(rows, producer=producer, sequence=sequence, note=note).repeated


def letter_in(message: amqp.Message, queue: str, reason: str) -> Record:
    """Of a message that came."""
    told = message.delivery_info
    where = {"queue": queue, "delivery": told["delivery_tag"], "redelivered": bool(told.get("redelivered"))}
    return _letter(message, reason, told.get("exchange"), told.get("routing_key"), where)


def letter_out(message: amqp.Message, reason: str, *, exchange: str, routing_key: str, position: Position) -> Record:
    """Of a record that was to go."""
    where = dict(zip(("topic", "partition", "offset"), position, strict=True))
    return _letter(message, reason, exchange, routing_key, where)


def _letter(
    message: amqp.Message, reason: str, exchange: str | None, routing_key: str | None, where: Mapping[str, Any]
) -> Record:
    rest = {name: value for name, value in message.properties.items() if name not in TAKEN}
    row = {
        "reason": reason,
        "exchange": exchange,
        "routing_key": routing_key,
        "message_id": message.properties.get("message_id"),
        "properties": json.dumps(rest, ensure_ascii=False, default=str, sort_keys=True),
        "body": body_of(message),
        **where,
    }
    headers = {_free(name): value for name, value in headers_of(message).items()}
    return Record(row, headers=headers)


def _free(name: str) -> str:
    return THEIRS + name.removeprefix(OURS) if name.startswith(OURS) else name
