"""How long brokers are waited for, without any."""

import time
from datetime import timedelta

import pytest
from confluent_kafka import KafkaError, KafkaException

from penstock.errors import LogError
from penstock.log.kafka.waiting import Waiting

PATIENCE = timedelta(milliseconds=20)
AWAY = KafkaError(KafkaError._TRANSPORT)
REFUSED = KafkaError(KafkaError._AUTHENTICATION)
UNTRUSTED = KafkaError(KafkaError._SSL)


def test_what_was_quiet_for_long_has_not_waited() -> None:
    spell = Waiting("nowhere", PATIENCE, print).spell("following")
    for _ in range(2):
        pass_time(2 * PATIENCE)
        spell.go_on(AWAY)
        pass_time(2 * PATIENCE)
        with pytest.raises(LogError, match="does not answer"):
            spell.go_on(AWAY)
        spell.end()


def pass_time(length: timedelta) -> None:
    until = time.monotonic() + length.total_seconds()
    while time.monotonic() < until:
        pass


def test_a_log_in_that_was_taken_before_may_be_refused_for_a_moment() -> None:
    waiting, answers = Waiting("nowhere", timedelta(minutes=1), print), [1, None, 2]

    def attempt(_: float) -> int:
        found = answers.pop(0)
        if found is None:
            waiting.heard(REFUSED)
            raise KafkaException(AWAY)
        return found

    assert [waiting.persist("asking", attempt), waiting.persist("asking", attempt)] == [1, 2]


@pytest.mark.parametrize(("error", "said"), [(REFUSED, "refuses the log-in"), (UNTRUSTED, "cannot be trusted")])
def test_a_log_in_that_was_never_taken_is_refused_at_once(error: KafkaError, said: str) -> None:
    waiting = Waiting("nowhere", timedelta(minutes=1), print)
    waiting.heard(error)
    with pytest.raises(LogError, match=said):
        waiting.spell("asking").go_on(AWAY)
