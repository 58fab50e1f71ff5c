"""A broker, a session that reads from it, and a log of which the kernel sees the mirror."""

import os
from pathlib import Path

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic

from services.jars import ServiceError
from services.kafka import Cluster
from services.kafka.client import make_reader
from tests.engine.kafka.mirrors import Mirror
from tests.log.kafka.conftest import (
    frail_kafka,
    guarded,
    guarded_kafka,
    kafka,
    prefix,
    pytest_collection_modifyitems,
)

__all__ = ["frail_kafka", "guarded", "guarded_kafka", "kafka", "prefix", "pytest_collection_modifyitems"]
WAIT = 30


@pytest.fixture(scope="session", autouse=True)
def reader() -> None:
    """Kafka's client and what the kernel talks to it with, fetched and built where they are missing."""
    try:
        make_reader()
    except ServiceError as error:
        if os.environ.get("PENSTOCK_SERVICES") == "required":
            raise
        pytest.skip(f"no client of Kafka: {error.primary}")


class Topics:
    """Makes topics in Kafka under the test's prefix, and writes messages."""

    def __init__(self, servers: str, prefix: str, **settings: str) -> None:
        self.servers, self.prefix = servers, prefix
        found = {"bootstrap.servers": servers, **{name.replace("_", "."): value for name, value in settings.items()}}
        self._admin = AdminClient(found)
        self._producer = Producer(found | {"linger.ms": 5})

    def make(self, topic: str, partitions: int = 1, **config: str) -> None:
        new = NewTopic(self.prefix + topic, partitions, 1, config={"message.timestamp.type": "LogAppendTime", **config})
        for future in self._admin.create_topics([new]).values():
            future.result(WAIT)

    def send(
        self,
        topic: str,
        value: bytes | str | None,
        *,
        key: bytes | str | None = None,
        headers: dict[str, bytes | None] | list[tuple[str, bytes | None]] | None = None,
        partition: int = 0,
    ) -> None:
        self._producer.produce(self.prefix + topic, value=value, key=key, headers=headers or [], partition=partition)

    def flush(self) -> None:
        assert self._producer.flush(WAIT) == 0


@pytest.fixture
def topics(kafka: Cluster, prefix: str) -> Topics:
    return Topics(kafka.servers, prefix)


@pytest.fixture
def mirror(kafka: Cluster, prefix: str, tmp_path: Path) -> Mirror:
    return Mirror(tmp_path / "mirror", kafka.servers, prefix)
