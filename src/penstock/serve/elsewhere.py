"""Elsewhere: how the pipeline's store stands where that is a server, while a file beside it is served.

It is asked by a thread of its own, at most every few seconds, and who wants to know gets the last answer at once. Only
where there is none that counts is the new one waited for, a second from when it was asked for: a server that does not
answer holds nobody up after that, and counts as away until it does.
"""

from collections.abc import Callable
from dataclasses import dataclass
from math import inf
from threading import Lock, Thread
from time import monotonic

from penstock.views import Position

AGAIN_SECONDS = 5.0
PATIENCE_SECONDS = 1.0
STALE_SECONDS = 15.0
"""An answer that old is asked for again; where that is waited for, for so long; one that old counts for nothing."""


@dataclass(frozen=True)
class Stand:
    """Whether the store could be asked, and where it stood; None where it holds nothing yet."""

    reachable: bool
    position: Position | None = None


AWAY = Stand(reachable=False)


class Elsewhere:
    """Can be asked by several threads. `ask` raises where the store cannot be asked."""

    def __init__(self, ask: Callable[[], Position | None]) -> None:
        self._ask = ask
        self._lock = Lock()
        self._asking: Thread | None = None
        self._until = 0.0
        self._known: tuple[float, Stand] | None = None

    def stand(self) -> Stand:
        with self._lock:
            if self._age() >= AGAIN_SECONDS and (self._asking is None or not self._asking.is_alive()):
                self._asking = Thread(target=self._look, name="penstock-elsewhere", daemon=True)
                self._until = monotonic() + PATIENCE_SECONDS
                self._asking.start()
            asking, until = self._asking, self._until
        if asking is not None and self._is_unknown():
            asking.join(max(0.0, until - monotonic()))
        known = self._known
        return AWAY if known is None or self._age() >= STALE_SECONDS else known[1]

    def _age(self) -> float:
        return inf if self._known is None else monotonic() - self._known[0]

    def _is_unknown(self) -> bool:
        """A server that was away counts as away however long ago that was: nobody waits for it again and again."""
        known = self._known
        return known is None or (known[1].reachable and self._age() >= STALE_SECONDS)

    def _look(self) -> None:
        try:
            found = Stand(reachable=True, position=self._ask())
        except Exception:  # whatever it is, nobody could be asked
            found = AWAY
        self._known = monotonic(), found
