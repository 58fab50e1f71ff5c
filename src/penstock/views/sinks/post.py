"""Post: changes of a view go to an address of HTTP, one by one, signed (Standard Webhooks 1.0.0).

Delivered is what was answered with 2xx. Redirects are not followed. 410 means that nothing more is wanted. How long to
wait before the next attempt the receiver may say itself (`Retry-After`).
"""

import errno
import json
import socket
import ssl
import time
from base64 import b64encode
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime, timedelta
from email.utils import parsedate_to_datetime
from http import HTTPStatus
from http.client import HTTPConnection, HTTPException, HTTPSConnection
from pathlib import Path
from threading import Event, Timer
from urllib.parse import unquote, urlsplit

from penstock.views.sinks.delivering import MOST_SECONDS, Letter, Parcel, Undelivered, Unwanted
from penstock.views.sinks.news import News, Source, json_row, time_text
from penstock.views.sinks.signing import secrets_in, signature

TIMEOUT_SECONDS = 20.0
"""For the whole answer, however small the pieces in which it comes."""
GONE = 410
MOST_READ = 1 << 16
"""Of an answer so much is read, for the sake of the connection; nobody looks at it."""


class Post:
    """A courier by HTTP. One connection, which is kept as long as it holds."""

    kind = "webhook"
    every = timedelta(0)

    def __init__(self, source: Source, url: str, *, secrets: Path, attempts: int) -> None:
        self.address = url
        self.attempts = attempts
        self._source = source
        self._secrets = secrets
        found = urlsplit(url)
        self.where = f"{found.scheme}://{found.netloc.rpartition('@')[2]}"
        self._target = (found.path or "/") + (f"?{found.query}" if found.query else "")
        self._headers = {"content-type": "application/json", "user-agent": "penstock"}
        if found.username is not None:
            login = f"{unquote(found.username)}:{unquote(found.password or '')}"
            self._headers["authorization"] = f"Basic {b64encode(login.encode()).decode()}"
        self._secure = found.scheme == "https"
        self._host, self._port = found.hostname or "", found.port
        self._connection: HTTPConnection | None = None

    def parcels(self, news: Iterable[News]) -> Iterator[Parcel]:
        for each in news:
            yield Parcel(each.identity(self._source.pipeline), self._body(each), each, each.goes_on)

    def deliver(self, letter: Letter) -> None:
        secrets, body, now = secrets_in(self._secrets), letter.body.encode(), int(time.time())
        signed = {
            "webhook-id": letter.id,
            "webhook-timestamp": str(now),
            "webhook-signature": signature(secrets, letter.id, now, body),
        }
        try:
            status, wait = self._posted(body, self._headers | signed)
        except (OSError, HTTPException) as error:
            self.close()
            raise Undelivered(_reason(error)) from error
        if status == GONE:
            raise Unwanted
        if not 200 <= status < 300:
            raise Undelivered(f"It answered {_named(status)}", wait=wait)

    def close(self) -> None:
        if self._connection is not None:
            self._connection.close()
        self._connection = None

    def _body(self, news: News) -> str:
        position, view = news.position, news.view
        data = {
            "pipeline": self._source.pipeline,
            "view": view.name,
            "lineage": position.lineage,
            "frame": position.frame,
            "number": news.index,
            "old": json_row(view, news.old),
            "new": json_row(view, news.new),
        }
        at = time_text(self._source.appended_at(position.frame))
        return json.dumps({"type": f"{view.name}.{news.kind}", "timestamp": at, "data": data}, separators=(",", ":"))

    def _posted(self, body: bytes, headers: dict[str, str]) -> tuple[int, float]:
        """The answer's status, and for how long the receiver wants to be left alone."""
        kept = self._connection
        if kept is not None:
            try:
                return self._exchange(kept, body, headers)
            except (ConnectionError, HTTPException):  # it was closed meanwhile, as is usual: that is no failed attempt
                self.close()
        return self._exchange(self._connected(), body, headers)

    def _connected(self) -> HTTPConnection:
        if self._secure:
            context = ssl.create_default_context()
            made: HTTPConnection = HTTPSConnection(self._host, self._port, timeout=TIMEOUT_SECONDS, context=context)
        else:
            made = HTTPConnection(self._host, self._port, timeout=TIMEOUT_SECONDS)
        self._connection = made
        return made

    def _exchange(self, connection: HTTPConnection, body: bytes, headers: dict[str, str]) -> tuple[int, float]:
        with _within(connection, TIMEOUT_SECONDS):
            connection.request("POST", self._target, body, headers)
            answer = connection.getresponse()
            answer.read(MOST_READ)
        if not answer.isclosed():  # there is more: a new connection costs less than to read it
            self.close()
        return answer.status, wait_said((answer.getheader("retry-after") or "").strip())


@contextmanager
def _within(connection: HTTPConnection, seconds: float) -> Iterator[None]:
    """The connection is cut after so long: its own timeout is for each piece, and there may be many."""
    late = Event()
    if connection.sock is None:
        connection.connect()
    line = connection.sock  # the connection forgets it when the other side says that it will close

    def cut() -> None:
        late.set()
        with suppress(OSError):
            line.shutdown(socket.SHUT_RDWR)

    watch = Timer(seconds, cut)
    watch.daemon = True
    watch.start()
    try:
        yield
    except (OSError, HTTPException):
        if not late.is_set():
            raise
    finally:
        watch.cancel()
    if late.is_set():  # where the line ends, http.client takes the headers to end
        raise TimeoutError(errno.ETIMEDOUT, f"no answer within {seconds:g} seconds")


def _named(status: int) -> str:
    """With the words that it has by HTTP: those of the receiver may be anything."""
    known = next((each for each in HTTPStatus if each == status), None)
    return f"{status} {known.phrase}" if known else str(status)


def wait_said(text: str) -> float:
    """The seconds that `Retry-After` asks for; 0 where it says nothing that can be read."""
    seconds = 0.0
    if text.isascii() and text.isdigit():
        seconds = float(text[:9])
    elif text:
        with suppress(ValueError):
            until = parsedate_to_datetime(text)
            seconds = (until.astimezone(UTC) - datetime.now(UTC)).total_seconds()
    return min(max(seconds, 0.0), MOST_SECONDS)


def _reason(error: OSError | HTTPException) -> str:
    """Without what the other side has said: it may repeat what it was sent."""
    told = getattr(error, "strerror", None) or getattr(error, "verify_message", None)
    return f"{type(error).__name__}: {told}" if told else type(error).__name__
