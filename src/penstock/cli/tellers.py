"""Telling of a run: what is said on standard error while a pipeline works, for people or for programs."""

import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import fields
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

from penstock.cli.console import say, show
from penstock.cli.serve import LogFormat
from penstock.errors import PenstockError
from penstock.model import duration_text
from penstock.serve.telling import parts_of, teller

if TYPE_CHECKING:
    from penstock.app.progress import Progress

UNITS = (timedelta(days=1), timedelta(hours=1), timedelta(minutes=1))
END = datetime(9999, 12, 31, tzinfo=UTC)
"""Where a watermark stands when no more events come."""


class Teller:
    """One line that changes on a terminal, lines elsewhere."""

    def __init__(self, started: Callable[[], None]) -> None:
        self._started = started
        self._live = sys.stderr.isatty()
        self._open = False
        self._told = False

    def ready(self, lineage: int, log: object) -> None:
        self.end()
        say(f"running; lineage {lineage}, log {log}")

    def progress(self, done: "Progress") -> None:
        self._told = True
        text = progress_text(done)
        if not self._live:
            say(text)
            return
        width = os.get_terminal_size(sys.stderr.fileno()).columns  # a line that wraps cannot be taken back
        sys.stderr.write(f"\r\x1b[K{text[: width - 1] if width else text}")
        sys.stderr.flush()
        self._open = True

    def trouble(self, error: PenstockError) -> None:
        self.end()
        show(error)
        say("The run goes on; this is tried again, and nothing is lost meanwhile.")

    def wait(self, text: str) -> None:
        self.end()
        say(text)

    def warning(self, error: PenstockError) -> None:
        self.end()
        say(str(error))

    def over(self) -> None:
        if not self._told:
            say("nothing new in the log")

    def end(self) -> None:
        """What comes next begins on a line of its own."""
        self._started()
        if self._open:
            say("")
        self._open = False


def progress_text(done: "Progress") -> str:
    rate = f", {max(1, round(done.records / done.seconds)):,}/s" if done.seconds and done.records else ""
    read = f"{_count(done.records, 'record')} in {_count(done.frames, 'frame')}{rate}"
    changed = ", ".join(f"{view} {count:,}" for view, count in sorted(done.changes.items()))
    letters = f"; dead letters: {done.letters:,}" if done.letters else ""
    late = "; late: " + ", ".join(f"{view} {count:,}" for view, count in sorted(done.late.items())) if done.late else ""
    told = f"batch {done.batch}: {read}; changes: {changed or 'none'}{late}{letters}; lag: {_count(done.lag, 'frame')}"
    open_ = ", ".join(f"{view} {count:,}" for view, count in sorted(done.open.items()))
    times, of_views = (
        ", ".join(f"{name} {_watermark(time)}" for name, time in sorted(some.items()))
        for some in (done.watermarks, done.view_watermarks)
    )
    alerts = ", ".join(f"{view} {share:.3g} %" for view, share in sorted(done.alerts.items()))
    told += f"; ALERT, too many late: {alerts}" if alerts else ""
    told += f"; watermark: {times}" if times else ""
    told += f"; watermark of views: {of_views}" if of_views else ""
    return told + (f"; open windows: {open_}" if open_ else "")


def _watermark(time: datetime) -> str:
    """12:00 (15 minutes ago); what is ahead of the clock has no lag."""
    lag = datetime.now(UTC) - time
    shown = "the end" if time >= END else f"{time.replace(tzinfo=None):%Y-%m-%d %H:%M:%S}"
    return shown if lag < timedelta(0) else f"{shown} ({duration_text(_rounded(lag))} ago)"


def _rounded(lag: timedelta) -> timedelta:
    """To whole units of what is large in it."""
    unit = next((each for each in UNITS if lag >= each), timedelta(seconds=1))
    return lag // unit * unit


def _count(number: int, what: str) -> str:
    return f"{number:,} {what}{'' if number == 1 else 's'}"


class JsonTeller(Teller):
    """Lines for programs."""

    def __init__(self, started: Callable[[], None]) -> None:
        super().__init__(started)
        self._tell = teller("json")

    def ready(self, lineage: int, log: object) -> None:
        self.end()
        self._tell("running", lineage=lineage, log=str(log))

    def progress(self, done: "Progress") -> None:
        self._told = True
        self._tell("progress", **{field.name: getattr(done, field.name) for field in fields(done)})

    def trouble(self, error: PenstockError) -> None:
        self._tell("trouble", **parts_of(error))

    def wait(self, text: str) -> None:
        self._tell("waiting", text=text)

    def warning(self, error: PenstockError) -> None:
        self._tell("warning", **parts_of(error))

    def over(self) -> None:
        if not self._told:
            self._tell("nothing new")


@contextmanager
def told_of(started: Callable[[], None], form: LogFormat) -> Iterator[Teller]:
    """Inside, the run can be told of."""
    made = (JsonTeller if form == LogFormat.JSON else Teller)(started)
    try:
        yield made
    finally:
        made.end()
