"""Settings of Kafka's client: the user's are passed through as they are, and shown to nobody.

Those that the log's promises rest on are its own and cannot be given.
"""

import logging
import re
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from confluent_kafka import KafkaException

from penstock.errors import LogError

T = TypeVar("T")
OURS = (
    "bootstrap.servers",
    "metadata.broker.list",
    "allow.auto.create.topics",
    "auto.offset.reset",
    "transactional.id",
    "enable.idempotence",
    "isolation.level",
    "group.id",
    "enable.auto.commit",
    "enable.partition.eof",
    "partitioner",
    "error_cb",
    "logger",
)
CLIENTS: Mapping[str, Any] = {
    # Whoever looks for a topic must not make it: brokers would, with settings under which its records go in a week.
    "allow.auto.create.topics": False,
}
PRODUCER: Mapping[str, Any] = {
    **CLIENTS,
    "enable.idempotence": True,
    "partitioner": "murmur2",
    "compression.type": "lz4",
    "transaction.timeout.ms": 30_000,  # so long others wait for what a dead process had begun
    "message.max.bytes": 8_000_000,  # a dead letter has its message escaped, a change the row that it replaces
}
CONSUMER: Mapping[str, Any] = {
    **CLIENTS,
    "group.id": "penstock",  # never joined: partitions are assigned
    "isolation.level": "read_committed",
    "enable.auto.commit": False,
    "enable.partition.eof": True,
    "auto.offset.reset": "earliest",
    "fetch.wait.max.ms": 10,
}
CLIENT = logging.getLogger("penstock.log.kafka.client")
CLIENT.addHandler(logging.NullHandler())  # else its lines would go to standard error


class Settings:
    """What was given, with what is ours. Its text names no values: they may be secrets."""

    def __init__(self, servers: str, given: Mapping[str, Any]) -> None:
        for name in given:
            if name in OURS:
                raise LogError(f'the setting "{name}" is not free', hint="The log sets it itself.")
        self._common = {**given, "bootstrap.servers": servers, "logger": CLIENT}
        self._given = tuple(given)

    def __repr__(self) -> str:
        return f"Settings({', '.join(f'{name}=...' for name in self._given)})"

    def made(self, kind: Callable[[dict[str, Any]], T], own: Mapping[str, Any]) -> T:
        """A client with these settings and its own; what was given goes before what is ours and free."""
        try:
            return kind({**own, **self._common})
        except KafkaException as error:
            raise _misset(str(error)) from None  # its text may hold the value

    @property
    def transaction_seconds(self) -> float:
        """After so long the brokers give up a transaction."""
        return float(self._common.get("transaction.timeout.ms", PRODUCER["transaction.timeout.ms"])) / 1000


def _misset(text: str) -> LogError:
    found = re.search(r'property:? "([\w.]+)"', text)
    name = f' "{found.group(1)}"' if found else "s"
    unknown = "No such" in text
    return LogError(
        f"Kafka's client does not {'know' if unknown else 'take'} the setting{name}"
        + ("" if unknown else " as it was given"),
        hint="The names and values are those of librdkafka.",
    )
