"""Topics: declared once, in the log's catalog; Kafka's own topic of that name is made, or taken as it is.

Who changes the catalog takes over its transactional id: of two that change it at once, one looks again.
"""

import time
from collections.abc import Mapping

from penstock.errors import LogError
from penstock.log.description import declared_otherwise
from penstock.log.kafka.appending import Appending
from penstock.log.kafka.client import Client
from penstock.log.kafka.facts import INTERNAL, Facts
from penstock.log.kafka.messages import Outgoing
from penstock.log.topic import Topic, grown, same_declaration
from penstock.schema import Schema

CATALOG = "catalog"
"""The transactional id."""
CONFIG = {
    "message.timestamp.type": "LogAppendTime",
    "cleanup.policy": "delete",
    "retention.ms": "-1",
    "retention.bytes": "-1",
    "max.message.bytes": str(8 << 20),
}
"""Of topics that the log makes: the broker says when a record was appended, and nothing is thrown away, whatever the
brokers do with other topics; dead letters and replaced rows have room.
"""


class Topics:
    def __init__(self, client: Client, facts: Facts, appending: Appending, prefix: str) -> None:
        self._client = client
        self._facts = facts
        self._appending = appending
        self._prefix = prefix

    def create(self, topic: Topic, settings: Mapping[str, str], *, own: bool) -> Topic:
        if topic.name.startswith(INTERNAL):
            raise LogError(
                f'"{topic.name}" is not free', hint=f'Names that begin with "{INTERNAL}" are the log\'s own.'
            )
        if found := self._known(topic):
            return found
        identity = self._made(topic, settings)

        def fact(_: object) -> list[Outgoing]:
            now = time.time_ns() // 1000
            return [] if self._known(topic) else self._facts.topic_messages(topic, now, identity, own=own)

        self._appending.decide(CATALOG, fact)
        return self._facts.topic(topic.name)

    def change(self, name: str, schema: Schema) -> Topic:
        def fact(_: object) -> list[Outgoing]:
            topic, born = self._facts.topic_and_birth(name)
            changed = grown(topic, schema)
            own = name in self._facts.own()
            return [] if changed is topic else self._facts.columns_messages(changed, born, own=own)

        self._appending.decide(CATALOG, fact)
        return self._facts.topic(name)

    def _known(self, topic: Topic) -> Topic | None:
        existing = self._facts.topics().get(topic.name)
        if existing is not None and not same_declaration(existing, topic):
            raise declared_otherwise(existing, topic)
        return existing

    def _made(self, topic: Topic, settings: Mapping[str, str]) -> str:
        """What Kafka calls the topic, which is there then."""
        name = self._prefix + topic.name
        self._client.create(name, topic.partitions, {**CONFIG, **settings})
        identity, found = self._client.described(name)
        if found != topic.partitions:
            raise LogError(
                f'Kafka has the topic "{name}" already, with {found} partition{"s" if found > 1 else ""}',
                detail=f"Asked for are {topic.partitions}.",
                hint="Declare it with as many as it has, or choose another name.",
            )
        return identity
