"""Redis on this machine: one server on loopback, in a folder of its own, that writes down what it did at once."""

import os
import signal
import subprocess
import time
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import redis

from services.jars import Say, ServiceError
from services.processes import check_free, die_with_parent, free_ports, is_gone
from services.redis.packages import libraries, program

READY_SECONDS = 30
SETTINGS = {
    "bind": "127.0.0.1",
    "protected-mode": "yes",
    "appendonly": "yes",
    "appendfsync": "everysec",
    "save": "",
    "daemonize": "no",
}


@dataclass
class Server:
    folder: Path
    program: Path
    port: int
    password: str = "penstock"
    dies_with_us: bool = False

    @property
    def url(self) -> str:
        return f"redis://:{self.password}@127.0.0.1:{self.port}/0"

    def start(self) -> None:
        """Starts it unless it runs, and waits until it is ready."""
        if self.pid() is None:
            self._begin()
        until = time.monotonic() + READY_SECONDS
        while time.monotonic() < until and self.pid() is not None:
            with suppress(redis.RedisError), redis.Redis.from_url(self.url) as client:
                client.ping()
                return
            time.sleep(0.02)
        raise ServiceError(
            "Redis did not start",
            detail="It has ended, or does not answer.",
            hint=f"What it said is in {self.folder / 'server.txt'}",
        )

    def kill(self) -> None:
        """Ends it as a crash does."""
        self._end(signal.SIGKILL)

    def stop(self) -> None:
        """Ends it in order: what it did is written down."""
        self._end(signal.SIGTERM)

    def _end(self, how: signal.Signals) -> None:
        if (pid := self.pid()) is not None:
            os.kill(pid, how)
            while not is_gone(pid):
                time.sleep(0.01)

    def pid(self) -> int | None:
        """The process, if it runs: a number left behind may be another's by now."""
        try:
            pid = int((self.folder / "server.pid").read_text())
            return pid if os.readlink(f"/proc/{pid}/cwd") == str(self.folder.resolve()) else None
        except (OSError, ValueError):
            return None

    def _begin(self) -> None:
        check_free(self.port, "Redis")
        self.folder.mkdir(parents=True, exist_ok=True)
        settings = SETTINGS | {"port": str(self.port), "dir": str(self.folder), "requirepass": self.password}
        (self.folder / "redis.conf").write_text("".join(f'{name} "{value}"\n' for name, value in settings.items()))
        environment = {"PATH": os.environ.get("PATH", os.defpath), "LANG": "C.UTF-8"}
        if (found := libraries(self.program)) is not None:
            environment["LD_LIBRARY_PATH"] = str(found)
        with open(self.folder / "server.txt", "ab") as output:
            process = subprocess.Popen(
                [str(self.program), str(self.folder / "redis.conf")],
                env=environment,
                cwd=self.folder,
                stdout=output,
                stderr=subprocess.STDOUT,
                stdin=subprocess.DEVNULL,
                start_new_session=True,
                preexec_fn=die_with_parent if self.dies_with_us else None,
            )
        (self.folder / "server.pid").write_text(str(process.pid))


def server_in(folder: Path, *, port: int | None = None, say: Say = print, dies_with_us: bool = False) -> Server:
    """A server that lives in the folder; on a free port where none is named."""
    return Server(folder, program(say=say), port or free_ports(1)[0], dies_with_us=dies_with_us)
