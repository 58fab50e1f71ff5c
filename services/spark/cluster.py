"""A standalone cluster of Spark on this machine: a master and workers on loopback, from PySpark's own jars.

Tests make a `SparkCluster` on free ports in a temporary folder, kill its workers and start them again. A worker leads
a process group, in which its executors are too: killed together they are gone as those of a machine that crashes. The
cluster is ready when its master has heard of all workers.
"""

import json
import os
import signal
import subprocess
import time
import urllib.request
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from services.jars import ServiceError, program
from services.processes import check_free, die_with_parent, free_ports, is_gone

MASTER = "org.apache.spark.deploy.master.Master"
WORKER = "org.apache.spark.deploy.worker.Worker"
HOST = "127.0.0.1"
READY_SECONDS = 60
STOP_SECONDS = 20
LOOK_SECONDS = 0.05


@dataclass(frozen=True)
class Member:
    """The master, or a worker."""

    name: str
    folder: Path

    @property
    def mark(self) -> str:
        """What the process is known by: a setting of Java that means nothing to it."""
        return f"-Dpenstock.services={self.folder}"


@dataclass
class SparkCluster:
    """A master and its workers, each of which has so many cores and so much memory for executors."""

    master: Member
    workers: Sequence[Member]
    port: int
    page: int
    cores: int = 1
    memory: str = "1g"
    dies_with_us: bool = False

    @property
    def url(self) -> str:
        return f"spark://{HOST}:{self.port}"

    def start(self) -> None:
        """Starts what does not run, and waits until all are ready."""
        if pid_of(self.master) is None:
            check_free(self.port, "Spark's master")
            check_free(self.page, "the page of Spark's master")
            self._begin(self.master, MASTER, "--port", str(self.port), "--webui-port", str(self.page))
        for worker in self.workers:
            if pid_of(worker) is None:
                self.begin(worker)
        self.await_ready()

    def begin(self, worker: Member) -> None:
        """Starts a worker and does not wait for it."""
        size = ["--cores", str(self.cores), "--memory", self.memory]
        self._begin(worker, WORKER, *size, "--webui-port", "0", "--work-dir", str(worker.folder / "work"), self.url)

    def await_ready(self) -> None:
        """Returns when the master knows as many living workers as there are."""
        running, until = [self.master, *self.workers], time.monotonic() + READY_SECONDS
        while time.monotonic() < until:
            if self.living() >= len(self.workers):
                return
            if gone := [each for each in running if pid_of(each) is None]:
                raise _not_started(gone[0], "It has ended.")
            time.sleep(LOOK_SECONDS)
        raise _not_started(running[-1], f"It is not ready after {READY_SECONDS} s.")

    def living(self) -> int:
        """How many workers the master knows to live; it finds a dead one out in the moment that its connection ends."""
        return int(self.told().get("aliveworkers", 0))

    def told(self) -> dict[str, Any]:
        """What the master tells of the cluster; nothing while it does not answer."""
        with (
            suppress(OSError, ValueError),
            urllib.request.urlopen(f"http://{HOST}:{self.page}/json/", timeout=5) as page,
        ):
            return dict(json.load(page))
        return {}

    def kill(self, worker: Member) -> None:
        """Ends a worker and its executors as a crash of their machine does."""
        _end(worker, signal.SIGKILL)

    def stop(self) -> None:
        """Ends all, the workers first."""
        for member in (*self.workers, self.master):
            _end(member, signal.SIGTERM)

    def _begin(self, member: Member, what: str, *words: str) -> None:
        program("java", "Java 17 or newer is needed to run Spark", "Install a Java runtime.")
        member.folder.mkdir(parents=True, exist_ok=True)
        home = spark_home()
        surroundings = {
            "SPARK_HOME": str(home),
            "SPARK_LOCAL_IP": HOST,
            "SPARK_DAEMON_MEMORY": "384m",
            "SPARK_DAEMON_JAVA_OPTS": f"-XX:TieredStopAtLevel=1 -XX:+UseSerialGC {member.mark}",
        }
        with open(member.folder / "output.txt", "ab") as output:
            process = subprocess.Popen(
                [str(home / "bin" / "spark-class"), what, "--host", HOST, *words],
                cwd=member.folder,
                env=os.environ | surroundings,
                stdout=output,
                stderr=subprocess.STDOUT,
                stdin=subprocess.DEVNULL,
                start_new_session=True,
                preexec_fn=die_with_parent if self.dies_with_us else None,
            )
        (member.folder / "pid").write_text(str(process.pid))


def spark_cluster_in(
    folder: Path, *, workers: int = 2, ports: Sequence[int] = (), cores: int = 1, dies_with_us: bool = False
) -> SparkCluster:
    """A cluster that lives in the folder; `ports` are those of the master and of its page, free ones if not named."""
    port, page = ports or free_ports(2)
    members = [Member(f"worker {n + 1}", folder / f"worker-{n + 1}") for n in range(workers)]
    return SparkCluster(Member("master", folder / "master"), members, port, page, cores, dies_with_us=dies_with_us)


def spark_home() -> Path:
    """Where PySpark lies, which is a whole Spark."""
    found = find_spec("pyspark")
    if found is None or found.origin is None:
        raise ServiceError("PySpark is not installed", detail="A cluster runs its jars.", hint="Run: make setup")
    return Path(found.origin).parent


def pid_of(member: Member) -> int | None:
    """The process of a member, if it runs: a number left behind may be another's by now. Before it is Java, it is the
    script that starts it.
    """
    try:
        pid = int((member.folder / "pid").read_text())
        words = Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
        surroundings = Path(f"/proc/{pid}/environ").read_bytes()
    except (OSError, ValueError):
        return None
    return pid if os.fsencode(member.mark) in words or os.fsencode(member.mark) in surroundings else None


def _not_started(member: Member, detail: str) -> ServiceError:
    return ServiceError(
        f"Spark's {member.name} did not start", detail=detail, hint=f"What it said is in {member.folder / 'output.txt'}"
    )


def _end(member: Member, how: signal.Signals) -> None:
    """Returns when nothing is left of a member and its group."""
    pid = pid_of(member)
    if pid is None:
        return
    until = time.monotonic() + STOP_SECONDS
    _signal_group(pid, how)
    while not is_gone(pid):
        if time.monotonic() > until:
            _signal_group(pid, signal.SIGKILL)
        time.sleep(LOOK_SECONDS)
    _signal_group(pid, signal.SIGKILL)  # executors that have outlived their worker


def _signal_group(pid: int, how: signal.Signals) -> None:
    with suppress(ProcessLookupError):
        os.killpg(pid, how)
