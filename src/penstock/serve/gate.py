"""The gate: every request passes it, and is refused there or counted.

Who may ask (tokens, and on loopback the name under which the server was called: a page from elsewhere cannot pretend
that its own name is ours), how often, and how large a body may be. What fails inside becomes an answer in JSON.
"""

import asyncio
from collections import OrderedDict
from time import monotonic
from typing import Any

from starlette.datastructures import Headers
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from penstock.errors import PenstockError, ServeError
from penstock.serve.metrics import Requests
from penstock.serve.pages import is_page
from penstock.serve.settings import Settings, hashed
from penstock.serve.telling import Tell
from penstock.serve.troubles import answer_to

OPEN = frozenset({"/health", "/ready"})
READING = frozenset({"GET", "HEAD", "OPTIONS"})
CLIENTS = 10_000
"""Whose rate is remembered."""
SILENCE_SECONDS = 30.0
"""So long a body may stop coming."""
LOCAL = frozenset({"localhost", "127.0.0.1", "[::1]"})


class Gate:
    def __init__(self, app: ASGIApp, settings: Settings, requests: Requests, tell: Tell | None) -> None:
        self._app = app
        self._settings = settings
        self._requests = requests
        self._tell = tell
        self._rates = Rates(settings.limits.rate)
        self._names = LOCAL | {settings.host.lower()} if not settings.tokens else frozenset()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        begun, status = monotonic(), 0

        async def noting(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                self._count(scope, status, monotonic() - begun)
            await send(message)

        try:
            self._check(scope)
            await self._app(scope, self._bounded(scope, receive), noting)
        except Exception as error:
            if status or not isinstance(error, PenstockError):
                self._say("failure", scope, error=f"{type(error).__name__}: {error}")
            if status:  # the answer has begun: whoever reads it must see that it does not end well
                raise
            await _answered(error)(scope, receive, noting)

    def _check(self, scope: Scope) -> None:
        self._rates.check((scope.get("client") or ("",))[0])  # first: who guesses tokens is slowed down too
        headers = Headers(scope=scope)
        if self._names and headers.get("host", "").rpartition(":")[0].lower() not in self._names:
            name = headers.get("host", "").lower()
            if name not in self._names:
                raise ServeError(f'this server is not "{name[:60]}"', hint=f"Ask {self._settings.url}", status=403)
        if self._settings.tokens and scope["path"] not in OPEN and not is_page(scope["path"]):
            self._check_token(scope["method"], headers.get("authorization", ""))

    def _check_token(self, method: str, given: str) -> None:
        kind, _, token = given.partition(" ")
        scopes = self._settings.tokens.get(hashed(token.strip())) if kind.lower() == "bearer" else None
        if scopes is None:
            raise ServeError(
                "who asks here needs a token",
                detail="The request has none, or one that is not known.",
                hint="Send the header: Authorization: Bearer TOKEN",
                status=401,
            )
        wanted = "read" if method in READING else "write"
        if wanted not in scopes:
            raise ServeError(f"this token is not good for {method}", detail=f"It may not {wanted}.", status=403)

    def _bounded(self, scope: Scope, receive: Receive) -> Receive:
        most = self._settings.limits.body_bytes
        length = Headers(scope=scope).get("content-length", "0")
        if length.isdecimal() and int(length) > most:
            raise _too_large(most)
        got, ended = 0, False

        async def bounded() -> Message:
            nonlocal got, ended
            if ended:
                return await receive()
            try:
                message = await asyncio.wait_for(receive(), SILENCE_SECONDS)
            except TimeoutError:
                raise ServeError("the body of the request did not come", status=408) from None
            got += len(message.get("body", b""))
            ended = not message.get("more_body", False)
            if got > most:
                raise _too_large(most)
            return message

        return bounded

    def _count(self, scope: Scope, status: int, seconds: float) -> None:
        route = getattr(scope.get("route"), "path", "other")
        self._requests.add(route, status, seconds)
        if self._tell is not None:
            self._say("request", scope, status=status, ms=round(seconds * 1000, 2))

    def _say(self, event: str, scope: Scope, **facts: Any) -> None:
        if self._tell is not None:
            client = (scope.get("client") or ("",))[0]
            self._tell(event, method=scope["method"], path=scope["path"], client=client, **facts)


def _too_large(most: int) -> ServeError:
    return ServeError(
        "the body of the request is too large",
        detail=f"At most {most:,} bytes are taken.",
        hint="Append in several steps.",
        status=413,
    )


def _answered(error: Exception) -> Response:
    if isinstance(error, PenstockError):
        return answer_to(error)
    hint = "The server's own lines tell more."
    return answer_to(ServeError("the server failed", detail=f"{type(error).__name__}.", hint=hint, status=500))


class Rates:
    """How often each client has asked: so many times in a second, and twice as often for a moment."""

    def __init__(self, rate: float) -> None:
        self._rate = rate
        self._left: OrderedDict[str, tuple[float, float]] = OrderedDict()

    def check(self, client: str) -> None:
        if self._rate <= 0:
            return
        now = monotonic()
        left, at = self._left.pop(client, (2 * self._rate, now))
        left = min(2 * self._rate, left + (now - at) * self._rate)
        self._left[client] = max(left - 1, 0), now
        if len(self._left) > CLIENTS:
            self._left.popitem(last=False)
        if left < 1:
            raise ServeError(
                "that was too often", detail=f"{self._rate:g} requests a second are answered to one client.", status=429
            )
