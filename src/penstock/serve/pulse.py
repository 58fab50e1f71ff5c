"""The pulse: tells those who wait that the log or the store has moved.

One look every few milliseconds for all of them, and none while nobody waits.
"""

import asyncio
from collections.abc import Callable
from contextlib import suppress
from time import monotonic

from penstock.errors import ServeError
from penstock.serve.positions import Asked
from penstock.serve.source import Served

EVERY_SECONDS = 0.01


class Pulse:
    """Belongs to one event loop; `run` is a task of it."""

    def __init__(self, served: Served) -> None:
        self.stopping = False
        self._served = served
        self._waiting: set[asyncio.Future[None]] = set()
        self._wanted = asyncio.Event()

    async def run(self) -> None:
        seen: object = None
        while not self.stopping:
            await self._wanted.wait()
            with suppress(Exception):  # who waits asks for itself, and is told
                seen, before = (self._served.log.mark().next_frame, self._served.position()), seen
                if seen != before:
                    self.beat()
            if not self._waiting:
                self._wanted.clear()
            await asyncio.sleep(EVERY_SECONDS)

    def beat(self) -> None:
        """Everybody looks again."""
        for each in self._waiting:
            if not each.done():
                each.set_result(None)

    def stop(self) -> None:
        self.stopping = True
        self._wanted.set()
        self.beat()

    async def next(self, seconds: float, since: Callable[[], bool] = lambda: False) -> None:
        """Until something has moved, or so many seconds; at once if `since` says that it has already."""
        if self.stopping:
            return
        mine: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.add(mine)
        self._wanted.set()
        try:
            if not since():
                await asyncio.wait([mine], timeout=max(seconds, 0))
        finally:
            self._waiting.discard(mine)

    async def reached(self, wanted: Asked, seconds: float) -> None:
        """Until the views have come to a position; raises if they have not after so many seconds."""
        self._served.check_exists(wanted)
        until = monotonic() + seconds
        while not self._served.has_reached(wanted):
            left = until - monotonic()
            if left <= 0 or self.stopping:
                raise self._too_late(wanted, seconds)
            await self.next(min(left, 0.5), since=lambda: self._served.has_reached(wanted))

    def _too_late(self, wanted: Asked, seconds: float) -> ServeError:
        position = self._served.position()
        stands = "The store is empty." if position is None else f"They have read up to frame {position.until}"
        return ServeError(
            f"the views have not come to position {wanted} within {seconds:g} seconds",
            detail=stands if position is None else f"{stands}, and stand at {position.lineage}.{position.frame}.",
            hint="Is the pipeline running? Ask again, or give a larger `timeout`.",
            status=504,
        )
