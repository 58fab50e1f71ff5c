"""Waiting for Kafka: what fails because nobody answers is tried again, which is said once, and again when it is over.

Whatever else fails is an error at once. So is a refused log-in, or a certificate that is not known. Patience ends, too:
with an error that says for how long nobody answered.
"""

import logging
import re
import time
from collections.abc import Callable
from datetime import timedelta
from typing import Any, TypeVar

from confluent_kafka import KafkaError, KafkaException

from penstock.errors import LogError

T = TypeVar("T")
Say = Callable[[str], None]
STEP_SECONDS = 1.0
"""Of one try."""
SAID_AFTER_SECONDS = 2.0
UNKNOWN_FOR_SECONDS = 10.0
"""For so long a topic may be unknown to a broker that has not heard of it yet."""
REFUSED_FOR_SECONDS = 60.0
"""For so long a log-in that was taken before may be refused: brokers do that while they start."""
APART_SECONDS = 30.0
"""Errors so far apart are not one time of waiting."""
PAUSE_SECONDS = 0.02
AWAITED = frozenset(
    {
        KafkaError._TIMED_OUT,
        KafkaError._TIMED_OUT_QUEUE,
        KafkaError._TRANSPORT,
        KafkaError._ALL_BROKERS_DOWN,
        KafkaError._RESOLVE,
        KafkaError._WAIT_COORD,
        KafkaError._UNKNOWN_BROKER,
        KafkaError._MSG_TIMED_OUT,
        KafkaError._NOENT,  # no leader yet
        KafkaError.REQUEST_TIMED_OUT,
        KafkaError.NETWORK_EXCEPTION,
        KafkaError.BROKER_NOT_AVAILABLE,
        KafkaError.LEADER_NOT_AVAILABLE,
        KafkaError.NOT_LEADER_FOR_PARTITION,
        KafkaError.NOT_CONTROLLER,
        KafkaError.NOT_COORDINATOR,
        KafkaError.COORDINATOR_NOT_AVAILABLE,
        KafkaError.COORDINATOR_LOAD_IN_PROGRESS,
        KafkaError.NOT_ENOUGH_REPLICAS,
        KafkaError.NOT_ENOUGH_REPLICAS_AFTER_APPEND,
        KafkaError.CONCURRENT_TRANSACTIONS,
        KafkaError.OFFSET_NOT_AVAILABLE,
        KafkaError.FENCED_LEADER_EPOCH,
        KafkaError.UNKNOWN_LEADER_EPOCH,
        KafkaError.KAFKA_STORAGE_ERROR,
    }
)
UNKNOWN = frozenset({KafkaError.UNKNOWN_TOPIC_OR_PART, KafkaError._UNKNOWN_TOPIC, KafkaError._UNKNOWN_PARTITION})
REFUSED = frozenset({KafkaError._AUTHENTICATION, KafkaError.SASL_AUTHENTICATION_FAILED, KafkaError._SSL})


def warn(text: str) -> None:
    logging.getLogger("penstock.log.kafka").warning(text)


def error_of(raised: KafkaException) -> KafkaError:
    found: KafkaError = raised.args[0]
    return found


class Waiting:
    """How long this log waits for its brokers, and whom it tells."""

    def __init__(self, servers: str, patience: timedelta, say: Say) -> None:
        self.servers = servers
        self.patience = patience
        self._say = say
        self._refusal: KafkaError | None = None
        self._let_in = False
        self._stopped = False

    def stop(self) -> None:
        """Nobody waits any longer: the log is being closed."""
        self._stopped = True

    def heard(self, error: KafkaError, *_: Any) -> None:
        """What the client tells beside its answers: only a refused log-in is not to be waited out."""
        if error.code() in REFUSED:
            self._refusal = error

    def persist(
        self, doing: str, attempt: Callable[[float], T], *, is_final: Callable[[KafkaError], bool] = lambda error: False
    ) -> T:
        """What the attempt gives, which is told how many seconds it may take. Final errors are raised as they are."""
        spell = self.spell(doing)
        while True:
            try:
                found = attempt(STEP_SECONDS)
            except KafkaException as raised:
                if is_final(error_of(raised)):
                    raise
                spell.go_on(error_of(raised))
            else:
                spell.end()
                self.answered()
                return found

    def spell(self, doing: str) -> "Spell":
        return Spell(self, doing)

    def say(self, text: str) -> None:
        self._say(text)

    def answered(self) -> None:
        """Somebody has: the log-in is right."""
        self._let_in, self._refusal = True, None

    def check_admitted(self, seconds: float) -> None:
        """Whether waiting, which has gone on for so long, makes sense."""
        if self._stopped:
            raise LogError("the log is closed", hint="Open it again.")
        if self._refusal is not None and (not self._let_in or seconds > REFUSED_FOR_SECONDS):
            untrusted = self._refusal.code() == KafkaError._SSL
            raise LogError(
                f'Kafka at "{self.servers}" ' + ("cannot be trusted" if untrusted else "refuses the log-in"),
                detail=f"{re.sub(r' .after [^)]*.$', '', self._refusal.str())}.",
                hint="Look at the settings that were given: "
                + ("ssl.ca.location, ssl.*" if untrusted else "security.protocol, sasl.*, ssl.*"),
            )


class Spell:
    """Times of waiting, each from the first `go_on` to `end`: what is quiet because nothing happens does not wait."""

    def __init__(self, waiting: Waiting, doing: str) -> None:
        self._waiting = waiting
        self._doing = doing
        self._began: float | None = None
        self._last = 0.0
        self._said = False

    @property
    def seconds(self) -> float:
        return 0.0 if self._began is None else time.monotonic() - self._began

    def go_on(self, error: KafkaError) -> None:
        """Returns if it is worth another try."""
        now = time.monotonic()
        if self._began is None or now - self._last > APART_SECONDS:
            self._began = now
        self._last = now
        self._waiting.check_admitted(self.seconds)
        if error.code() in UNKNOWN:
            awaited = self.seconds < UNKNOWN_FOR_SECONDS
        else:
            awaited = error.code() in AWAITED or error.retriable()
        if not awaited:
            raise refusal(self._doing, error)
        if self.seconds > self._waiting.patience.total_seconds():
            raise LogError(
                f'Kafka at "{self._waiting.servers}" does not answer',
                detail=f"For {self.seconds:.0f} s now, {self._doing}: {error.str()}.",
                hint="Are its brokers running, and is this their address?",
            ) from KafkaException(error)
        if not self._said and self.seconds > SAID_AFTER_SECONDS:
            self._said = True
            self._waiting.say(f'waiting for Kafka at "{self._waiting.servers}", {self._doing}: {error.str()}')
        time.sleep(PAUSE_SECONDS if self.seconds > PAUSE_SECONDS else 0)

    def end(self) -> None:
        if self._said:
            self._said = False
            self._waiting.say(f'Kafka at "{self._waiting.servers}" goes on, after {self.seconds:.1f} s')
        self._began = None


def refusal(doing: str, error: KafkaError) -> LogError:
    return LogError(f"Kafka refused, {doing}", detail=f"{error.str()} ({error.name()}).")
