"""`penstock serve`: a pipeline's views over HTTP. Read from the store and the log, without Spark."""

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from enum import StrEnum
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from penstock.app import place_of
from penstock.cli.console import say
from penstock.cli.stopping import Stopping
from penstock.cli.working import LogOption, PipelinePath, check_there
from penstock.errors import CommandError, PenstockError
from penstock.serve.settings import DEFAULT, Limits, Settings, address_of, tokens_in
from penstock.serve.telling import Tell, parts_of, teller

if TYPE_CHECKING:
    from penstock.app.pipelines import Opened
    from penstock.log.protocol import OrderedLog

POLL_SECONDS = 0.1
NEEDED = ("fastapi", "uvicorn", "prometheus_client")


class LogFormat(StrEnum):
    TEXT = "text"
    JSON = "json"


Bind = Annotated[str, typer.Option("--bind", metavar="HOST:PORT", help="Where to listen; port 0 is any that is free.")]
Tokens = Annotated[
    Path | None,
    typer.Option(
        "--tokens",
        envvar="PENSTOCK_TOKENS",
        metavar="FILE",
        help="Who may ask: lines such as read,write SECRET. Needed where others than this machine can.",
        show_default=False,
    ),
]
Logging = Annotated[
    LogFormat,
    typer.Option("--log-format", help="How it is told what happens: json is an object a line."),
]
Rate = Annotated[float, typer.Option("--rate", min=0, help="Requests of one client in a second; 0: any.")]
Timeout = Annotated[float, typer.Option("--timeout", min=0.001, help="Seconds for an answer, at most.")]
MaxBody = Annotated[int, typer.Option("--max-body", min=1, metavar="BYTES", help="Of a request.")]
MaxRows = Annotated[int, typer.Option("--max-rows", min=1, help="In one answer.")]
MaxFollowers = Annotated[int, typer.Option("--max-followers", min=0, help="Who follow changes at once.")]
LogRequests = Annotated[bool, typer.Option("--log-requests", help="A line for every request.")]


def serve(  # noqa: PLR0913 (the options of a command)
    pipeline: PipelinePath = Path(),
    *,
    bind: Bind = DEFAULT,
    tokens: Tokens = None,
    log: LogOption = None,
    form: Logging = LogFormat.TEXT,
    log_requests: LogRequests = False,
    rate: Rate = Limits.rate,
    timeout: Timeout = Limits.seconds,
    max_body: MaxBody = Limits.body_bytes,
    max_rows: MaxRows = Limits.rows,
    max_followers: MaxFollowers = Limits.followers,
) -> None:
    """Serve the views of a pipeline over HTTP, until Ctrl-C.

    Rows by key, condition, order and page, in JSON, CSV and Arrow; changes as they come, as server-sent events;
    records can be appended. /openapi.json describes it. A run of the pipeline keeps the views right meanwhile, or
    serves them itself: penstock run --serve.
    """
    limits = Limits(body_bytes=max_body, rate=rate, seconds=timeout, rows=max_rows, followers=max_followers)
    with failures_told(form):
        _serve(pipeline, settings_of(bind, tokens, limits), log, form, every=log_requests)


def _serve(pipeline: Path, settings: Settings, log: str | None, form: LogFormat, *, every: bool) -> None:
    check_extra()
    from penstock.app.serving import served_pipeline  # noqa: PLC0415 (an extra)

    check_there(pipeline)
    place, tell = place_of(pipeline), teller(form.value)
    stopping = Stopping(lambda: tell("stopping")) if form == LogFormat.JSON else Stopping()
    told = chosen(tell, every=every)
    with stopping as stop, place.hinted(), served_pipeline(place, settings, log=log, tell=told) as listening:
        announce(listening, form, tell)
        while not stop():
            time.sleep(POLL_SECONDS)


@contextmanager
def failures_told(form: LogFormat) -> Iterator[None]:
    """Inside, an error that ends the command is a line like the others, where these are for programs."""
    try:
        yield
    except PenstockError as error:
        if form == LogFormat.TEXT or "--debug" in sys.argv:  # which wants to see where it comes from
            raise
        teller("json")("failed", **parts_of(error))
        raise typer.Exit(1) from None


def announce(listening: Settings, form: LogFormat, tell: Tell) -> None:
    if form == LogFormat.JSON:
        tell("serving", url=listening.url)
    else:
        say(f"serving at {listening.url}")


def chosen(tell: Tell, *, every: bool) -> Tell:
    """What is told of: failures, and requests only if all should be."""

    def told(event: str, **facts: object) -> None:
        if every or event != "request":
            tell(event, **facts)

    return told


def settings_of(bind: str, tokens: Path | None, limits: Limits) -> Settings:
    host, port = address_of(bind)
    return Settings(host, port, {} if tokens is None else tokens_in(tokens), limits)


def check_extra() -> None:
    missing = [name for name in NEEDED if find_spec(name) is None]
    if missing:
        raise CommandError(
            "what serves views over HTTP is not installed",
            detail=f"Missing: {', '.join(missing)}.",
            hint="pip install 'penstock[serve]'",
        )


Beside = Callable[["Opened", "OrderedLog"], AbstractContextManager[object]]


def beside_run(settings: Settings, form: LogFormat) -> Beside:
    """What serves the views beside a run."""
    from penstock.app.serving import served_beside  # noqa: PLC0415 (an extra)

    tell = teller(form.value)

    @contextmanager
    def beside(at: "Opened", log: "OrderedLog") -> Iterator[None]:
        told = chosen(tell, every=False)
        with served_beside(at.place, at.pipeline, log, settings, tell=told) as listening:
            announce(listening, form, tell)
            yield

    return beside
