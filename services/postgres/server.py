"""PostgreSQL on this machine: one server on loopback, in a folder of its own.

Tests make a `Server` on a free port in a temporary folder, kill it and start it again; what was committed stays. It is
ready when somebody can log in. PostgreSQL refuses to be run by root: then it runs as nobody, to whom the folder is
given.
"""

import os
import pwd
import signal
import subprocess
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psycopg

from services.jars import Say, ServiceError
from services.postgres.packages import libraries, programs
from services.processes import check_free, die_with_parent, free_ports, is_gone

READY_SECONDS = 60
STOP_SECONDS = 20
NOBODY = "nobody"


@dataclass
class Server:
    """What `settings` say goes before what is said here of every server."""

    folder: Path
    programs: Path
    port: int
    user: str = "penstock"
    password: str = "penstock"
    settings: Mapping[str, str] = field(default_factory=dict)
    dies_with_us: bool = False

    def url(self, database: str = "postgres") -> str:
        return f"postgresql://{self.user}:{self.password}@127.0.0.1:{self.port}/{database}"

    @property
    def data(self) -> Path:
        return self.folder / "data"

    def start(self) -> None:
        """Starts it unless it runs, and waits until it is ready."""
        if self.pid() is None:
            self.begin()
        self.await_ready()

    def begin(self) -> None:
        """Starts it and does not wait for it."""
        check_free(self.port, "PostgreSQL")
        if not (self.data / "PG_VERSION").exists():
            self._make()
        words = [str(self.programs / "postgres"), "-D", str(self.data)]
        settings = [word for name, value in self._settings().items() for word in ("-c", f"{name}={value}")]
        with open(self.folder / "server.txt", "ab") as output:
            process = subprocess.Popen(
                [*words, *settings],
                **self._as_whom(),
                stdout=output,
                stderr=subprocess.STDOUT,
                stdin=subprocess.DEVNULL,
                start_new_session=True,
                preexec_fn=die_with_parent if self.dies_with_us else None,
            )
        (self.folder / "server.pid").write_text(str(process.pid))

    def await_ready(self) -> None:
        """Returns when it answers."""
        until = time.monotonic() + READY_SECONDS
        while time.monotonic() < until:
            with suppress(psycopg.OperationalError), self.connection():
                return
            if self.pid() is None:
                break
            time.sleep(0.05)
        raise ServiceError(
            "PostgreSQL did not start",
            detail=f"It {'has ended' if self.pid() is None else f'is not ready after {READY_SECONDS} s'}.",
            hint=f"What it said is in {self.folder / 'server.txt'}",
        )

    def connection(self, database: str = "postgres") -> Any:
        """A connection in which every statement is a transaction."""
        return psycopg.connect(self.url(database), autocommit=True, connect_timeout=5)

    def kill(self) -> None:
        """Ends it as a crash does, with all its processes."""
        pid = self.pid()
        if pid is None:
            return
        os.kill(pid, signal.SIGSTOP)  # so that it starts no further ones
        children = _children(pid)
        for each in (*children, pid):
            with suppress(ProcessLookupError):
                os.kill(each, signal.SIGKILL)
        for each in (pid, *children):
            _await_gone(each)

    def stop(self) -> None:
        """Ends it in order; who is connected is disconnected."""
        if (pid := self.pid()) is not None:
            os.kill(pid, signal.SIGINT)
            _await_gone(pid)

    def pid(self) -> int | None:
        """The process, if it runs: a number left behind may be another's by now."""
        try:
            pid = int((self.folder / "server.pid").read_text())
            return pid if os.fsencode(self.data) in Path(f"/proc/{pid}/cmdline").read_bytes() else None
        except (OSError, ValueError):
            return None

    def _make(self) -> None:
        self.folder.mkdir(parents=True, exist_ok=True)
        secret = self.folder / "password"
        secret.write_text(self.password)
        if os.geteuid() == 0:
            who = pwd.getpwnam(NOBODY)
            for each in (self.folder, secret):
                os.chown(each, who.pw_uid, who.pw_gid)
        how = ["--auth=scram-sha-256", "--encoding=UTF8", "--locale=C.UTF-8", "--no-sync"]
        words = [str(self.programs / "initdb"), "-D", str(self.data), "-U", self.user, f"--pwfile={secret}", *how]
        done = subprocess.run(words, **self._as_whom(), capture_output=True, text=True, check=False)
        if done.returncode != 0:
            raise ServiceError(
                "PostgreSQL could not make its data folder",
                detail=done.stderr.strip().splitlines()[-1] if done.stderr.strip() else "It said nothing.",
                hint="Run as root it works as nobody, who must be able to reach the folder.",
            )

    def _as_whom(self) -> dict[str, Any]:
        environment = {"PATH": os.environ.get("PATH", os.defpath), "LANG": "C.UTF-8"}
        if (found := libraries(self.programs)) is not None:
            environment["LD_LIBRARY_PATH"] = str(found)
        who = pwd.getpwnam(NOBODY) if os.geteuid() == 0 else None
        user = {} if who is None else {"user": who.pw_uid, "group": who.pw_gid, "extra_groups": []}
        return {"env": environment, "cwd": self.folder, **user}

    def _settings(self) -> dict[str, str]:
        found = {
            "listen_addresses": "127.0.0.1",
            "port": str(self.port),
            "unix_socket_directories": "",
            "shared_buffers": "64MB",
            "max_connections": "40",
            "jit": "off",
        }
        return found | dict(self.settings)


def _children(pid: int) -> list[int]:
    found = []
    for each in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError):
            if int(each.read_text().rpartition(")")[2].split()[1]) == pid:
                found.append(int(each.parent.name))
    return found


def _await_gone(pid: int) -> None:
    until = time.monotonic() + STOP_SECONDS
    while not is_gone(pid):
        if time.monotonic() > until:
            os.kill(pid, signal.SIGKILL)
        time.sleep(0.01)


def server_in(folder: Path, *, port: int | None = None, say: Say = print, dies_with_us: bool = False) -> Server:
    """A server that lives in the folder; on a free port where none is named."""
    return Server(folder, programs(say=say), port or free_ports(1)[0], dies_with_us=dies_with_us)
