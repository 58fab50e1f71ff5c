"""What is to be admitted next: records read from all partitions together, as blocks of the frame to come."""

import time
from collections.abc import Mapping, Sequence

from confluent_kafka import Consumer, KafkaError, Message, TopicPartition

from penstock.log.frame import INDEX_BITS, Block
from penstock.log.kafka.client import Client
from penstock.log.kafka.eventtimes import times_of
from penstock.log.kafka.journal import unplaced
from penstock.log.kafka.transaction import Again
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
        for topic in new:
            name = self._prefix + topic.name
            self._client.waiting.persist(DOING, lambda s, name=name: self._consumer.list_topics(name, timeout=s))  # type: ignore[misc]
            kept = self._client.begins(name, range(topic.partitions))
            starts = [
                self._start(topic.name, each, begins.get((topic.name, each), 0), kept[each])
                for each in range(len(kept))
            ]
            self._consumer.incremental_assign([TopicPartition(name, each, start) for each, start in enumerate(starts)])

    def _start(self, topic: str, partition: int, admitted: int, kept: int) -> int:
        """After what is in the order; what Kafka has let go meanwhile is in it no more, which is said."""
        if 0 < admitted < kept:
            self._client.waiting.say(
                f'partition {partition} of "{topic}": Kafka has let go of offsets {admitted} to {kept - 1}, which were '
                "not admitted yet; no pipeline has seen the records among them"
            )
        return max(admitted, kept)

    def frames(self) -> list[list[Block]]:
        """What has come since the last time, in the order of topics and partitions: the blocks of each frame."""
        return framed(self._blocks())

    def _blocks(self) -> list[Block]:
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
            elif error.code() == KafkaError._AUTO_OFFSET_RESET:
                raise Again(error)  # what was to be read has gone: where to go on is looked up
            elif error.code() != KafkaError._PARTITION_EOF:
                self._spell.go_on(error)
        if messages:
            self._spell.end()
        return messages

    def _block(self, where: Where, run: Sequence[Message], now: int) -> Block:
        topic, base, last = self._topics[where[0]], run[0].offset(), run[-1].offset()
        assert base is not None and last is not None
        return unplaced(Span(*where, base, len(run)), topic, times_of(topic, run, now), end=last + 1)


def framed(blocks: Sequence[Block]) -> list[list[Block]]:
    """The blocks of each frame. A place has so many bits for where in its frame a record stands: the offsets between
    the records of a compacted topic count there too.
    """
    frames: list[list[Block]] = []
    left = 0
    for block in blocks:
        width = block.end - block.base
        if not frames or width > left:
            frames.append([])
            left = 1 << INDEX_BITS
        frames[-1].append(block)
        left -= width
    return frames


def _runs(messages: Sequence[Message]) -> list[Sequence[Message]]:
    """The messages of a partition, in stretches that are not too wide."""
    runs, start = [], 0
    for at, message in enumerate(messages):
        if (message.offset() or 0) - (messages[start].offset() or 0) >= WIDEST:
            runs.append(messages[start:at])
            start = at
    return [*runs, messages[start:]]
