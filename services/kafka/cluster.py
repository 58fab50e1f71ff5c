"""Apache Kafka on this machine: one node or several, on loopback, each with a folder of its own.

Tests make a `Cluster` on free ports in a temporary folder, kill its nodes and start them again. A node is ready when it
lists the topics of as many nodes as there are.
"""

import base64
import logging
import os
import signal
import subprocess
import time
import uuid
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient

from services.jars import Say, ServiceError, jars, program
from services.processes import check_free, die_with_parent, free_ports, is_gone

VERSION = "4.3.1"
PACKAGES = (f"org.apache.kafka:kafka_2.13:{VERSION}", "org.slf4j:slf4j-simple:1.7.36")
JAVA = ("-Xmx384m", "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-Dorg.slf4j.simpleLogger.defaultLogLevel=warn")
READY_SECONDS = 60
STOP_SECONDS = 20
SILENCE = logging.Logger("services.kafka", logging.CRITICAL)
"""Takes what the client would write to standard error while nobody listens yet."""


@dataclass(frozen=True)
class Node:
    number: int
    port: int
    controller_port: int
    folder: Path

    @property
    def address(self) -> str:
        return f"127.0.0.1:{self.port}"


@dataclass
class Cluster:
    """Nodes that know each other. What `settings` say goes before what is said here of every broker."""

    nodes: Sequence[Node]
    jars: Path
    settings: Mapping[str, str] = field(default_factory=dict)
    say: Say = print
    dies_with_us: bool = False

    @property
    def servers(self) -> str:
        return ",".join(node.address for node in self.nodes)

    def start(self) -> None:
        """Formats what is new, starts what does not run, and waits until all are ready."""
        identity = _identity(self.nodes[0].folder.parent)
        for node in self.nodes:
            if not (node.folder / "data" / "meta.properties").exists():
                self._format(node, identity)
        for node in self.nodes:
            if pid_of(node) is None:
                self.begin(node)
        for node in self.nodes:
            self.await_ready(node)

    def begin(self, node: Node) -> None:
        """Starts a node and does not wait for it."""
        for port in (node.port, node.controller_port):
            check_free(port, f"Kafka's node {node.number}")
        with open(node.folder / "output.txt", "ab") as output:
            process = subprocess.Popen(
                self._java("kafka.Kafka", str(node.folder / "server.properties")),
                stdout=output,
                stderr=subprocess.STDOUT,
                stdin=subprocess.DEVNULL,
                start_new_session=True,
                preexec_fn=die_with_parent if self.dies_with_us else None,
            )
        (node.folder / "pid").write_text(str(process.pid))

    def await_ready(self, node: Node) -> None:
        """Returns when the node answers."""
        settings: dict[str, Any] = {"bootstrap.servers": node.address, "logger": SILENCE}
        admin = AdminClient(settings)
        until = time.monotonic() + READY_SECONDS
        while time.monotonic() < until:
            with suppress(KafkaException):
                if len(admin.list_topics(timeout=1).brokers) >= len(self.nodes):
                    return
            if pid_of(node) is None:
                break
        raise ServiceError(
            f"Kafka's node {node.number} did not start",
            detail=f"It {'has ended' if pid_of(node) is None else f'is not ready after {READY_SECONDS} s'}.",
            hint=f"What it said is in {node.folder / 'output.txt'}",
        )

    def kill(self, node: Node) -> None:
        """Ends a node as a crash does."""
        _end(node, signal.SIGKILL)

    def stop(self) -> None:
        """Ends all nodes in order; their records stay."""
        for node in self.nodes:
            if (pid := pid_of(node)) is not None:
                os.kill(pid, signal.SIGTERM)
        for node in self.nodes:
            _end(node, signal.SIGTERM)

    def _format(self, node: Node, identity: str) -> None:
        node.folder.mkdir(parents=True, exist_ok=True)
        properties = node.folder / "server.properties"
        properties.write_text(self._properties(node))
        asked = ["format", f"--cluster-id={identity}", "-c", str(properties), "--feature", "share.version=1"]
        done = subprocess.run(
            self._java("kafka.tools.StorageTool", *asked), capture_output=True, text=True, check=False
        )
        if done.returncode != 0:
            raise ServiceError(
                f"the folder of Kafka's node {node.number} could not be formatted",
                detail=(done.stderr or done.stdout).strip().splitlines()[-1],
                hint=f"Remove {node.folder} and start again.",
            )

    def _java(self, *words: str) -> list[str]:
        java = program("java", "Java 17 or newer is needed to run Kafka", "Install a Java runtime.")
        return [java, *JAVA, "-cp", f"{self.jars}/*", *words]

    def _properties(self, node: Node) -> str:
        copies = str(min(3, len(self.nodes)))
        enough = str(max(1, len(self.nodes) - 1))
        found = {
            "process.roles": "broker,controller",
            "node.id": str(node.number),
            "listeners": f"PLAINTEXT://{node.address},CONTROLLER://127.0.0.1:{node.controller_port}",
            "advertised.listeners": f"PLAINTEXT://{node.address}",
            "controller.listener.names": "CONTROLLER",
            "listener.security.protocol.map": "CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT",
            "controller.quorum.voters": ",".join(f"{n.number}@127.0.0.1:{n.controller_port}" for n in self.nodes),
            "log.dirs": str(node.folder / "data"),
            "auto.create.topics.enable": "false",
            "default.replication.factor": copies,
            "min.insync.replicas": enough,
            "group.initial.rebalance.delay.ms": "0",
            "offsets.topic.num.partitions": "4",
            "offsets.topic.replication.factor": copies,
            "transaction.state.log.num.partitions": "4",
            "transaction.state.log.replication.factor": copies,
            "transaction.state.log.min.isr": enough,
            "share.coordinator.state.topic.replication.factor": copies,
            "share.coordinator.state.topic.min.isr": enough,
        }
        return "".join(f"{name}={value}\n" for name, value in (found | dict(self.settings)).items())


def cluster_in(
    folder: Path, *, nodes: int = 1, first_port: int | None = None, say: Say = print, dies_with_us: bool = False
) -> Cluster:
    """A cluster whose nodes live in the folder; on free ports where no first one is named."""
    found = jars(f"kafka-{VERSION}", PACKAGES, say=say)
    ports = free_ports(2 * nodes) if first_port is None else list(range(first_port, first_port + 2 * nodes))
    members = [Node(n + 1, ports[2 * n], ports[2 * n + 1], folder / f"node-{n + 1}") for n in range(nodes)]
    return Cluster(members, found, say=say, dies_with_us=dies_with_us)


def pid_of(node: Node) -> int | None:
    """The process of a node, if it runs: a number left behind may be another's by now."""
    try:
        pid = int((node.folder / "pid").read_text())
        words = Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
    except (OSError, ValueError):
        return None
    return pid if os.fsencode(node.folder / "server.properties") in words else None


def _end(node: Node, how: signal.Signals) -> None:
    """Returns when nothing of the node is left, its ports included."""
    pid = pid_of(node)
    if pid is None:
        return
    os.kill(pid, how)
    until = time.monotonic() + STOP_SECONDS
    while not is_gone(pid):
        if time.monotonic() > until:
            os.kill(pid, signal.SIGKILL)
        time.sleep(0.02)


def _identity(folder: Path) -> str:
    """The cluster's identity, made once."""
    path = folder / "identity"
    if not path.exists():
        folder.mkdir(parents=True, exist_ok=True)
        path.write_text(base64.urlsafe_b64encode(uuid.uuid4().bytes).decode().rstrip("="))
    return path.read_text()
