"""What Spark needs to read Kafka is found, or named."""

from pathlib import Path

import pytest

from penstock.engine import kafka
from tests.texts import refused


def test_the_client_is_where_the_environment_says(tmp_path: Path) -> None:
    jar = tmp_path / "kafka-clients-3.9.2.jar"
    jar.touch()
    assert kafka.client_jar({kafka.NAMED: str(jar)}) == jar


def test_a_client_that_is_missing_is_named_with_how_to_get_it(tmp_path: Path) -> None:
    with refused("engine/kafka-client-missing", folder=tmp_path):
        kafka.client_jar({kafka.NAMED: str(tmp_path / "none.jar")})


def test_a_reader_that_is_not_built_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kafka, "READER", tmp_path / "kernel-kafka.jar")
    with refused("engine/kafka-reader-not-built", folder=tmp_path):
        kafka.reader_jar()
