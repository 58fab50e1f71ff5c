"""How Flink is set up: once with durable state, once for speed alone; six gigabytes either way.

Both have as many slots as cores, and the collector with the greatest throughput.

- durable: state in RocksDB, with two gigabytes for its caches and buffers and with Bloom filters; a checkpoint every
  ten seconds and one at the end, incremental and exactly once, to files. What Flink does not do by itself is left out:
  mini-batches, which it trades for latency, and the reuse of objects.
- fastest: state on Java's heap, no checkpoints, objects reused, changes of a key taken together in mini-batches and
  added up before they are sent. Distinct counts are not split by their values: on two cores that takes q15 and q16
  about twice the CPU time.
"""

import os
from pathlib import Path

JAVA = {
    "durable": "-Xms4g -Xmx4g -XX:+UseParallelGC",
    "fastest": "-Xms6g -Xmx6g -XX:+UseParallelGC",
}


def configuration(settings: str, home: Path) -> dict[str, str]:
    return common(home) | (durable(home) if settings == "durable" else fastest())


def common(home: Path) -> dict[str, str]:
    cores = str(os.cpu_count() or 1)
    return {
        "parallelism.default": cores,
        "taskmanager.numberOfTaskSlots": cores,
        "taskmanager.memory.network.min": "256m",
        "taskmanager.memory.network.max": "256m",
        "io.tmp.dirs": str(home / "tmp"),
        "table.local-time-zone": "UTC",
        "restart-strategy.type": "none",
    }


def durable(home: Path) -> dict[str, str]:
    return {
        "taskmanager.memory.managed.size": "2g",
        "state.backend.type": "rocksdb",
        "state.backend.rocksdb.localdir": str(home / "rocksdb"),
        "state.backend.rocksdb.use-bloom-filter": "true",
        "execution.checkpointing.interval": "10 s",
        "execution.checkpointing.mode": "EXACTLY_ONCE",
        "execution.checkpointing.incremental": "true",
        "execution.checkpointing.storage": "filesystem",
        "execution.checkpointing.dir": (home / "checkpoints").as_uri(),
    }


def fastest() -> dict[str, str]:
    return {
        "taskmanager.memory.managed.size": "64m",
        "state.backend.type": "hashmap",
        "pipeline.object-reuse": "true",
        "table.exec.mini-batch.enabled": "true",
        "table.exec.mini-batch.allow-latency": "2 s",
        "table.exec.mini-batch.size": "50000",
        "table.optimizer.agg-phase-strategy": "TWO_PHASE",
    }
