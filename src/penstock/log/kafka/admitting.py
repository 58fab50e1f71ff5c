"""What is to be admitted next: records read from all partitions together, as blocks of the frame to come."""

import time
from collections.abc import Mapping, Sequence

from confluent_kafka import Consumer, KafkaError, Message, TopicPartition

from penstock.log.frame import Block
from penstock.log.kafka.client import Client
from penstock.log.kafka.eventtimes import times_of
from penstock.log.kafka.journal import unplaced
from penstock.log.kafka.waiting import refusal
from penstock.log.records import Span
from penstock.log.topic import Topic

DOING = "reading what is to be admitted"
POLL_SECONDS = 0.02
AT_ONCE = 50_000
"""Records of one frame, at most: no batch of a pipeline divides a frame."""
WIDEST = 1 << 20
"""Offsets of one block, at most: those of compacted topics have wide gaps."""
Where = tuple[str, int]
"""A topic, as the log names it, and a partition."""


class Reading:
    """Of one consumer, from where the journal ends."""

    def __init__(self, client: Client, consumer: Consumer, prefix: str) -> None:
        self._client = client
        self._consumer = consumer
        self._prefix = prefix
        self._topics: dict[str, Topic] = {}
        self._spell = client.waiting.spell(DOING)

    def add(self, topics: Mapping[str, Topic], begins: Mapping[Where, int]) -> None:
        """Reads these topics too, if it does not yet; with the columns that they have now."""
        new = [topic for name, topic in topics.items() if name not in self._topics]
        self._topics = dict(topics)
        if new:
            for topic in new:
                name = self._prefix + topic.name
                self._client.waiting.persist(DOING, lambda s, name=name: self._consumer.list_topics(name, timeout=s))  # type: ignore[misc]
            self._consumer.incremental_assign(
                [
                    TopicPartition(self._prefix + topic.name, each, begins.get((topic.name, each), 0))
                    for topic in new
                    for each in range(topic.partitions)
                ]
            )

    def blocks(self) -> list[Block]:
        """What has come since the last time, in the order of topics and partitions."""
        found: dict[Where, list[Message]] = {}
        for message in self._messages():
            where = (str(message.topic()).removeprefix(self._prefix), int(message.partition() or 0))
            found.setdefault(where, []).append(message)
        now = time.time_ns() // 1000
        return [
            self._block(where, run, now)
            for where in sorted(found)
            for run in _runs(found[where])
            if where[0] in self._topics
        ]

    def _messages(self) -> list[Message]:
        first = self._consumer.poll(POLL_SECONDS)
        found = [] if first is None else [first, *self._consumer.consume(AT_ONCE - 1, timeout=0)]
        messages = []
        for message in found:
            error = message.error()
            if error is None:
                messages.append(message)
            elif error.fatal():
                raise refusal(DOING, error)
            elif error.code() != KafkaError._PARTITION_EOF:
                self._spell.go_on(error)
        if messages:
            self._spell.end()
            self._spell = self._client.waiting.spell(DOING)
        return messages

    def _block(self, where: Where, run: Sequence[Message], now: int) -> Block:
        topic, base, last = self._topics[where[0]], run[0].offset(), run[-1].offset()
        assert base is not None and last is not None
        return unplaced(Span(*where, base, len(run)), topic, times_of(topic, run, now), end=last + 1)


def _runs(messages: Sequence[Message]) -> list[Sequence[Message]]:
    """The messages of a partition, in stretches that are not too wide."""
    runs, start = [], 0
    for at, message in enumerate(messages):
        if (message.offset() or 0) - (messages[start].offset() or 0) >= WIDEST:
            runs.append(messages[start:at])
            start = at
    return [*runs, messages[start:]]
