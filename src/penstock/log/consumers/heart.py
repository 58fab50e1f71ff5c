"""A heart: tells the others that a member lives, while its owner is busy with what it has read."""

import time
from datetime import timedelta
from threading import Event, Thread
from typing import Protocol

from penstock.errors import LogError
from penstock.log.consumers.terms import Terms

BEATS = 3
"""How many in a session."""


class Living(Protocol):
    terms: Terms
    polled_at: float

    @property
    def is_over(self) -> bool: ...
    def beat(self) -> bool: ...


class Heart:
    """Beats until it is stopped, or its member is over; not while that has not polled for longer than its patience."""

    def __init__(self, member: Living) -> None:
        self._member = member
        self._stop = Event()
        self._thread = Thread(target=self._run, name="penstock-heart", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        self._stop.set()
        self._thread.join()

    def _run(self) -> None:
        second = timedelta(seconds=1)
        while not self._stop.wait(self._member.terms.session / second / BEATS):
            if self._member.is_over:
                return
            if time.monotonic() - self._member.polled_at < self._member.terms.patience / second:
                self._beat()

    def _beat(self) -> None:
        try:
            self._member.beat()
        except LogError:  # the next beat tries again; meanwhile the session may end, which poll then notices
            return
