"""Security settings reach the brokers, and nobody else."""

import logging
from datetime import timedelta

import pytest

from penstock.errors import LogError
from penstock.log.kafka import KafkaLog
from penstock.log.kafka.settings import Settings
from tests.log.kafka.conftest import PASSWORD
from tests.texts import refused

LOGIN = {"security.protocol": "SASL_PLAINTEXT", "sasl.mechanism": "PLAIN", "sasl.username": "penstock"}


def test_who_knows_the_password_is_let_in(guarded_kafka: str, prefix: str) -> None:
    with KafkaLog.open(guarded_kafka, prefix=prefix, settings={**LOGIN, "sasl.password": PASSWORD}) as log:
        log.create_topic("orders", "id INT")
        log.append("orders", [{"id": 1}])
        assert [entry.value for entry in log.read("orders")] == [{"id": 1}]


def test_a_wrong_password_is_an_error_at_once_and_told_to_nobody(
    guarded_kafka: str, caplog: pytest.LogCaptureFixture, capfd: pytest.CaptureFixture[str]
) -> None:
    caplog.set_level(logging.DEBUG)
    settings = {**LOGIN, "sasl.password": "tr0ub4dor"}
    with refused("log/kafka-login", servers=guarded_kafka):
        KafkaLog.open(guarded_kafka, settings=settings, patience=timedelta(minutes=1))
    told = caplog.text + "".join(capfd.readouterr()) + repr(Settings(guarded_kafka, settings))
    assert "tr0ub4dor" not in told and "sasl.password=..." in told


@pytest.mark.parametrize(
    ("name", "settings"),
    [
        ("unknown", {"sasl.pasword": "tr0ub4dor"}),
        ("value", {"security.protocol": "tr0ub4dor"}),
        ("ours", {"transactional.id": "tr0ub4dor"}),
    ],
)
def test_a_setting_that_cannot_be_is_named_without_its_value(name: str, settings: dict[str, str]) -> None:
    with refused(f"log/kafka-setting-{name}"):
        KafkaLog.open("127.0.0.1:1", settings=settings)
    with pytest.raises(LogError) as raised:
        KafkaLog.open("127.0.0.1:1", settings=settings)
    assert "tr0ub4dor" not in str(raised.value)
