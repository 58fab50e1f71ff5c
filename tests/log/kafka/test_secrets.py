"""Security settings reach the brokers, and nobody else."""

import json
import logging
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path

import pytest

from penstock.app.pipelines import Setting
from penstock.app.pipelines import opened as load
from penstock.cli.logs import opened_at
from penstock.errors import LogError, PenstockError
from penstock.log.kafka import KafkaLog
from penstock.log.kafka.javasettings import java_settings
from penstock.log.kafka.settings import Settings
from penstock.log.where import where_of
from penstock.model import pipeline_of
from tests.log.kafka.conftest import PASSWORD, Guarded, certificate
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


def over_tls(authority: Path, **more: str) -> dict[str, str]:
    known = LOGIN | {"security.protocol": "SASL_SSL", "sasl.password": PASSWORD, "ssl.ca.location": str(authority)}
    return known | more


def test_a_broker_with_a_certificate_is_read_and_written(guarded: Guarded, prefix: str) -> None:
    with KafkaLog.open(guarded.secured, prefix=prefix, settings=over_tls(guarded.authority)) as log:
        log.create_topic("orders", "id INT")
        log.append("orders", [{"id": 1}])
        assert [entry.value for entry in log.read("orders")] == [{"id": 1}]


def test_a_certificate_of_somebody_else_is_refused(guarded: Guarded, tmp_path: Path) -> None:
    with pytest.raises(LogError, match="cannot be trusted") as raised:
        KafkaLog.open(guarded.secured, settings=over_tls(certificate(tmp_path)), patience=timedelta(minutes=1))
    assert "certificate" in raised.value.detail and "ssl.ca.location" in raised.value.hint
    assert PASSWORD not in str(raised.value)


@pytest.mark.parametrize("how", ["pipeline", "environment"])
def test_a_pipeline_has_its_settings_in_a_file(
    guarded: Guarded, prefix: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, how: str
) -> None:
    (tmp_path / "client.json").write_text(json.dumps(over_tls(guarded.authority)))
    named = "SET kafka_settings = 'client.json';" if how == "pipeline" else ""
    if how == "environment":
        monkeypatch.setenv("PENSTOCK_KAFKA_SETTINGS", str(tmp_path / "client.json"))
    log_and_stream = f"SET log = 'kafka://{guarded.secured}/{prefix}'; CREATE STREAM orders (id INT);"
    (tmp_path / "pipeline.sql").write_text(f"{named} {log_and_stream} CREATE VIEW v AS SELECT id FROM orders;")
    with load(tmp_path, Setting()).opened_log(admits=True) as log:
        log.create_topic("orders", "id INT")
        log.append_all({"orders": [{"id": 1}]})
        log.settle()
        assert [entry.value for entry in log.read("orders")] == [{"id": 1}]


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
