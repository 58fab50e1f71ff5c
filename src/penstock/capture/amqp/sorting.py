"""Sorting: which of the messages that have come are new, which were taken before, and which are dead letters."""

from collections.abc import Sequence
from dataclasses import dataclass, field

import amqp
import pyarrow as pa

from penstock.capture.amqp.decoding import Decode, Refused, body_of, headers_of
from penstock.capture.amqp.letters import letter_in
from penstock.capture.amqp.memory import Memory, digest_of, short
from penstock.errors import SchemaError
from penstock.log import Record, Topic
from penstock.log.columns import columns_of

New = tuple[amqp.Message, Record]


@dataclass(frozen=True)
class Rules:
    """How messages are told apart: by their property message-id, or a header; `strict`: those without are refused."""

    queue: str
    id_header: str | None = None
    strict: bool = False


@dataclass
class Sorted:
    rows: pa.RecordBatch | None = None
    letters: list[Record] = field(default_factory=list)
    ids: dict[str, bytes] = field(default_factory=dict)
    repeated: int = 0
    nameless: int = 0


def sort(messages: Sequence[amqp.Message], topic: Topic, decode: Decode, *, memory: Memory, rules: Rules) -> Sorted:
    """What is to be appended, and the ids of all that."""
    found = Sorted()
    new: list[New] = []
    for message in messages:
        try:
            if _is_new(message, found, memory, rules):
                new.append((message, decode(message)))
        except Refused as refused:
            found.letters.append(letter_in(message, rules.queue, str(refused)))
    try:
        found.rows = _rows(topic, new)
    except SchemaError:  # some do not fit: which?
        found.rows = _rows(topic, [each for each in new if _fits(topic, each, found, rules)])
    return found


def _is_new(message: amqp.Message, found: Sorted, memory: Memory, rules: Rules) -> bool:
    """Notes the id of one that is new."""
    identity = _identity(message, rules)
    if identity is None:
        found.nameless += 1
        if rules.strict:
            raise Refused("it has no id")
        return True
    digest = digest_of(body_of(message))
    before = found.ids.get(identity) or memory.digest(identity)
    other = f"{short(identity)[:200]} {digest.hex()}"
    """Under which a message is remembered that has the id of another one."""
    if before == digest or found.ids.get(other) or memory.digest(other):
        found.repeated += 1
        return False
    found.ids[identity if before is None else other] = digest
    if before is not None:
        raise Refused(f'its id "{identity}" was that of another message')
    return True


def _identity(message: amqp.Message, rules: Rules) -> str | None:
    if rules.id_header is None:
        given = message.properties.get("message_id")
    else:
        given = headers_of(message).get(rules.id_header, b"").decode(errors="backslashreplace")
    return short(given) if given else None


def _rows(topic: Topic, new: Sequence[New]) -> pa.RecordBatch | None:
    return columns_of(topic, [record for _, record in new]).batch if new else None


def _fits(topic: Topic, new: New, found: Sorted, rules: Rules) -> bool:
    """Whether the log takes it; if not, it is a dead letter."""
    try:
        _rows(topic, [new])
    except SchemaError as error:
        found.letters.append(letter_in(new[0], rules.queue, f"{error.primary}. {error.detail}".strip()))
        return False
    return True
