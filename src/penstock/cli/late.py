"""`penstock late`: which windows late rows missed. Read from the log, without Spark."""

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Annotated

import typer

from penstock.app import place_of
from penstock.cli.console import aligned, answer, say
from penstock.cli.read import TABLE_ROWS
from penstock.cli.working import LogOption, PipelineOption, check_there
from penstock.errors import ViewError
from penstock.log.opening import opened_log
from penstock.model import load_pipeline
from penstock.views import current
from penstock.views.missed import Window, missed_windows

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def late(
    view: Annotated[
        str | None, typer.Argument(metavar="VIEW", help="One view; all of them without it.", show_default=False)
    ] = None,
    *,
    pipeline: PipelineOption = Path(),
    limit: Annotated[int, typer.Option(help="At most so many windows.", min=1)] = TABLE_ROWS,
    log: LogOption = None,
) -> None:
    """Show how many late rows each window missed, the newest windows first.

    Also of views that drop such rows. A row that missed several windows counts for each; one that missed none,
    for only its own time was over, is counted beside them. Read from the log, as far back as that goes.
    """
    check_there(pipeline)
    place, found = place_of(pipeline), load_pipeline(pipeline)
    wanted = None if view is None else found.view(view).name
    with place.hinted(), answer() as out:
        with opened_log(place.log(found, log), place.opening(found, say=say), create=False) as source:
            if (lineage := current(source, found.name)) is None:
                raise ViewError(f'pipeline "{found.name}" has not run yet', hint="Run it first: penstock run PIPELINE")
            counts = missed_windows(source, lineage)
        windows = sorted((each for each in counts if wanted in (None, each.view)), key=_newest_first)
        rows = [[each.view, _time(each.start), _time(each.end), f"{counts[each]:,}"] for each in windows[:limit]]
        header = ["view", "window_start", "window_end", "rows"]
        out.writelines(f"{line}\n" for line in aligned([header, *rows], right=(3,)))
        if len(windows) > limit:
            say(f"The first {limit} of {len(windows):,} windows; --limit shows more.")


def _newest_first(window: Window) -> tuple[str, float, float]:
    """Rows without a window come after those of all windows."""
    start, end = (float("inf") if time is None else -time for time in (window.start, window.end))
    return window.view, end, start


def _time(micros: int | None) -> str:
    if micros is None:
        return "NULL"
    try:
        return (EPOCH + timedelta(microseconds=micros)).isoformat().replace("+00:00", "Z")
    except OverflowError:  # a time that Python does not have
        return f"{micros} us"
