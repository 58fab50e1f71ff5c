"""A writer: one transactional id, with at most one transaction at a time.

Who takes an id over ends the transactions of whoever had it before, and from then on those fail: `Overtaken`. A
transaction is kept whole or not at all; where its end is unknown (`Undecided`), taking the id over decides it.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from threading import RLock

from confluent_kafka import KafkaError, KafkaException, Message, Producer

from penstock.errors import LogError
from penstock.log.kafka.client import Client
from penstock.log.kafka.messages import Outgoing
from penstock.log.kafka.waiting import error_of, refusal

TAKEN = frozenset(
    {
        KafkaError._FENCED,
        KafkaError._FATAL,
        KafkaError.PRODUCER_FENCED,
        KafkaError.INVALID_PRODUCER_EPOCH,
        KafkaError.INVALID_PRODUCER_ID_MAPPING,
        KafkaError.UNKNOWN_PRODUCER_ID,
        KafkaError.INVALID_TXN_STATE,
        KafkaError.TRANSACTION_COORDINATOR_FENCED,
    }
)
TOO_LARGE = frozenset({KafkaError.MSG_SIZE_TOO_LARGE, KafkaError.INVALID_MSG_SIZE, KafkaError.RECORD_LIST_TOO_LARGE})
FORBIDDEN = frozenset(
    {
        KafkaError.TOPIC_AUTHORIZATION_FAILED,
        KafkaError.CLUSTER_AUTHORIZATION_FAILED,
        KafkaError.TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
        KafkaError.POLICY_VIOLATION,
        KafkaError.INVALID_RECORD,
    }
)
PURGED = frozenset({KafkaError._PURGE_QUEUE, KafkaError._PURGE_INFLIGHT})
LATE = KafkaError(KafkaError._TIMED_OUT, "messages are not taken")
MAYBE = "The append may or may not be kept."


@dataclass(frozen=True)
class Landed:
    """Where a message came to lie; `at` is its append time in milliseconds."""

    topic: str
    partition: int
    offset: int
    at: int


@dataclass(frozen=True)
class Landing:
    """Where the messages of a transaction lie, and the facts that went with them."""

    messages: Sequence[Landed]
    facts: Sequence[tuple[Outgoing, Landed]]


class Overtaken(Exception):
    """Somebody took the id over, or the broker gave the transaction up. Nothing of it is kept."""

    def __init__(self) -> None:
        super().__init__("others take over its transactions")


class Again(Exception):
    """The transaction was ended for a reason that may pass. Nothing of it is kept."""

    def __init__(self, error: KafkaError) -> None:
        super().__init__(error.str())
        self.error = error


class Undecided(Exception):
    """Nobody told whether the transaction was committed. These are its messages."""

    def __init__(self, landed: Sequence[Landed]) -> None:
        super().__init__()
        self.landed = landed


Finish = Callable[[Sequence[Landed]], Sequence[Outgoing]]
"""The facts that go with the messages that have landed; it may refuse, then nothing is kept."""


class Writer:
    """Hold `lock` from `take_over` to `commit`."""

    def __init__(self, client: Client, identity: str) -> None:
        self.lock = RLock()
        self.identity = identity
        self._client = client
        self._producer: Producer | None = None

    @property
    def is_owner(self) -> bool:
        """Whether the id was taken, and nothing was heard to the contrary."""
        return self._producer is not None

    def take_over(self) -> None:
        """Ends what others have begun under this id, and fences them."""
        self.let_go()
        producer = self._client.producer(self.identity)
        try:
            self._client.waiting.persist("beginning to write", producer.init_transactions, is_final=_is_final)
        except KafkaException as raised:
            raise Overtaken from raised
        self._producer = producer

    def let_go(self) -> None:
        """Forgets the id. A transaction that is open is ended by whoever takes it over, or by the broker in time."""
        producer, self._producer = self._producer, None
        if producer is not None:
            producer.purge()

    def commit(self, messages: Sequence[Outgoing], finish: Finish) -> Landing:
        """One transaction with the messages and with what `finish` adds to them; where both landed."""
        producer = self._producer
        assert producer is not None, "take the id over first"
        try:
            producer.begin_transaction()
            landed = self._sent(producer, messages)
            facts = list(finish(landed))
            added = self._sent(producer, facts)
        except KafkaException as raised:
            raise self._ended(producer, error_of(raised)) from raised
        except BaseException:
            self._abort(producer)
            raise
        self._commit(producer, landed)
        return Landing(landed, _matched(facts, added))

    def _sent(self, producer: Producer, messages: Sequence[Outgoing]) -> list[Landed]:
        """Sends messages and waits until all are in the logs of the brokers, if not committed yet."""
        landed: list[Landed] = []
        failed: list[KafkaError] = []

        def report(error: KafkaError | None, message: Message) -> None:
            if error is None:
                landed.append(_landed(message))
            else:
                failed.append(error)

        for message in messages:
            _produce(producer, message, report)
        spell = self._client.waiting.spell("writing")
        while not failed and len(landed) < len(messages):
            if _left_after_flush(producer):
                spell.go_on(LATE)
        if failed:
            raise KafkaException(failed[0])
        spell.end()
        return landed

    def _commit(self, producer: Producer, landed: Sequence[Landed]) -> None:
        try:
            self._client.waiting.persist("committing", producer.commit_transaction, is_final=_is_final)
        except KafkaException as raised:
            error = error_of(raised)
            if error.txn_requires_abort():
                raise self._ended(producer, error) from raised
            self.let_go()
            raise Undecided(landed) from raised
        except LogError as error:
            self.let_go()
            raise LogError(error.primary, detail=f"{error.detail} {MAYBE}", hint=error.hint) from error

    def _ended(self, producer: Producer, error: KafkaError) -> Exception:
        """Ends a transaction in which something failed; what is to be told of it."""
        if error.code() in PURGED:
            error = _reason(producer) or error
        if error.fatal() or error.code() in TAKEN:
            self.let_go()
            return Overtaken()
        self._abort(producer)
        if error.code() in TOO_LARGE:
            return LogError(
                "a record is too large for Kafka",
                detail=f"{error.str()}.",
                hint="Raise message.max.bytes, in the settings given here and in those of the topic.",
            )
        return refusal("writing", error) if error.code() in FORBIDDEN else Again(error)

    def _abort(self, producer: Producer) -> None:
        """Ends the transaction; if that fails, whoever takes the id over next ends it."""
        try:
            self._client.waiting.persist("giving up a transaction", producer.abort_transaction, is_final=_is_final)
        except (KafkaException, LogError):
            self.let_go()


def _matched(facts: Sequence[Outgoing], added: Sequence[Landed]) -> list[tuple[Outgoing, Landed]]:
    """Reports of several topics come in any order, those of one in the order of its offsets."""
    waiting: dict[str, list[Landed]] = {}
    for each in sorted(added, key=lambda landed: -landed.offset):
        waiting.setdefault(each.topic, []).append(each)
    return [(fact, waiting[fact.topic].pop()) for fact in facts]


def _produce(producer: Producer, message: Outgoing, report: Callable[[KafkaError | None, Message], None]) -> None:
    while True:
        try:
            producer.produce(
                message.topic,
                message.value,
                message.key,
                message.partition,
                headers=message.headers,
                on_delivery=report,
            )
            return
        except BufferError:  # the queue is full: some of it goes
            producer.poll(0.1)


def _left_after_flush(producer: Producer) -> int:
    try:
        return int(producer.flush(1.0))
    except SystemError as raised:  # a fatal error that came while a report was being told
        if isinstance(raised.__cause__, KafkaException):
            raise raised.__cause__ from None
        raise


def _is_final(error: KafkaError) -> bool:
    """Whether it ends the transaction, or the writer: nothing to wait out, whatever else it says of itself."""
    return error.fatal() or error.txn_requires_abort() or error.code() in TAKEN


def _reason(producer: Producer) -> KafkaError | None:
    """Why a transaction's messages were thrown away: its end tells."""
    try:
        producer.commit_transaction(1.0)
    except KafkaException as raised:
        return error_of(raised)
    return None


def _landed(message: Message) -> Landed:
    topic, partition, offset = message.topic(), message.partition(), message.offset()
    assert topic is not None and partition is not None and offset is not None
    return Landed(topic, partition, offset, message.timestamp()[1])
