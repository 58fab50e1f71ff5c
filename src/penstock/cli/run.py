"""`penstock init`, `run`, `reset`: a pipeline is made, works, begins anew."""

import os
import shlex
import sys
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import fields
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from penstock.cli.console import answer, busy, say, show
from penstock.cli.serve import (
    Beside,
    Bind,
    LogFormat,
    Logging,
    Tokens,
    beside_run,
    check_extra,
    settings_of,
)
from penstock.cli.working import (
    STARTING,
    Conf,
    LogOption,
    Master,
    PipelinePath,
    check_there,
    interruptible,
    settings,
)
from penstock.errors import PenstockError
from penstock.model import duration_text
from penstock.serve.settings import DEFAULT, Limits, Settings
from penstock.serve.telling import teller

if TYPE_CHECKING:
    from penstock.app.progress import Progress

UNITS = (timedelta(days=1), timedelta(hours=1), timedelta(minutes=1))
END = datetime(9999, 12, 31, tzinfo=UTC)
"""Where a watermark stands when no more events come."""
NEXT = """\
{folder}/pipeline.sql declares a stream, a table and a view. Append records, run it, look at the view:

  cd {folder}
  echo '{{"id": 1, "name": "ann", "city": "Rome"}}' | penstock log append customers
  echo '{{"id": 1, "customer": 1, "amount": "12.50"}}' | penstock log append orders
  penstock run --once
  penstock view spend_by_city

Without --once it runs until Ctrl-C and keeps the view right as records come.
"""


def init(
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="The folder of the new pipeline.", show_default=False)],
    *,
    log: Annotated[
        Path | None,
        typer.Option("--log", envvar="PENSTOCK_LOG", help="A log to read, instead of a new one.", show_default=False),
    ] = None,
) -> None:
    """Make a small pipeline that works, with a log."""
    from penstock.app.beginning import begin  # noqa: PLC0415 (PySpark takes long to import)

    begin(folder, log)
    with answer() as out:
        out.write(NEXT.format(folder=shlex.quote(str(folder))))


def run(  # noqa: PLR0913 (the options of a command)
    pipeline: PipelinePath = Path(),
    *,
    once: Annotated[bool, typer.Option("--once", help="Read what is in the log now, then end.")] = False,
    close: Annotated[
        bool, typer.Option("--close", help="With --once: close all windows; what comes later is late.")
    ] = False,
    serve: Annotated[bool, typer.Option("--serve", help="Serve the views over HTTP meanwhile.")] = False,
    bind: Bind = DEFAULT,
    tokens: Tokens = None,
    form: Logging = LogFormat.TEXT,
    log: LogOption = None,
    master: Master = "local[*]",
    conf: Conf = None,
) -> None:
    """Run a pipeline: keep its views right, until Ctrl-C.

    Progress goes to standard error, at most once a second: the last batch, what was read and how quickly, how
    many changes each view got, how many frames are left. A run that is stopped, or dies, goes on where it was
    when it is started again. Of two runs of one pipeline the newer goes on and the older ends.
    """
    from penstock.app import pipelines  # noqa: PLC0415 (PySpark takes long to import)

    if close and not once:
        raise typer.BadParameter("goes with --once: a run that goes on has nothing to close", param_hint="--close")
    check_there(pipeline)
    beside, count = _serving(settings_of(bind, tokens, Limits()), form) if serve else (_nothing, lambda _: None)
    with interruptible(), busy(STARTING) as started, _told(started, form) as told:

        def progress(done: "Progress") -> None:
            count(done)
            told.progress(done)

        watch = pipelines.Watch(on_ready=told.ready, on_progress=progress, on_trouble=told.trouble, on_wait=told.wait)
        setting = pipelines.Setting(master, settings(conf), log)
        pipelines.run_pipeline(pipeline, once=once, close=close, setting=setting, watch=watch, beside=beside)
        if once:
            told.over()


def _nothing(_at: object, _log: object) -> AbstractContextManager[object]:
    return nullcontext()


def _serving(at: Settings, form: LogFormat) -> "tuple[Beside, Callable[[Progress], None]]":
    check_extra()
    return beside_run(at, form)


def reset(
    pipeline: PipelinePath = Path(), *, log: LogOption = None, master: Master = "local[*]", conf: Conf = None
) -> None:
    """Let the next run compute all views anew.

    It reads the log from the first record on. Needed when the pipeline was changed. Until the new answers have
    caught up, readers see the old ones.
    """
    from penstock.app import pipelines  # noqa: PLC0415 (PySpark takes long to import)

    check_there(pipeline)
    with interruptible(), busy(STARTING):
        number = pipelines.reset(pipeline, setting=pipelines.Setting(master, settings(conf), log))
    say(f"Lineage {number} is begun. The next run computes it from the log: penstock run {shlex.quote(str(pipeline))}")
    say("Readers see the answers of before until it has caught up.")


class _Teller:
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
    times = ", ".join(f"{stream} {_watermark(time)}" for stream, time in sorted(done.watermarks.items()))
    alerts = ", ".join(f"{view} {share:.3g} %" for view, share in sorted(done.alerts.items()))
    told += f"; ALERT, too many late: {alerts}" if alerts else ""
    return told + (f"; watermark: {times}" if times else "") + (f"; open windows: {open_}" if open_ else "")


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


class _JsonTeller(_Teller):
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
        self._tell("trouble", primary=error.primary, detail=error.detail, hint=error.hint)

    def wait(self, text: str) -> None:
        self._tell("waiting", text=text)

    def over(self) -> None:
        if not self._told:
            self._tell("nothing new")


@contextmanager
def _told(started: Callable[[], None], form: LogFormat) -> Iterator[_Teller]:
    made = (_JsonTeller if form == LogFormat.JSON else _Teller)(started)
    try:
        yield made
    finally:
        made.end()
