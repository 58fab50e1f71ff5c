"""Spark's standalone cluster from a terminal: `make cluster`, `make cluster-stop`.

python -m services.spark start [WORKERS]    starts a master and workers; nothing happens if they run already
python -m services.spark stop               ends what was started so
"""

import sys
from collections.abc import Sequence

from services.jars import CACHE, ServiceError
from services.spark.cluster import SparkCluster, pid_of, spark_cluster_in

PORTS = (7077, 7078)
FOLDER = CACHE / "spark"


def main(words: Sequence[str]) -> int:
    command, workers = words[0] if words else "", int(words[1]) if len(words) > 1 else 2
    try:
        if command == "start":
            _start(workers)
        elif command == "stop":
            _stop()
        else:
            print(__doc__, file=sys.stderr)
            return 2
    except ServiceError as error:
        print(error, file=sys.stderr)
        return 1
    return 0


def _ours(workers: int) -> SparkCluster:
    return spark_cluster_in(FOLDER, workers=workers, ports=PORTS)


def _start(workers: int) -> None:
    cluster = _ours(workers)
    before = all(pid_of(each) for each in (cluster.master, *cluster.workers))
    if not before:
        print(f"starting Spark's master and {workers} workers", flush=True)
    cluster.start()
    print(
        f"Spark {'runs already' if before else 'is ready'}: {cluster.url}, its page is http://127.0.0.1:{cluster.page}"
    )


def _stop() -> None:
    cluster = _ours(len(list(FOLDER.glob("worker-*"))))
    running = any(pid_of(each) for each in (cluster.master, *cluster.workers))
    cluster.stop()
    print("Spark is stopped" if running else "Spark does not run")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
