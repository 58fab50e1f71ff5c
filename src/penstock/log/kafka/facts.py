"""Facts of a log on Kafka: its topics, its epochs, and the last commits of its producers, each in a compacted topic.

A fact is written in the transaction that makes it true, so it is there if and only if that was committed.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from penstock.errors import LogError
from penstock.log.frame import Header
from penstock.log.kafka.client import Client
from penstock.log.kafka.journal import CONFIG as JOURNAL
from penstock.log.kafka.journal import journal_message, journal_name
from penstock.log.kafka.kept import CONFIG, Kept
from penstock.log.kafka.messages import Outgoing
from penstock.log.kafka.records import Commit, KafkaAppended
from penstock.log.records import Span, instant, micros
from penstock.log.topic import Topic, schema_json, topic_json, topic_of, unknown_topic

INTERNAL = "_penstock."
REMEMBERED = 16
"""So many commits of a producer are known: repeated ones are told from those that were passed over."""


class Facts:
    def __init__(self, client: Client, prefix: str) -> None:
        self.prefix = prefix
        self.journal = journal_name(prefix)
        self._client = client
        self._catalog = Kept(client, f"{prefix}{INTERNAL}catalog")
        self._commits = Kept(client, f"{prefix}{INTERNAL}commits")

    def prepare(self, *, create: bool) -> None:
        """Makes the topics of a new log, where that is allowed."""
        topics = {kept.topic: CONFIG for kept in (self._catalog, self._commits)} | {self.journal: JOURNAL}
        for topic, config in topics.items():
            if self._client.partitions(topic) is not None:
                continue
            if not create:
                raise LogError(
                    f'there is no log at "{self._client.waiting.servers}"',
                    detail=f'Kafka has no topic "{topic}".',
                    hint="Check the address and the prefix. A log is made when it is first opened.",
                )
            self._client.create(topic, 1, config)

    def take(self, message: Outgoing, offset: int, end: int) -> None:
        """Takes in a fact that this log has written, so that it need not be read. See `Kept.take`."""
        for kept in (self._catalog, self._commits):
            if kept.topic == message.topic:
                kept.take(message, offset, end)

    # Topics

    def topics(self) -> dict[str, Topic]:
        return {
            key.removeprefix("topic/"): topic_of(key.removeprefix("topic/"), fact)
            for key, fact in self._catalog.now().items()
            if key.startswith("topic/")
        }

    def topic(self, name: str) -> Topic:
        return self.topic_and_birth(name)[0]

    def topic_and_birth(self, name: str) -> tuple[Topic, int]:
        """The topic, and when it was declared."""
        facts = self._catalog.now()
        found = facts.get(f"topic/{name}")
        if found is None:
            raise unknown_topic(name, [key.removeprefix("topic/") for key in facts if key.startswith("topic/")])
        return topic_of(name, found), int(found["created_at"])

    def own(self) -> set[str]:
        """The topics, of those that have been asked for, whose records are in the journal by the transaction that
        appends them.
        """
        return {key.removeprefix("topic/") for key, fact in self._catalog.known().items() if fact.get("own")}

    def identities(self) -> dict[str, str]:
        """What Kafka called these topics, of those that have been asked for, when they were declared."""
        return {
            key.removeprefix("topic/"): fact["kafka_id"]
            for key, fact in self._catalog.known().items()
            if "kafka_id" in fact
        }

    def topic_messages(self, topic: Topic, created_at: int, identity: str | None, *, own: bool) -> list[Outgoing]:
        """A topic is declared in the catalog, and in the order of the journal."""
        fact = topic_json(topic) | {"created_at": created_at} | ({"own": True} if own else {})
        fact |= {} if identity is None else {"kafka_id": identity}
        return [
            self._catalog.message(f"topic/{topic.name}", fact),
            self.said({"create": {"topic": topic.name} | topic_json(topic)}),
        ]

    def columns_messages(self, topic: Topic, created_at: int, *, own: bool) -> list[Outgoing]:
        """A topic has got more columns."""
        fact, _ = self.topic_messages(topic, created_at, self.identities().get(topic.name), own=own)
        return [fact, self.said({"columns": {"topic": topic.name, "schema": schema_json(topic.schema)}})]

    def said(self, control: Mapping[str, Any]) -> Outgoing:
        """What is decided, as a frame of the journal."""
        return journal_message(self.prefix, Header(0, 0, 0, control=(control,)))

    # Epochs

    def epoch(self, name: str) -> int:
        return int(self._catalog.now().get(f"epoch/{name}", {"value": 0})["value"])

    def epoch_messages(self, name: str, value: int) -> list[Outgoing]:
        fact = self._catalog.message(f"epoch/{name}", {"value": value})
        return [fact, self.said({"epoch": {"name": name, "value": value}})]

    # Commits

    def commits(self, producer: str) -> list[Commit]:
        """The last commits of a producer, the newest last."""
        return [_commit(producer, found) for found in self._commits.now().get(producer, ())]

    def commit_message(self, before: Sequence[Commit], commit: Commit) -> Outgoing:
        kept = [*before, commit][-REMEMBERED:]
        return self._commits.message(commit.producer, [_commit_json(each) for each in kept])


def _commit_json(commit: Commit) -> dict[str, Any]:
    spans = [[span.topic, span.partition, span.base, span.count] for span in commit.appended.spans]
    note = {"note": dict(commit.note)} if commit.note else {}
    return {"sequence": commit.sequence, "at": micros(commit.appended.appended_at), "spans": spans} | note


def _commit(producer: str, found: Mapping[str, Any]) -> Commit:
    spans = tuple(Span(*each) for each in found["spans"])
    appended = KafkaAppended(instant(found["at"]), spans, repeated=True)
    return Commit(producer, found["sequence"], appended, found.get("note", {}))
