"""Kafka from a terminal: `make kafka`, `make kafka-stop`, `make kafka-jars`.

python -m services.kafka start [NODES]    fetches the jars, formats and starts; nothing happens if it runs already
python -m services.kafka stop             ends what was started so; its records stay
python -m services.kafka jars             fetches and builds what Spark reads Kafka with
"""

import sys
from collections.abc import Sequence
from pathlib import Path

from services.jars import CACHE, ServiceError
from services.kafka.client import BESIDE as CLIENT
from services.kafka.client import VERSION as CLIENT_VERSION
from services.kafka.client import make_reader
from services.kafka.cluster import VERSION, Cluster, Node, cluster_in, pid_of

FIRST_PORT = 9092


def main(words: Sequence[str]) -> int:
    command, nodes = words[0] if words else "", int(words[1]) if len(words) > 1 else 1
    try:
        if command == "jars":
            make_reader()
            print(f"Spark can read Kafka, with {CLIENT.name} {CLIENT_VERSION}")
            return 0
        running = [folder for folder in sorted((CACHE / "kafka").glob("*-nodes")) if _running(folder)]
        if command == "start":
            _start(nodes, running)
        elif command == "stop":
            _stop(running)
        else:
            print(__doc__, file=sys.stderr)
            return 2
    except ServiceError as error:
        print(error, file=sys.stderr)
        return 1
    return 0


def _ours(folder: Path, nodes: int) -> Cluster:
    return cluster_in(folder, nodes=nodes, first_port=FIRST_PORT, say=lambda text: print(text, flush=True))


def _start(nodes: int, running: Sequence[Path]) -> None:
    folder = CACHE / "kafka" / f"{nodes}-nodes"
    if others := [other for other in running if other != folder]:
        raise ServiceError(
            "Kafka runs already, with another number of nodes",
            detail=f"What runs is in {others[0]}.",
            hint="End it first: make kafka-stop",
        )
    cluster = _ours(folder, nodes)
    before = all(pid_of(node) for node in cluster.nodes)
    if not before:
        print(f"starting Kafka {VERSION}, {nodes} node{'s' if nodes > 1 else ''}", flush=True)
    cluster.start()
    print(f"Kafka {'runs already' if before else 'is ready'}: {cluster.servers}")


def _stop(running: Sequence[Path]) -> None:
    for folder in running:
        _ours(folder, int(folder.name.removesuffix("-nodes"))).stop()
    print("Kafka is stopped" if running else "Kafka does not run")


def _running(folder: Path) -> bool:
    nodes = [Node(0, 0, 0, path) for path in folder.glob("node-*")]
    return any(pid_of(node) is not None for node in nodes)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
