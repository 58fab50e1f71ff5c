"""A proxy between a client and a server on loopback, which can be made to fail the way networks do.

`delay` slows every piece of data down; `cut` ends all connections and refuses new ones; `swallow` keeps connections
open and lets nothing through, as a firewall does that forgot them; `heal` lets data pass again. What was swallowed is
gone, so connections that lost some of their data end then.
"""

import socket
import time
from contextlib import suppress
from threading import Lock, Thread
from types import TracebackType
from typing import Literal, Self

PIECE = 1 << 16


class Proxy:
    """Use it in a `with`. Clients connect to `port`; `target` is where their data goes."""

    def __init__(self, target: int, port: int = 0) -> None:
        self._target = target
        self._mode: Literal["pass", "cut", "swallow"] = "pass"
        self._delay = 0.0
        self._lock = Lock()
        self._open: set[socket.socket] = set()
        self._listener = socket.create_server(("127.0.0.1", port))
        self.port: int = self._listener.getsockname()[1]
        Thread(target=self._accept, daemon=True).start()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._mode = "cut"
        self._listener.close()
        self._end_all()

    def delay(self, seconds: float) -> None:
        self._delay = seconds

    def cut(self) -> None:
        self._mode = "cut"
        self._end_all()

    def swallow(self) -> None:
        self._mode = "swallow"

    def heal(self) -> None:
        swallowed = self._mode == "swallow"
        self._mode, self._delay = "pass", 0.0
        if swallowed:
            self._end_all()

    def _end_all(self) -> None:
        with self._lock:
            ended, self._open = self._open, set()
        for each in ended:
            with suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)
            each.close()

    def _accept(self) -> None:
        with suppress(OSError):  # the listener was closed
            while True:
                client, _ = self._listener.accept()
                self._join(client)

    def _join(self, client: socket.socket) -> None:
        if self._mode == "cut":
            client.close()
            return
        try:
            server = socket.create_connection(("127.0.0.1", self._target))
        except OSError:
            client.close()
            return
        with self._lock:
            self._open |= {client, server}
        for pair in ((client, server), (server, client)):
            Thread(target=self._pump, args=pair, daemon=True).start()

    def _pump(self, source: socket.socket, sink: socket.socket) -> None:
        with suppress(OSError):
            while data := source.recv(PIECE):
                if self._delay:
                    time.sleep(self._delay)
                if self._mode == "pass":
                    sink.sendall(data)
        for each in (source, sink):
            with suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)
            with self._lock:
                self._open.discard(each)
            each.close()
