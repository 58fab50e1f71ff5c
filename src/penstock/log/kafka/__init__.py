"""The log on Apache Kafka: the same protocol, kept by a cluster of brokers. Needs the extra `kafka`."""

from penstock.errors import LogError

try:
    from penstock.log.kafka.log import KafkaLog
except ModuleNotFoundError as error:
    if not (error.name or "").startswith("confluent_kafka"):
        raise
    raise LogError(
        "Kafka's client is not installed",
        detail="There is no module confluent_kafka.",
        hint="pip install 'penstock[kafka]'",
    ) from error

from penstock.log.kafka.ordered import OrderedKafkaLog
from penstock.log.kafka.records import Commit, KafkaAppended, KafkaDescription, KafkaEntry

__all__ = ["Commit", "KafkaAppended", "KafkaDescription", "KafkaEntry", "KafkaLog", "OrderedKafkaLog"]
