"""Decoding: a message becomes a record of a topic, or is refused with a reason.

For a typed topic the body is a JSON object with a field for each column, in the forms of formats/kafka.md; for a raw
topic it is the value. Headers of the message are those of the record, as bytes.
"""

import json
from collections.abc import Callable, Mapping
from typing import Any

import amqp

from penstock.errors import did_you_mean
from penstock.log import Record, Topic
from penstock.log.records import instant
from penstock.schema import Scalar
from penstock.text import BASE64, Unfit, parsed_json, reader

OURS = "penstock."
DELETED, REPLACES, KEY, TIME = (OURS + name for name in ("deleted", "replaces", "key", "time"))
PLAIN = ("", "utf-8", "utf8", "identity", "binary")
READ_TIME = reader(Scalar("TIMESTAMP"))
Decode = Callable[[amqp.Message], Record]


class Refused(Exception):
    """Why a message cannot go over."""


def decoder(topic: Topic, *, unknown_fields: bool) -> Decode:
    """The function that makes records of the topic; with `unknown_fields`, fields without a column are left out."""
    if topic.raw:
        return _raw_record
    readers = {column.name: reader(column.type, BASE64) for column in topic.schema.columns}
    required = [column.name for column in topic.schema.columns if not column.nullable]

    def row(text: bytes, what: str, needed: list[str]) -> dict[str, Any]:
        found = _parsed(text, what)
        if not unknown_fields and (strange := next((name for name in found if name not in readers), None)) is not None:
            raise Refused(_unknown(topic, strange))
        fitted = {name: _fitted(name, readers[name], given) for name, given in found.items() if name in readers}
        for name in needed:
            if fitted.get(name) is None:
                raise Refused(f'field "{name}" is missing, and the column is NOT NULL')
        return fitted

    def record(message: amqp.Message) -> Record:
        _check_plain(message)
        given = headers_of(message)
        deleted = DELETED in given
        value = row(body_of(message), "the body", [name for name in required if not deleted or name in topic.key])
        replaces = row(given[REPLACES], f"header {REPLACES}", []) if REPLACES in given else None
        return Record(value, headers=_kept(message, given), deleted=deleted, replaces=replaces)

    return record


def _raw_record(message: amqp.Message) -> Record:
    given, body = headers_of(message), body_of(message)
    sent_at = message.properties.get("timestamp")
    try:
        time = (
            READ_TIME(given[TIME].decode())
            if TIME in given
            else None
            if sent_at is None
            else instant(sent_at * 1_000_000)
        )
    except (Unfit, UnicodeDecodeError, OverflowError):
        raise Refused(f"its time, in header {TIME} or property timestamp, is no time") from None
    deleted = DELETED in given
    value = None if deleted and not body else body
    return Record(value, key=given.get(KEY), time=time, headers=_kept(message, given), deleted=deleted)


def body_of(message: amqp.Message) -> bytes:
    return message.body or b""  # the client has a text where there is none


def headers_of(message: amqp.Message) -> dict[str, bytes]:
    """Text as UTF-8, bytes as they are, everything else as JSON."""
    return {str(name): _bytes(value) for name, value in (message.properties.get("application_headers") or {}).items()}


def _bytes(value: Any) -> bytes:
    if isinstance(value, bytes | bytearray):
        return bytes(value)
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)
    return text.encode(errors="surrogatepass")


def _kept(message: amqp.Message, given: Mapping[str, bytes]) -> dict[str, bytes]:
    """The headers that the record gets, and where its message came from."""
    kept = {name: value for name, value in given.items() if not name.startswith(OURS)}
    for name, value in (
        ("message-id", message.properties.get("message_id")),
        ("exchange", message.delivery_info.get("exchange")),
        ("routing-key", message.delivery_info.get("routing_key")),
    ):
        if value:
            kept[f"amqp.{name}"] = str(value).encode()
    return kept


def _parsed(text: bytes, what: str) -> dict[str, Any]:
    try:
        found = parsed_json(text.decode())
    except UnicodeDecodeError:
        raise Refused(f"{what} is not UTF-8") from None
    except (ValueError, RecursionError):
        raise Refused(f"{what} is not JSON") from None
    if not isinstance(found, dict):
        raise Refused(f"{what} is not a JSON object")
    return found


def _fitted(name: str, read: Callable[[Any], Any], given: Any) -> Any:
    try:
        return read(given)
    except Unfit as error:
        raise Refused(f'field "{name}{error.path}": {error}') from None


def _unknown(topic: Topic, name: str) -> str:
    hint = did_you_mean(name, topic.schema.names)
    return f'field "{name}" does not exist in topic "{topic.name}"' + (f" ({hint})" if hint else "")


def _check_plain(message: amqp.Message) -> None:
    encoding = str(message.properties.get("content_encoding") or "").lower()
    if encoding not in PLAIN:
        raise Refused(f'its content-encoding is "{encoding}"')
