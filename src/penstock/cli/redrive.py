"""`penstock redrive`: dead letters of webhooks and e-mails are sent again. Without Spark."""

from pathlib import Path
from typing import Annotated

import typer

from penstock.app import place_of
from penstock.cli.console import say
from penstock.cli.working import LogOption, PipelineOption, check_there
from penstock.log.opening import opened_log
from penstock.model import load_pipeline


def redrive(
    view: Annotated[str, typer.Argument(metavar="VIEW", help="The view whose sink gave them up.", show_default=False)],
    *,
    pipeline: PipelineOption = Path(),
    log: LogOption = None,
    limit: Annotated[int | None, typer.Option(help="At most so many of each kind.", min=1, show_default=False)] = None,
) -> None:
    """Send the dead letters of a view's webhook and e-mails again.

    The oldest first, each under the id that it had, signed anew. One that is not taken ends it; what was taken is
    not sent again by the next time. Works beside a run, and without one.
    """
    from penstock.app.sinks import redriven  # noqa: PLC0415 (PySpark takes long to import)

    check_there(pipeline)
    place, found = place_of(pipeline), load_pipeline(pipeline)
    with opened_log(place.log(found, log), place.opening(found), create=False) as source:
        sent = redriven(place, found, source, view, limit=limit)
    for kind, count in sent.items():
        say(f"{kind}: {count:,} dead {'letter was' if count == 1 else 'letters were'} sent again")
    if not sent:
        say(f'view "{view}" has no dead letters')
