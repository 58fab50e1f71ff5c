"""`penstock demo`: the scenes of `app.demo`, one after the other, for the eye."""

import logging
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import closing
from datetime import datetime
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer
from rich.console import Console
from rich.text import Text

from penstock.cli.console import aligned
from penstock.log import Record

if TYPE_CHECKING:
    from penstock.app.demo import Scene, Step

PAUSE_SECONDS = 1.5
STYLES = {"+": "green", "-": "red"}
HEADER = ("", "city", "orders", "spend")
OPENING = "Orders and customers go into a log. Spark reads it. The answer, the spend by city, changes."
CLOSING = """
Every answer was computed by Spark over a prefix of the log, whole. `penstock run` keeps such answers right from
the changes alone; docs/reference/commands.md says how."""

Rows = Mapping[str, tuple[str, ...]]
"""The answer by city: city, orders, spend."""


def demo() -> None:
    """A log, a stream, a table, and an answer that changes. Takes half a minute and leaves nothing behind."""
    # PySpark takes long to import, and no other command needs it.
    from penstock.app.demo import demo as scenes_in  # noqa: PLC0415

    logging.disable()  # py4j logs the traceback of a Ctrl-C
    console = Console(highlight=False, soft_wrap=True)
    console.print(OPENING)
    try:
        with tempfile.TemporaryDirectory(prefix="penstock-demo-") as folder, closing(scenes_in(Path(folder))) as scenes:
            _play(console, scenes)
    except KeyboardInterrupt:
        raise typer.Exit(130) from None
    console.print(CLOSING)


def _play(console: Console, scenes: Iterator["Scene"]) -> None:
    with console.status("starting Spark"):
        first = next(scenes)
    before: Rows = {}
    for number, scene in enumerate(chain([first], scenes), 1):
        after = {city: (city, str(orders), str(spend)) for city, orders, spend in scene.answer}
        console.print(f"\n[bold]{number}  {scene.step.title}[/bold]")
        _print_records(console, scene.step)
        _print_answer(console, before if scene.step.rows else after, after)
        console.print(f"   {_footnote(scene)}", style="dim", markup=False)
        before = after
        time.sleep(PAUSE_SECONDS if console.is_terminal else 0)


def _footnote(scene: "Scene") -> str:
    if scene.sealed:
        return "read from " + ", ".join(map(str, scene.sealed))
    seen = f"the streaming query has seen {scene.orders} orders, {scene.spend} in all"
    return f"log up to frame {scene.until_frame - 1}; {seen}"


def _print_records(console: Console, step: "Step") -> None:
    records = [(topic, _record_text(row)) for topic, rows in step.rows.items() for row in rows]
    for line in aligned(records) if records else ():
        console.print(f"   {line}", style="cyan", markup=False)
    console.print()


def _record_text(row: Mapping[str, Any] | Record) -> str:
    value = row.value if isinstance(row, Record) else row
    assert isinstance(value, Mapping)
    fields = [
        f"{name}={each:%H:%M}" if isinstance(each, datetime) else f"{name}={each}" for name, each in value.items()
    ]
    return " ".join(fields) + (" deleted" if isinstance(row, Record) and row.deleted else "")


def _print_answer(console: Console, before: Rows, after: Rows) -> None:
    lines = [HEADER, *changes(before, after)]
    for line in aligned(lines, right=(2, 3)):
        console.print(Text(f"   {line}", style=STYLES.get(line[:1], "")))


def changes(before: Rows, after: Rows) -> Iterator[tuple[str, ...]]:
    """The rows of both answers by city, each with a sign: it left (-), it appeared (+), it stayed."""
    for city in sorted({*before, *after}):
        if before.get(city) == after.get(city):
            yield " ", *after[city]
            continue
        if city in before:
            yield "-", *before[city]
        if city in after:
            yield "+", *after[city]
