"""`penstock demo`: the steps of `app.demo` and what follows from them, for the eye."""

import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from itertools import zip_longest
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console
from rich.text import Text

from penstock.cli.console import aligned, busy
from penstock.cli.plans import verdict_lines
from penstock.cli.serve import Bind, check_extra, settings_of
from penstock.cli.stopping import Stopping
from penstock.cli.working import STARTING, interruptible
from penstock.log import Record
from penstock.serve.settings import DEFAULT, Limits, Settings

if TYPE_CHECKING:
    from penstock.app.demo import Play, Step, Table

PAUSE_SECONDS = 1.5
MARGIN = " " * 3
STYLES = {"+": "green", "-": "red"}
OPENING = "A shop's pipeline: two tables come in, three views are kept right."
JUDGED = "penstock verify: the same queries by Spark's batch engine, over the same log"
CLOSING = "\nThe views were kept right from the changes alone. To make a pipeline of your own: penstock init shop"
LOOK = (
    f"It is closed again. To have it stay open, with its dashboard at http://{DEFAULT}: "
    "make demo KEEP=1, or penstock demo --keep"
)


def demo(
    *,
    keep: Annotated[bool, typer.Option("--keep", help="Go on, and serve the dashboard, until Ctrl-C.")] = False,
    bind: Bind = DEFAULT,
) -> None:
    """Show a shop's pipeline at work.

    Orders arrive, customers move, an order is taken back, and three views change before your eyes. It is the
    real thing, in a temporary folder of which nothing is left. Takes about half a minute, most of it until
    Spark has started. With --keep the shop stays open after that: orders go on coming, and a dashboard shows it.
    """
    settings = _settings(bind) if keep else None
    from penstock.app import demo as shop  # noqa: PLC0415 (PySpark takes long to import)

    console = Console(highlight=False, soft_wrap=True)
    console.print(f"{OPENING}\n")
    for line in shop.PIPELINE.splitlines():
        console.print(f"{MARGIN}{line}".rstrip(), style="cyan", markup=False)
    with (
        interruptible(),
        tempfile.TemporaryDirectory(prefix="penstock-demo-") as folder,
        busy(STARTING) as started,
        shop.demo(Path(folder)) as play,
    ):
        started()
        before: tuple[Table, ...] = ()
        for number, step in enumerate(shop.STEPS, 1):
            before = _shown(console, play, step, number=number, before=before)
            time.sleep(PAUSE_SECONDS if console.is_terminal else 0)
        right = _judged(console, play)
        if settings is not None:
            _kept(console, play, settings)
    if not right:
        raise typer.Exit(1)
    if settings is None:
        console.print(f"{CLOSING}\n{LOOK}")


def _settings(bind: str) -> Settings:
    check_extra()
    return settings_of(bind, None, Limits())


def _kept(console: Console, play: "Play", settings: Settings) -> None:
    """The shop stays open, and is served, until Ctrl-C: that is how this ends, and no failure."""
    from penstock.app.serving import served_beside  # noqa: PLC0415 (an extra)

    with (
        suppress(typer.Exit),
        Stopping() as stop,
        served_beside(play.shop.place, play.shop.pipeline, play.log, settings) as listening,
    ):
        console.print(f"\nThe shop stays open. Ctrl-C closes it. The dashboard: {listening.url}", style="bold")
        play.go_on(stop)


def _shown(
    console: Console, play: "Play", step: "Step", *, number: int, before: "tuple[Table, ...]"
) -> "tuple[Table, ...]":
    """Prints a step and what it does to the views; what they hold then."""
    console.print(f"\n{number}  {step.title}\n", style="bold", markup=False)
    for line in aligned(list(_records(step))):
        console.print(f"{MARGIN}{line}", style="cyan", markup=False)
    console.print()
    with busy("the views follow"):
        after = play.views_after(step)
    for row in _side_by_side([_block(*tables) for tables in zip_longest(before, after)]):
        console.print(row)
    return after


def _judged(console: Console, play: "Play") -> bool:
    """Prints the verdicts; whether all are good."""
    console.print(f"\n{JUDGED}\n", style="bold")
    right = True
    with busy("comparing") as done:
        for verdict in play.verdicts():
            done()
            right = right and not verdict.difference
            for line in verdict_lines(verdict):
                console.print(f"{MARGIN}{line}", style="red" if verdict.difference else "green", markup=False)
    return right


def _records(step: "Step") -> Iterator[tuple[str, str]]:
    """The topic and the text of each record."""
    for topic, records in step.records.items():
        for each in records:
            row = each.value if isinstance(each, Record) else each
            assert isinstance(row, Mapping)
            gone = " deleted" if isinstance(each, Record) and each.deleted else ""
            yield topic, " ".join(f"{name}={value}" for name, value in row.items()) + gone


def _block(before: "Table | None", after: "Table") -> list[Text]:
    """A view's name, and under it its rows as lines of one width."""
    rows = [(" ", *after.columns), *changes(before.rows if before else (), after.rows, key=after.key)]
    right = [at for at, name in enumerate(after.columns, 1) if any(not isinstance(r[name], str) for r in after.rows)]
    lines = list(aligned(rows, right=right))
    width = max(map(len, [*lines, after.view]))
    styled = [Text(line.ljust(width), style=STYLES.get(row[0], "")) for line, row in zip(lines, rows, strict=True)]
    return [Text(after.view.ljust(width), style="bold"), *styled]


def changes(
    before: Sequence[Mapping[str, Any]], after: Sequence[Mapping[str, Any]], *, key: Sequence[str]
) -> Iterator[tuple[str, ...]]:
    """The rows of both by key, each with a sign: it left (-), it came (+), it stayed."""
    old, new = (Counter(tuple(row.items()) for row in rows) for rows in (before, after))
    signed = [
        *(("-", row) for row in old - new),
        *(("+", row) for row in new - old),
        *((" ", row) for row in old & new),
    ]

    def rank(each: tuple[str, tuple[tuple[str, Any], ...]]) -> tuple[list[str], int]:
        sign, row = each
        return [str(value) for name, value in row if name in key], "- +".index(sign)

    for sign, row in sorted(signed, key=rank):
        yield sign, *(str(value) for _, value in row)


def _side_by_side(blocks: Sequence[Sequence[Text]]) -> Iterator[Text]:
    for row in zip_longest(*blocks):
        cells = [cell or Text(" " * len(block[0])) for cell, block in zip(row, blocks, strict=True)]
        line = Text(MARGIN).join([Text(), *cells])
        line.rstrip()
        yield line
