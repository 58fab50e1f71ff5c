"""Programs that use the protocol of every log work with each of them, and mypy agrees."""

from pathlib import Path

import pytest

from penstock.log import Log
from penstock.log.kafka import KafkaLog
from penstock.log.protocol import AnyLog


def copied(source: AnyLog, target: AnyLog, topic: str) -> None:
    found = source.topic(topic)
    target.create_topic(topic, found.schema, key=found.key)
    for batch in source.batches(topic, columns=found.schema.names):
        target.append(topic, batch)


@pytest.mark.parametrize("there", [True, False], ids=["to-kafka", "from-kafka"])
def test_a_topic_is_copied_from_one_kind_of_log_to_the_other(log: KafkaLog, tmp_path: Path, *, there: bool) -> None:
    with Log.open(tmp_path / "log") as embedded:
        source, target = (embedded, log) if there else (log, embedded)
        source.create_topic("orders", "id BIGINT NOT NULL, tags ARRAY<STRING>", key="id")
        source.append("orders", [{"id": 1, "tags": ["a"]}, {"id": 2}])
        copied(source, target, "orders")
        found = [[entry.value for entry in each.read("orders")] for each in (source, target)]
        assert found[0] == found[1] == [{"id": 1, "tags": ["a"]}, {"id": 2, "tags": None}]
