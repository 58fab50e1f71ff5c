"""A pipeline on a log on Kafka, run batch by batch with the oracle beside it; other programs write its sources."""

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from confluent_kafka import Producer
from pyspark.sql import SparkSession

from penstock.log.kafka import OrderedKafkaLog
from tests.engine.conftest import Bench


class KafkaBench(Bench):
    def __init__(
        self,
        spark: SparkSession,
        folder: Path,
        sql: str,
        servers: str,
        prefix: str,
        *,
        say: Callable[[str], None] = print,
        **options: Any,
    ) -> None:
        self.servers, self.prefix, self._say = servers, prefix, say
        self._producer = Producer({"bootstrap.servers": servers})
        super().__init__(spark, folder, sql, **options)

    def opened(self, folder: Path) -> Any:
        return OrderedKafkaLog.open(self.servers, prefix=self.prefix, folder=folder, admits=True, say=self._say)

    def write(
        self, topic: str, row: Mapping[str, Any] | str | None, *, key: Any = None, partition: int | None = None
    ) -> None:
        """As a program does that knows nothing of Penstock."""
        value = json.dumps(row) if isinstance(row, Mapping) else row
        where = {} if partition is None else {"partition": partition}
        self._producer.produce(self.prefix + topic, value, None if key is None else json.dumps(key), **where)

    def flush(self) -> None:
        assert self._producer.flush(30) == 0
