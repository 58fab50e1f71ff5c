"""A client of Kafka: what the log asks of the brokers, in the words of Kafka.

Only committed messages are read. Every call waits for brokers that do not answer (`waiting`). May be used by any number
of threads.
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from threading import Lock
from typing import Any

from confluent_kafka import (
    Consumer,
    IsolationLevel,
    KafkaError,
    KafkaException,
    Message,
    Producer,
    TopicCollection,
    TopicPartition,
)
from confluent_kafka.admin import AdminClient, ConfigResource, NewTopic, OffsetSpec

from penstock.errors import LogError
from penstock.log.kafka.settings import CLIENTS, CONSUMER, PRODUCER, Settings
from penstock.log.kafka.waiting import Waiting, error_of, refusal

REQUEST_SECONDS = 5.0
UNTOLD = (
    KafkaError.TOPIC_AUTHORIZATION_FAILED,
    KafkaError.CLUSTER_AUTHORIZATION_FAILED,
    KafkaError.UNKNOWN_TOPIC_OR_PART,
)
GATHERED = 8192
"""So many messages at most are handed on together."""
OPEN = KafkaError(KafkaError._TIMED_OUT, "another's transaction is open")
EMPTY = KafkaError(KafkaError._TIMED_OUT, "no messages came")


class Client:
    def __init__(self, settings: Settings, waiting: Waiting) -> None:
        self.waiting = waiting
        self._settings = settings
        self._lock = Lock()
        self._idle: list[Consumer] = []
        self._closed = False
        self._admin = settings.made(AdminClient, {**CLIENTS, "error_cb": waiting.heard})
        self.transaction_seconds = settings.transaction_seconds

    def close(self) -> None:
        with self._lock:
            self._closed = True
            idle, self._idle = self._idle, []
        for consumer in idle:
            consumer.close()

    def check_open(self) -> None:
        if self._closed:
            raise LogError("the log is closed", hint="Open it again.")

    # Topics

    def cluster(self) -> str:
        """The identity of the cluster."""

        def attempt(seconds: float) -> Any:
            self._admin.poll(0)  # a refused log-in is told only so
            return self._admin.list_topics(timeout=seconds)

        return str(self.waiting.persist("looking for the brokers", attempt).cluster_id)

    def described(self, topic: str) -> tuple[str, int]:
        """What Kafka calls a topic beside its name (otherwise, if it is made anew), and how many partitions it has."""

        def attempt(_: float) -> tuple[str, int]:
            asked = self._admin.describe_topics(TopicCollection([topic]), request_timeout=REQUEST_SECONDS)
            found = asked[topic].result()
            return str(found.topic_id), len(found.partitions)

        return self.waiting.persist(f'looking at topic "{topic}"', attempt)

    def partitions(self, topic: str) -> int | None:
        """How many partitions a topic has; None if there is none of that name."""
        found = self.waiting.persist("looking for topics", lambda s: self._admin.list_topics(topic, timeout=s))
        known = found.topics.get(topic)
        if known is None or (known.error is not None and known.error.code() == KafkaError.UNKNOWN_TOPIC_OR_PART):
            return None
        return len(known.partitions)

    def configured(self, topics: Sequence[str], setting: str) -> dict[str, str]:
        """How a setting stands for each of these topics; those that are not there, or may not be looked at, are left
        out.
        """
        asked = [ConfigResource(ConfigResource.Type.TOPIC, topic) for topic in topics]

        def attempt(_: float) -> dict[str, str]:
            answers = self._admin.describe_configs(asked, request_timeout=REQUEST_SECONDS) if asked else {}
            found = {}
            for resource, answer in answers.items():
                try:
                    found[str(resource.name)] = str(answer.result()[setting].value)
                except KafkaException as raised:
                    if error_of(raised).code() not in UNTOLD:
                        raise
            return found

        return self.waiting.persist("looking at settings of topics", attempt)

    def create(self, topic: str, partitions: int, config: Mapping[str, str]) -> None:
        """Makes a topic; one that is there stays as it is."""
        wanted = NewTopic(topic, partitions, -1, config=dict(config))

        def attempt(_: float) -> None:
            try:
                self._admin.create_topics([wanted], request_timeout=REQUEST_SECONDS)[topic].result()
            except KafkaException as raised:
                if error_of(raised).code() != KafkaError.TOPIC_ALREADY_EXISTS:
                    raise

        self.waiting.persist(f'creating topic "{topic}"', attempt)
        self.waiting.persist(f'creating topic "{topic}"', lambda s: self._check_leaders(topic, s))

    def _check_leaders(self, topic: str, seconds: float) -> None:
        known = self._admin.list_topics(topic, timeout=seconds).topics[topic]
        if known.error is not None or any(each.leader < 0 for each in known.partitions.values()):
            raise KafkaException(KafkaError(KafkaError.LEADER_NOT_AVAILABLE))

    # Offsets

    def offsets(
        self, topic: str, partitions: Sequence[int], spec: OffsetSpec, *, committed: bool = True
    ) -> list[tuple[int, int]]:
        """Of each partition the offset that the spec means, and its time in milliseconds; -1 where there is none."""
        asked = {TopicPartition(topic, partition): spec for partition in partitions}
        level = IsolationLevel.READ_COMMITTED if committed else IsolationLevel.READ_UNCOMMITTED

        def attempt(seconds: float) -> list[tuple[int, int]]:
            found = self._admin.list_offsets(asked, isolation_level=level, request_timeout=REQUEST_SECONDS)
            try:
                answers = [found[each].result() for each in asked]
            except KafkaException:
                self._admin.list_topics(topic, timeout=seconds)  # else it would go by the leaders that it knows
                raise
            return [(answer.offset, answer.timestamp) for answer in answers]

        return self.waiting.persist(f'asking for offsets of "{topic}"', attempt) if partitions else []

    def all_ends(self, topics: Mapping[str, int]) -> dict[tuple[str, int], int]:
        """Where the committed messages of all partitions of these topics, of so many each, end."""
        asked = {TopicPartition(topic, each): OffsetSpec.latest() for topic, n in topics.items() for each in range(n)}

        def attempt(seconds: float) -> dict[tuple[str, int], int]:
            level = IsolationLevel.READ_COMMITTED
            found = self._admin.list_offsets(asked, isolation_level=level, request_timeout=REQUEST_SECONDS)
            try:
                return {(each.topic, each.partition): answer.result().offset for each, answer in found.items()}
            except KafkaException:
                self._admin.list_topics(timeout=seconds)  # as in `offsets`
                raise

        return self.waiting.persist("asking for offsets", attempt) if asked else {}

    def ends(self, topic: str, partitions: Sequence[int]) -> list[int]:
        """Where the committed messages of each partition end."""
        return [offset for offset, _ in self.offsets(topic, partitions, OffsetSpec.latest())]

    def settled_end(self, topic: str, known: int) -> int:
        """Where partition 0 ends, with all that was written before this was asked either committed or gone: what was
        committed behind a transaction that is open still must not be overlooked. Up to `known` it is settled.
        """
        [(written, _)] = self.offsets(topic, [0], OffsetSpec.latest(), committed=False)
        spell = self.waiting.spell(f'looking at "{topic}"')
        end = known
        while end < written:
            (end,) = self.ends(topic, [0])
            if end < written:
                spell.go_on(OPEN)
        spell.end()
        return end

    def begins(self, topic: str, partitions: Sequence[int]) -> list[int]:
        return [offset for offset, _ in self.offsets(topic, partitions, OffsetSpec.earliest())]

    # Messages

    def messages(self, topic: str, partition: int, start: int, end: int) -> Iterator[list[Message]]:
        """The committed messages from `start` up to `end`, some at a time."""
        if start >= end:
            return
        with self.consumer() as consumer:
            self.assign(consumer, topic, {partition: start})
            gathered: list[Message] = []
            for message in polled(consumer, self.waiting, f'reading partition {partition} of "{topic}"'):
                if (message.offset() or 0) >= end:
                    break
                if message.error() is not None:
                    continue  # a broker that leads since a moment ago, or only follows, may know of an earlier end
                gathered.append(message)
                if len(gathered) == GATHERED:
                    yield gathered
                    gathered = []
            if gathered:
                yield gathered

    def assign(self, consumer: Consumer, topic: str, begin: Mapping[int, int]) -> None:
        """The consumer reads these partitions from these offsets on. Where they are is asked first: else it would
        find out about a second later.
        """
        self.waiting.persist(f'looking for topic "{topic}"', lambda s: consumer.list_topics(topic, timeout=s))
        consumer.assign([TopicPartition(topic, partition, offset) for partition, offset in begin.items()])

    @contextmanager
    def exact_consumer(self) -> Iterator[Consumer]:
        """As `consumer`; where an offset is not there, it does not begin elsewhere: it says so."""
        self.check_open()
        own = {**CONSUMER, "auto.offset.reset": "error", "error_cb": self.waiting.heard}
        consumer = self._settings.made(Consumer, own)
        try:
            yield consumer
        finally:
            consumer.close()

    @contextmanager
    def consumer(self) -> Iterator[Consumer]:
        """A consumer without partitions, the caller's alone."""
        self.check_open()
        with self._lock:
            consumer = self._idle.pop() if self._idle else None
        if consumer is None:
            consumer = self._settings.made(Consumer, {**CONSUMER, "error_cb": self.waiting.heard})
        try:
            yield consumer
            consumer.unassign()
        except BaseException:
            consumer.close()
            raise
        with self._lock:
            kept = not self._closed
            if kept:
                self._idle.append(consumer)
        if not kept:
            consumer.close()

    def member(self, group: str) -> Consumer:
        """A consumer that can write the offsets of a group; the caller's alone, who closes it."""
        self.check_open()
        return self._settings.made(Consumer, {**CONSUMER, "group.id": group, "error_cb": self.waiting.heard})

    def producer(self, identity: str) -> Producer:
        """A producer of transactions, not begun yet."""
        self.check_open()
        own: dict[str, Any] = {**PRODUCER, "transactional.id": identity, "error_cb": self.waiting.heard}
        return self._settings.made(Producer, own)


def polled(consumer: Consumer, waiting: Waiting, doing: str) -> Iterator[Message]:
    """Messages as they come; with an error where a partition has no more for now. Waits for what was asked for."""
    spell = waiting.spell(doing)
    while True:
        first = consumer.poll(1.0)
        found = [] if first is None else [first, *consumer.consume(GATHERED, timeout=0)]
        if not found:
            spell.go_on(EMPTY)
        for message in found:
            error = message.error()
            if error is None or error.code() == KafkaError._PARTITION_EOF:
                spell.end()
                yield message
            elif error.fatal():
                raise refusal(doing, error)
            else:
                spell.go_on(error)
