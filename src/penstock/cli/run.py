"""`penstock init`, `run`, `reset`: a pipeline is made, works, begins anew."""

import shlex
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import Annotated

import typer

from penstock.cli.console import answer, busy, say
from penstock.cli.serve import (
    Beside,
    Bind,
    LogFormat,
    Logging,
    MaxBody,
    MaxFollowers,
    MaxRows,
    Rate,
    Timeout,
    Tokens,
    beside_run,
    check_extra,
    failures_told,
    settings_of,
)
from penstock.cli.tellers import told_of
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
from penstock.serve.settings import DEFAULT, Limits, Settings

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
    rate: Rate = Limits.rate,
    timeout: Timeout = Limits.seconds,
    max_body: MaxBody = Limits.body_bytes,
    max_rows: MaxRows = Limits.rows,
    max_followers: MaxFollowers = Limits.followers,
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
    with failures_told(form), interruptible():
        check_there(pipeline)
        limits = Limits(body_bytes=max_body, rate=rate, seconds=timeout, rows=max_rows, followers=max_followers)
        beside = _serving(settings_of(bind, tokens, limits), form) if serve else _nothing
        with busy(STARTING) as started, told_of(started, form) as told:
            watch = pipelines.Watch(
                told.ready, told.progress, on_trouble=told.trouble, on_wait=told.wait, on_warning=told.warning
            )
            setting = pipelines.Setting(master, settings(conf), log)
            pipelines.run_pipeline(pipeline, once=once, close=close, setting=setting, watch=watch, beside=beside)
            if once:
                told.over()


def _nothing(_at: object, _log: object) -> AbstractContextManager[object]:
    return nullcontext()


def _serving(at: Settings, form: LogFormat) -> Beside:
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
