"""The memory of a bridge: the ids of the messages that it has taken, kept in the log.

Ids are appended in the transaction that takes their messages, so an id is there if and only if its message is: in the
topic, or among the dead letters. A digest of the message stands beside its id. The newest `most` are known; the topic
of ids keeps at least as many.
"""

from collections.abc import Iterable, Mapping
from hashlib import blake2b
from typing import Any, Protocol, cast

from penstock.log import Log
from penstock.log.protocol import AnyLog
from penstock.log.retention import Retention

SCHEMA = "id STRING NOT NULL, digest BINARY NOT NULL"
LONGEST_ID = 255
RECORD_BYTES = 512
"""More than an id and its digest take in any log."""


class _OnKafka(Protocol):
    def create_topic(self, name: str, schema: str, *, settings: Mapping[str, str]) -> object: ...


def ids_topic(name: str) -> str:
    return f"amqp.{name}.message-ids"


def digest_of(body: bytes) -> bytes:
    return blake2b(body, digest_size=8).digest()


def short(identity: str) -> str:
    """An id as it is kept: of one that is longer than AMQP's own can be, a digest."""
    if len(identity.encode()) <= LONGEST_ID:
        return identity
    return blake2b(identity.encode(), digest_size=32).hexdigest()


class Memory:
    def __init__(self, log: AnyLog, name: str, most: int) -> None:
        self.topic = ids_topic(name)
        self._log = log
        self._most = most
        self._known: dict[str, bytes] = {}  # in the order in which they came
        self._read_to = 0
        _declare(log, self.topic, most * RECORD_BYTES)

    def __len__(self) -> int:
        return len(self._known)

    def digest(self, identity: str) -> bytes | None:
        """That of the message which had this id, if it is remembered."""
        return self._known.get(identity)

    def refresh(self) -> None:
        """Takes in what was appended since the last time, by whomever."""
        begin, end = self._log.begins(self.topic)[0], self._log.ends(self.topic)[0]
        # twice as many offsets: on Kafka some of them are marks of transactions
        start = max(self._read_to, begin, end - 2 * self._most)
        for batch in self._log.batches(self.topic, partition=0, start=start, end=end) if start < end else ():
            self.add(zip(batch.column("id").to_pylist(), batch.column("digest").to_pylist(), strict=True))
        self._read_to = end

    def add(self, taken: Iterable[tuple[str, bytes]]) -> None:
        """From now on these are known; the oldest are forgotten."""
        self._known.update(taken)
        while len(self._known) > self._most:
            del self._known[next(iter(self._known))]


def rows_of(taken: Mapping[str, bytes]) -> list[Mapping[str, Any]]:
    return [{"id": identity, "digest": digest} for identity, digest in taken.items()]


def _declare(log: AnyLog, topic: str, size: int) -> None:
    """The topic of ids, bounded as its log can do that."""
    if isinstance(log, Log):
        if all(each.name != topic for each in log.topics()):
            log.create_topic(topic, SCHEMA, retention=Retention(bytes=size))
        elif (log.topic(topic).retention.bytes or size) < size:
            log.change_retention(topic, Retention(bytes=size))
        return
    cast(_OnKafka, log).create_topic(topic, SCHEMA, settings={"retention.bytes": str(size)})
