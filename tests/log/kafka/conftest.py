"""A broker for the tests of this process, and logs on it. Where there is none to be had, the tests are skipped;
with PENSTOCK_SERVICES=required they fail.
"""

import os
import subprocess
import uuid
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from penstock.log.kafka import KafkaLog
from services.jars import ServiceError
from services.kafka import Cluster, cluster_in, free_ports
from services.proxy import Proxy

BROKERS = {"kafka", "frail_kafka", "guarded"}
PASSWORD = "correct horse battery staple"
SMALL = {
    "auto.create.topics.enable": "true",  # as Kafka has it unless told otherwise
    "log.index.size.max.bytes": "65536",  # tests make many topics
    "broker.session.timeout.ms": "2000",  # and a killed broker is waited for as long before it may come back
    "broker.heartbeat.interval.ms": "500",
    "transaction.abort.timed.out.transaction.cleanup.interval.ms": "500",
}


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if BROKERS & set(getattr(item, "fixturenames", ())):
            item.add_marker(pytest.mark.kafka)


def made(folder: Path, *, nodes: int = 1) -> Cluster:
    """A cluster that does not run yet."""
    try:
        cluster = cluster_in(folder, nodes=nodes, dies_with_us=True)
    except ServiceError as error:
        if os.environ.get("PENSTOCK_SERVICES") == "required":
            raise
        pytest.skip(f"no Kafka: {error.primary}")
    cluster.settings = dict(SMALL)
    (cluster.nodes[0].folder.parent / "identity").write_text("-iEX7maORA6zW6j1_1wrRQ")  # one in 64 begins with a dash
    return cluster


@pytest.fixture(scope="session")
def kafka(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """The broker that all tests share: no test may hurt it."""
    cluster = made(tmp_path_factory.mktemp("kafka"))
    cluster.start()
    yield cluster
    cluster.stop()


@pytest.fixture(scope="session")
def frail_kafka(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Cluster, Proxy]]:
    """A broker that tests may kill, behind a proxy that they may break. They leave both whole."""
    cluster = made(tmp_path_factory.mktemp("frail"))
    with Proxy(cluster.nodes[0].port) as proxy:
        cluster.settings = SMALL | {"advertised.listeners": f"PLAINTEXT://127.0.0.1:{proxy.port}"}
        cluster.start()
        yield cluster, proxy
        cluster.stop()


@dataclass(frozen=True)
class Guarded:
    """A broker that wants to be told the user `penstock` and the password of the same tests: at `plain` over nothing,
    at `secured` over TLS, with a certificate that is the one in the file `authority`.
    """

    plain: str
    secured: str
    authority: Path


@pytest.fixture(scope="session")
def guarded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Guarded]:
    folder = tmp_path_factory.mktemp("guarded")
    cluster, authority = made(folder), certificate(folder)
    node, (port, secured) = cluster.nodes[0], free_ports(2)
    (folder / "both.pem").write_text(authority.with_suffix(".key").read_text() + authority.read_text())
    told = f"PLAINTEXT://{node.address},GUARDED://127.0.0.1:{port},SECURED://127.0.0.1:{secured}"
    login = "org.apache.kafka.common.security.plain.PlainLoginModule required"
    protocols = "CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT,GUARDED:SASL_PLAINTEXT,SECURED:SASL_SSL"
    cluster.settings = SMALL | {
        "listeners": f"{told},CONTROLLER://127.0.0.1:{node.controller_port}",
        "advertised.listeners": told,
        "listener.security.protocol.map": protocols,
        "inter.broker.listener.name": "PLAINTEXT",
        "sasl.enabled.mechanisms": "PLAIN",
        "listener.name.guarded.plain.sasl.jaas.config": f'{login} user_penstock="{PASSWORD}";',
        "listener.name.secured.plain.sasl.jaas.config": f'{login} user_penstock="{PASSWORD}";',
        "listener.name.secured.ssl.keystore.type": "PEM",
        "listener.name.secured.ssl.keystore.location": str(folder / "both.pem"),
    }
    cluster.start()
    yield Guarded(f"127.0.0.1:{port}", f"127.0.0.1:{secured}", authority)
    cluster.stop()


def certificate(folder: Path, name: str = "authority") -> Path:
    """A certificate of 127.0.0.1, signed by itself; its key lies beside it."""
    made = folder / f"{name}.pem"
    kind = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-noenc", "-days", "2", "-subj", f"/CN={name}"]
    files = ["-keyout", str(made.with_suffix(".key")), "-out", str(made)]
    command = ["openssl", "req", "-x509", *kind, "-addext", "subjectAltName=IP:127.0.0.1", *files]
    subprocess.run(command, check=True, capture_output=True)
    return made


@pytest.fixture(scope="session")
def guarded_kafka(guarded: Guarded) -> str:
    return guarded.plain


@pytest.fixture
def prefix() -> str:
    return f"{uuid.uuid4().hex[:12]}."


@pytest.fixture
def open_log(kafka: Cluster, prefix: str) -> Iterator[Callable[..., KafkaLog]]:
    """Opens the test's log, as often as asked; all handles are closed at the end."""
    opened: list[KafkaLog] = []

    def open_(**options: object) -> KafkaLog:
        opened.append(KafkaLog.open(kafka.servers, prefix=prefix, **options))  # type: ignore[arg-type]
        return opened[-1]

    yield open_
    for log in opened:
        log.close()


@pytest.fixture
def log(open_log: Callable[..., KafkaLog]) -> KafkaLog:
    return open_log()
