"""RabbitMQ on this machine: one node on loopback, in a folder of its own.

Tests make a `Broker` on free ports in a temporary folder, kill it and start it again; its queues stay. It is ready when
somebody can log in. Erlang's register of names, epmd, is one of its own and ends with it.
"""

import os
import signal
import subprocess
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

import amqp

from services.jars import Say, ServiceError
from services.processes import check_free, die_with_parent, free_ports, is_gone
from services.rabbitmq.packages import INSTALLED, packages, server

READY_SECONDS = 60
STOP_SECONDS = 20
CONFIG = "rabbitmq.conf"


@dataclass
class Broker:
    """What `settings` say goes before what is said here of every broker; `user` and `password` are those it has."""

    folder: Path
    root: Path
    port: int
    other_ports: tuple[int, int]
    """Where Erlang's nodes and its register of names would talk to each other."""
    user: str = "guest"
    password: str = "guest"
    settings: Mapping[str, str] = field(default_factory=dict)
    dies_with_us: bool = False

    @property
    def url(self) -> str:
        return f"amqp://{self.user}:{self.password}@127.0.0.1:{self.port}/"

    def start(self) -> None:
        """Starts it unless it runs, and waits until it is ready."""
        if self.pid() is None:
            self.begin()
        self.await_ready()

    def begin(self) -> None:
        """Starts it and does not wait for it."""
        for port in (self.port, *self.other_ports):
            check_free(port, "RabbitMQ")
        self.folder.mkdir(parents=True, exist_ok=True)
        (self.folder / CONFIG).write_text("".join(f"{name} = {value}\n" for name, value in self._config().items()))
        erlang = self.root / INSTALLED / "bin"
        self._begin("names", [str(erlang / "epmd"), "-address", "127.0.0.1", "-port", str(self.other_ports[1])])
        self._begin("broker", [str(server(self.root) / "rabbitmq-server")])

    def _begin(self, what: str, words: list[str]) -> None:
        with open(self.folder / f"{what}.txt", "ab") as output:
            process = subprocess.Popen(
                words,
                env=self._environment(),
                cwd=self.folder,
                stdout=output,
                stderr=subprocess.STDOUT,
                stdin=subprocess.DEVNULL,
                start_new_session=True,
                preexec_fn=die_with_parent if self.dies_with_us else None,
            )
        (self.folder / f"{what}.pid").write_text(str(process.pid))

    def await_ready(self) -> None:
        """Returns when it answers."""
        until = time.monotonic() + READY_SECONDS
        while time.monotonic() < until:
            with suppress(OSError, amqp.AMQPError), self.connection():
                return
            if self.pid() is None:
                break
            time.sleep(0.05)
        raise ServiceError(
            "RabbitMQ did not start",
            detail=f"It {'has ended' if self.pid() is None else f'is not ready after {READY_SECONDS} s'}.",
            hint=f"What it said is in {self.folder / 'broker.txt'}",
        )

    def connection(self) -> amqp.Connection:
        """A connection, made when it is entered."""
        return amqp.Connection(
            f"127.0.0.1:{self.port}",
            userid=self.user,
            password=self.password,
            login_method="PLAIN",
            connect_timeout=5,
        )

    def kill(self) -> None:
        """Ends it as a crash does."""
        self._end(signal.SIGKILL)

    def stop(self) -> None:
        """Ends it in order; its durable queues stay."""
        self._end(signal.SIGTERM)

    def pid(self, what: str = "broker") -> int | None:
        """The process, if it runs: a number left behind may be another's by now."""
        try:
            pid = int((self.folder / f"{what}.pid").read_text())
            return pid if os.fsencode(f"HOME={self.folder}") in _environment_of(pid) else None
        except (OSError, ValueError):
            return None

    def _end(self, how: signal.Signals) -> None:
        """Returns when nothing of it is left, its ports included."""
        for what in ("broker", "names"):
            pid = self.pid(what)
            if pid is None:
                continue
            os.kill(pid, how)
            until = time.monotonic() + STOP_SECONDS
            while not is_gone(pid):
                if time.monotonic() > until:
                    os.kill(pid, signal.SIGKILL)
                time.sleep(0.02)

    def _config(self) -> dict[str, str]:
        found = {
            "listeners.tcp.1": f"127.0.0.1:{self.port}",
            "default_user": self.user,
            "default_pass": self.password,
            "vm_memory_high_watermark.absolute": "400MB",
            "disk_free_limit.absolute": "20MB",
            "log.console": "true",
            "log.console.level": "warning",
            "log.file": "false",
        }
        return found | dict(self.settings)

    def _environment(self) -> dict[str, str]:
        nodes, names = self.other_ports
        return {
            "PATH": f"{self.root / INSTALLED / 'bin'}:{os.environ.get('PATH', os.defpath)}",
            "HOME": str(self.folder),  # Erlang's cookie lies there
            "LANG": "C.UTF-8",
            "ERL_EPMD_ADDRESS": "127.0.0.1",
            "ERL_EPMD_PORT": str(names),
            "RABBITMQ_NODENAME": "penstock@localhost",
            "RABBITMQ_DIST_PORT": str(nodes),
            "RABBITMQ_CONF_ENV_FILE": os.devnull,
            "RABBITMQ_CONFIG_FILE": str(self.folder / CONFIG),
            "RABBITMQ_ENABLED_PLUGINS_FILE": str(self.folder / "plugins"),
            "RABBITMQ_MNESIA_BASE": str(self.folder / "data"),
            "RABBITMQ_LOG_BASE": str(self.folder / "log"),
            "RABBITMQ_SERVER_ADDITIONAL_ERL_ARGS": "-kernel inet_dist_use_interface {127,0,0,1} +S 1",
            "RUNNING_UNDER_SYSTEMD": "true",  # its script then becomes the broker, and starts no second process
        }


def _environment_of(pid: int) -> list[bytes]:
    """That of a process which is just becoming another program is empty for an instant; that of a dead one stays so."""
    for _ in range(20):
        if found := Path(f"/proc/{pid}/environ").read_bytes():
            return found.split(b"\0")
        time.sleep(0.01)
    return []


def broker_in(folder: Path, *, port: int | None = None, say: Say = print, dies_with_us: bool = False) -> Broker:
    """A broker that lives in the folder; on a free port where none is named."""
    root = packages(say=say)
    first, second, third = free_ports(3)
    return Broker(folder, root, port or first, (second, third), dies_with_us=dies_with_us)
