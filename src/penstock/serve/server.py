"""The server: uvicorn in a thread of its own, while something else is done.

Its socket is bound before the thread starts, so that who began it is told why it cannot be. When it is left, requests
that are under way are answered; streams of changes end, and their readers go on elsewhere, or later.
"""

import resource
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from threading import Thread
from time import monotonic, sleep

import uvicorn

from penstock.errors import ServeError
from penstock.serve.http import Web, web_of
from penstock.serve.patience import Patient
from penstock.serve.settings import Settings
from penstock.serve.source import Served
from penstock.serve.telling import Tell

START_SECONDS = 30.0
GRACE_SECONDS = 3
"""So long requests that are under way may take when the server stops."""
BACKLOG = 2048


class _Server(uvicorn.Server):
    """Streams end first: uvicorn waits for all answers."""

    def __init__(self, config: uvicorn.Config, web: Web) -> None:
        super().__init__(config)
        self._web = web

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        self._web.pulse.stop()
        await super().shutdown(sockets)


@contextmanager
def serving(served: Served, settings: Settings, *, tell: Tell | None = None) -> Iterator[Settings]:
    """Inside, the views are served; gives the settings with the port that it has."""
    _allow_sockets()
    with _bound(settings) as at:
        listening = replace(settings, port=at.getsockname()[1])
        web = web_of(served, listening, tell=tell)
        config = uvicorn.Config(
            web.app,
            log_config=None,
            access_log=False,
            lifespan="on",
            server_header=False,
            timeout_graceful_shutdown=GRACE_SECONDS,
            limit_concurrency=None,
            http=Patient,
            ws="none",
        )
        server = _Server(config, web)
        thread = Thread(target=server.run, args=([at],), name="penstock-serve", daemon=True)
        thread.start()
        try:
            _await_start(server, thread)
            yield listening
        finally:
            server.should_exit = True
            thread.join()


def _allow_sockets() -> None:
    """As many as the system lets this process have: every follower is one."""
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))


def _await_start(server: uvicorn.Server, thread: Thread) -> None:
    until = monotonic() + START_SECONDS
    while not server.started:
        if not thread.is_alive() or monotonic() > until:
            raise ServeError("the server did not start")
        sleep(0.005)


@contextmanager
def _bound(settings: Settings) -> Iterator[socket.socket]:
    family = socket.AF_INET6 if ":" in settings.host else socket.AF_INET
    with socket.socket(family, socket.SOCK_STREAM) as at:
        at.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            at.bind((settings.host, settings.port))
            at.listen(BACKLOG)
        except OSError as error:
            raise ServeError(
                f"nobody can listen at {settings.host}:{settings.port}",
                detail=f"{error.strerror}.",
                hint="Choose another port: --bind HOST:PORT; port 0 is any that is free.",
            ) from None
        yield at
