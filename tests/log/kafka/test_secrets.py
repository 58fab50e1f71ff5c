"""Security settings reach the brokers, and nobody else."""

import logging
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path

import pytest

from penstock.cli.logs import opened_at
from penstock.errors import LogError, PenstockError
from penstock.log.kafka import KafkaLog
from penstock.log.kafka.javasettings import java_settings
from penstock.log.kafka.settings import Settings
from penstock.log.where import where_of
from penstock.model import pipeline_of
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


def opened(address: str) -> None:
    with opened_at(address):
        pass


@pytest.mark.parametrize(
    ("use", "scheme"),
    [
        (where_of, "kafka"),
        (opened, "kafka"),
        (opened, "amqp"),
        (lambda text: pipeline_of(f"SET log = '{text}'", name="shop"), "kafka"),
    ],
)
def test_a_password_in_an_address_is_not_shown(use: Callable[[str], object], scheme: str) -> None:
    with pytest.raises(PenstockError) as told:
        use(f"{scheme}://shop:tr0ub4dor@127.0.0.1:9092/shop.")
    assert "tr0ub4dor" not in f"{told.value} {told.value.primary} {told.value.detail} {told.value.hint}"


def test_certificates_are_told_to_java_as_text(tmp_path: Path) -> None:
    (tmp_path / "ca.pem").write_text("trusted")
    given = {"ssl.ca.location": str(tmp_path / "ca.pem"), "ssl.certificate.pem": "own", "ssl.key.pem": "secret"}
    assert java_settings(given | {"ssl.endpoint.identification.algorithm": "none"}) == {
        "ssl.endpoint.identification.algorithm": "",
        "ssl.truststore.type": "PEM",
        "ssl.truststore.certificates": "trusted",
        "ssl.keystore.type": "PEM",
        "ssl.keystore.certificate.chain": "own",
        "ssl.keystore.key": "secret",
    }
    with pytest.raises(LogError, match="names cannot be read"):
        java_settings({"ssl.ca.location": str(tmp_path)})
