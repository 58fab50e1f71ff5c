"""To Kafka and back: what comes home is what went."""

from pathlib import Path

from penstock.log import Log
from penstock.log.kafka import KafkaLog
from tests.log.test_copying import copy, filled, told


def test_what_was_copied_to_kafka_and_back_is_the_same(tmp_path: Path, log: KafkaLog) -> None:
    with filled(Log.open(tmp_path / "one")) as one, Log.open(tmp_path / "two") as two:
        for topic, records in (("orders", 32), ("raw", 2)):
            assert copy(one, log, topic) == records
            assert copy(one, log, topic) == 0
            assert copy(log, two, topic) == records
            assert copy(log, two, topic) == 0
            assert told(two, topic) == told(one, topic)
        one.append("orders", [{"id": 100}])
        assert copy(one, log) == 1 and copy(log, two) == 1 and told(two, "orders") == told(one, "orders")
