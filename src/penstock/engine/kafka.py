"""Kafka's client for Spark: a session that reads a log on Kafka has it, and what the kernel talks to it with.

Neither comes with PySpark. `kernel-kafka.jar` lies beside the kernel; Kafka's own `kafka-clients` is found where
PENSTOCK_KAFKA_CLIENT says, or beside the kernel, where `make kafka-jars` puts it, or among the jars that the session
has already.
"""

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from pyspark.sql import SparkSession

from penstock.engine.session import KERNEL
from penstock.errors import EngineError

ORIGIN: Final = "kafka.json"
"""The file in a log's folder that says where in Kafka its records lie."""
READER: Final = KERNEL.with_name("kernel-kafka.jar")
CLIENT: Final = KERNEL.with_name("kafka-clients.jar")
NAMED: Final = "PENSTOCK_KAFKA_CLIENT"


def enable_kafka(spark: SparkSession, log_path: str | Path) -> None:
    """Afterwards the session's tasks can read the log in this folder, wherever its records lie."""
    if not lies_in_kafka(log_path):
        return
    context: Any = spark.sparkContext._jsc.sc()
    known = context.listJars().mkString("\n")
    if READER.name not in known:
        context.addJar(str(reader_jar()))
    if "/kafka-clients" not in known:
        context.addJar(str(client_jar(os.environ)))


def lies_in_kafka(log_path: str | Path) -> bool:
    """Whether the records of the log in this folder lie in Kafka."""
    return Path(log_path, ORIGIN).exists()


def reader_jar() -> Path:
    """What the kernel talks to Kafka's client with."""
    if not READER.is_file():
        raise EngineError(
            "the part of the kernel that reads Kafka is not built",
            detail=f"There is no {READER}.",
            hint="Run: make kafka-jars",
        )
    return READER


def client_jar(environment: Mapping[str, str]) -> Path:
    """Kafka's client."""
    named = environment.get(NAMED)
    client = Path(named) if named else CLIENT
    if not client.is_file():
        raise EngineError(
            "Kafka's client for Java is missing",
            detail=f"There is no {client}{f', which {NAMED} names' if named else ''}.",
            hint=f"Run: make kafka-jars. Or name a jar of kafka-clients, 3.9 or newer, in {NAMED}.",
        )
    return client
