"""Stopping: the first Ctrl-C or SIGTERM lets a command end what it has begun; the second, or some seconds, do not."""

import os
import signal
from collections.abc import Callable
from types import FrameType, TracebackType
from typing import Self

import typer

GRACE_SECONDS = 5.0
STANDARD_ERROR = 2


def _said() -> None:
    os.write(STANDARD_ERROR, b"\nstopping\n" if os.isatty(STANDARD_ERROR) else b"stopping\n")


class Stopping:
    """Use it in a `with`, which ends the command with 130 if it was stopped; called, it says whether to stop. Whoever
    has pressed the keys is told that they were noticed.
    """

    def __init__(self, tell: Callable[[], object] = _said) -> None:
        self._tell = tell
        self._stopped = False

    def __call__(self) -> bool:
        return self._stopped

    def __enter__(self) -> Self:
        self._before = {number: signal.signal(number, self._stop) for number in (signal.SIGINT, signal.SIGTERM)}
        self._before[signal.SIGALRM] = signal.signal(signal.SIGALRM, self._stop)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        signal.setitimer(signal.ITIMER_REAL, 0)
        for number, handler in self._before.items():
            signal.signal(number, handler)
        if self._stopped and (kind is None or issubclass(kind, KeyboardInterrupt)):
            raise typer.Exit(130) from None

    def _stop(self, _number: int, _frame: FrameType | None) -> None:
        if self._stopped:
            raise KeyboardInterrupt
        self._stopped = True
        signal.setitimer(signal.ITIMER_REAL, GRACE_SECONDS)
        self._tell()
