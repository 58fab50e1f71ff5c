"""Kafka's client for Java, and what the kernel reads Kafka with: fetched and built for this clone, once."""

import fcntl
import os
import runpy
import shutil
from pathlib import Path

from services.jars import CACHE, Say, jars

VERSION = "3.9.2"
"""One that runs beside Spark 4.3; it talks to newer brokers too."""
PACKAGES = (f"org.apache.kafka:kafka-clients:{VERSION}",)
ROOT = Path(__file__).resolve().parent.parent.parent
BUILD = ROOT / "kernel" / "build.py"
BESIDE = ROOT / "src" / "penstock" / "engine" / "kafka-clients.jar"


def make_reader(say: Say = print) -> None:
    """Afterwards `kernel-kafka.jar` and `kafka-clients.jar` lie beside the kernel. What they need besides has Spark."""
    (client,) = jars(f"kafka-clients-{VERSION}", PACKAGES, say=say, alone=True).glob("*.jar")
    with open(CACHE / "kafka-reader.lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        _put_beside(client)
        runpy.run_path(str(BUILD))["build_kafka"](BESIDE)


def _put_beside(client: Path) -> None:
    if not BESIDE.exists() or BESIDE.stat().st_size != client.stat().st_size:
        partial = BESIDE.with_name(f".{BESIDE.name}-{os.getpid()}")
        shutil.copyfile(client, partial)
        os.replace(partial, BESIDE)
