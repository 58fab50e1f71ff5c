"""Patience: uvicorn's own parser of HTTP takes a head of any length, and waits for it for ever; here it does neither.

Who connects is not known before the head is there: without bounds anybody could fill the memory, or take all sockets.
"""

import asyncio
from typing import Any

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

HEAD_BYTES = 64 << 10
"""The largest request line with all headers, and one reading of the socket more."""
HEAD_SECONDS = 30.0


class Patient(HttpToolsProtocol):
    """One connection. The time for a head counts from the connection, or from the first byte of a later request; how
    long a connection may rest between two, uvicorn says.
    """

    def __init__(self, *given: Any, **named: Any) -> None:
        super().__init__(*given, **named)
        self._requests = 0
        self._head: int | None = None
        self._late: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._wait()

    def connection_lost(self, exc: Exception | None) -> None:
        self._end_waiting()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        before = self._requests
        super().data_received(data)
        if self._head is not None and before == self._requests:  # what came with its first byte may be another's end
            self._head += len(data)
            if self._head > HEAD_BYTES and not self.transport.is_closing():
                self.send_400_response("The head of the request is too large.")

    def on_message_begin(self) -> None:
        super().on_message_begin()
        self._requests += 1
        self._head = 0
        if self._late is None:
            self._wait()

    def on_headers_complete(self) -> None:
        self._end_waiting()
        self._head = None
        super().on_headers_complete()

    def _wait(self) -> None:
        self._late = self.loop.call_later(HEAD_SECONDS, self.transport.close)

    def _end_waiting(self) -> None:
        if self._late is not None:
            self._late.cancel()
        self._late = None
