"""Elsewhere: how the pipeline's store stands where that is a server, while a file beside it is served.

It is asked by a thread of its own, at most every few seconds: a server that does not answer holds nobody up, and counts
as away until it does.
"""

from collections.abc import Callable
from dataclasses import dataclass
from threading import Lock, Thread
from time import monotonic

from penstock.views import Position

AGAIN_SECONDS = 5.0
PATIENCE_SECONDS = 1.0
STALE_SECONDS = 15.0
"""An answer that old is asked for again, and waited for so long; one that is older still counts for nothing."""


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
        self._known = (-AGAIN_SECONDS, AWAY)

    def stand(self) -> Stand:
        with self._lock:
            is_old = monotonic() - self._known[0] >= AGAIN_SECONDS
            if is_old and (self._asking is None or not self._asking.is_alive()):
                self._asking = Thread(target=self._look, name="penstock-elsewhere", daemon=True)
                self._asking.start()
            asking = self._asking
        if is_old and asking is not None:
            asking.join(PATIENCE_SECONDS)
        at, known = self._known
        return known if monotonic() - at < STALE_SECONDS else AWAY

    def _look(self) -> None:
        try:
            found = Stand(reachable=True, position=self._ask())
        except Exception:  # whatever it is, nobody could be asked
            found = AWAY
        self._known = monotonic(), found
