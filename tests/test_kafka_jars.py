"""What Spark needs to read Kafka is found, or named."""

from pathlib import Path

import pytest

from penstock.engine import kafka
from penstock.errors import EngineError


def test_the_client_is_where_the_environment_says(tmp_path: Path) -> None:
    jar = tmp_path / "kafka-clients-3.9.2.jar"
    jar.touch()
    assert kafka.client_jar({kafka.NAMED: str(jar)}) == jar


def test_a_client_that_is_missing_is_named_with_how_to_get_it(tmp_path: Path) -> None:
    with pytest.raises(EngineError) as caught:
        kafka.client_jar({kafka.NAMED: str(tmp_path / "none.jar")})
    assert caught.value.primary == "Kafka's client for Java is missing"
    assert f"{tmp_path}/none.jar, which PENSTOCK_KAFKA_CLIENT names" in caught.value.detail
    assert "make kafka-jars" in caught.value.hint


def test_a_reader_that_is_not_built_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kafka, "READER", tmp_path / "kernel-kafka.jar")
    with pytest.raises(EngineError) as caught:
        kafka.reader_jar()
    assert (caught.value.primary, caught.value.hint) == (
        "the part of the kernel that reads Kafka is not built",
        "Run: make kafka-jars",
    )
