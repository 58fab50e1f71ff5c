"""`penstock explain`, `verify`: how views are computed, and whether they are right."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from penstock.cli.console import aligned, answer, busy
from penstock.cli.working import (
    STARTING,
    Conf,
    LogOption,
    Master,
    PipelineOption,
    check_there,
    interruptible,
    settings,
)

if TYPE_CHECKING:
    from penstock.app.verifying import Verdict

MOST_ROWS = 20
ViewName = Annotated[
    str | None, typer.Argument(metavar="VIEW", help="One view; all of them without it.", show_default=False)
]


def explain(view: ViewName = None, *, pipeline: PipelineOption = Path(), conf: Conf = None) -> None:
    """Show how a pipeline is computed.

    Operators in chains under one key, chains on levels; where each operator's rows come from, what its state
    keeps and what bounds that, which views it works for. Needs Spark for planning; nothing is run or changed.
    """
    from penstock.app import pipelines  # noqa: PLC0415 (PySpark takes long to import)

    check_there(pipeline)
    with interruptible(), busy(STARTING):
        text = pipelines.explain(pipeline, view, setting=pipelines.Setting(master="local[1]", conf=settings(conf)))
    with answer() as out:
        out.write(f"{text}\n")


def verify(
    view: ViewName = None,
    *,
    pipeline: PipelineOption = Path(),
    log: LogOption = None,
    master: Master = "local[*]",
    conf: Conf = None,
) -> None:
    """Compare views with Spark's batch answer.

    Spark reads the same prefix of the log as they did. Says "equal", or shows the rows that differ (- is missing
    in the view, + is too much) and exits with 1.
    """
    from penstock.app import pipelines, verifying  # noqa: PLC0415 (PySpark takes long to import)

    check_there(pipeline)
    wrong = False
    with interruptible(), answer() as out, busy(STARTING) as started:
        for verdict in verifying.verify(pipeline, view, setting=pipelines.Setting(master, settings(conf), log)):
            started()
            out.writelines(f"{line}\n" for line in verdict_lines(verdict))
            out.flush()
            wrong = wrong or bool(verdict.difference)
    if wrong:
        raise typer.Exit(1)


def verdict_lines(verdict: "Verdict") -> Iterator[str]:
    if verdict.difference is None or verdict.position is None:
        yield f"{verdict.view}: is not kept, nothing to compare"
        return
    size = f"{verdict.rows:,} row{'' if verdict.rows == 1 else 's'}"
    until = f"up to frame {verdict.position.until - 1}" if verdict.position.until else "before the first frame"
    if verdict.settled:
        until += f"; corrections came too late for {verdict.settled:,} row{'' if verdict.settled == 1 else 's'}"
    if not verdict.difference:
        yield f"{verdict.view}: equal, {size}, {until}"
        return
    missing, unexpected = verdict.difference.missing, verdict.difference.unexpected
    yield f"{verdict.view}: differs, {len(missing):,} missing and {len(unexpected):,} too many, {until}"
    rows = [("-", row) for row in missing[:MOST_ROWS]] + [("+", row) for row in unexpected[:MOST_ROWS]]
    cells = [["", *verdict.columns], *([sign, *_texts(row)] for sign, row in rows)]
    yield from (f"  {line}" for line in aligned(cells))
    if max(len(missing), len(unexpected)) > MOST_ROWS:
        yield f"  and more: the first {MOST_ROWS} of each are shown"


def _texts(row: Sequence[Any]) -> list[str]:
    return ["NULL" if value is None else str(value) for value in row]
