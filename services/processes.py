"""Processes that services run as: where they may listen, and whether they are gone."""

import ctypes
import os
import random
import signal
import socket
import sys
from contextlib import suppress
from pathlib import Path

from services.jars import ServiceError

PORTS = (20_000, 30_000)
DIE_WITH_PARENT = 1  # PR_SET_PDEATHSIG


def free_ports(count: int) -> list[int]:
    """Ports below those that the system gives to clients: one of them might take a port while its server is down."""
    found: list[int] = []
    while len(found) < count:
        port = random.randrange(*PORTS)
        with socket.socket() as probe, suppress(OSError):
            probe.bind(("127.0.0.1", port))
            found.append(port)
    return found


def check_free(port: int, who: str) -> None:
    """Refuses a port at which somebody listens."""
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
        except OSError as error:
            raise ServiceError(
                f"{who} cannot listen on port {port}",
                detail=f"{error.strerror}.",
                hint="End what listens there: the same service, started elsewhere?",
            ) from error


def is_gone(pid: int) -> bool:
    """Whether the process has ended; one of ours is let go then."""
    try:
        return os.waitpid(pid, os.WNOHANG)[0] == pid
    except ChildProcessError:  # another process started it
        return not Path(f"/proc/{pid}").exists()


def die_with_parent() -> None:
    """Called in a child before it becomes another program."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(DIE_WITH_PARENT, signal.SIGKILL)
