"""The terminal: answers go to standard output, everything said about the work to standard error.

Colours and moving bars are for terminals only; into a pipe or a file goes plain text, never cut off at a
width.
"""

import os
import select
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import TextIO

import typer
from rich.cells import cell_len
from rich.console import Console
from rich.progress import BarColumn, Progress, ProgressColumn, Task, TextColumn
from rich.text import Text

from penstock.errors import PenstockError


@contextmanager
def answer() -> Iterator[TextIO]:
    """Standard output. Whoever reads it may leave early (`| head`): then the command ends quietly."""
    try:
        yield sys.stdout
        sys.stdout.flush()
    except BrokenPipeError:
        # Python flushes once more at its exit, and would complain.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        raise typer.Exit(0) from None


def say(text: str) -> None:
    """One line to standard error."""
    print(text, file=sys.stderr, flush=True)


def show(error: PenstockError) -> None:
    """The three parts of an error."""
    console = Console(stderr=True, soft_wrap=True, highlight=False)
    text = Text(str(error))
    text.stylize("bold red", 0, len(error.primary))
    console.print(text)


def aligned(rows: Sequence[Sequence[str]], *, right: Sequence[int] = ()) -> Iterator[str]:
    """Rows of cells as lines; the columns whose index is in `right` end flush, all others begin so."""
    widths = [max(map(cell_len, column)) for column in zip(*rows, strict=True)]
    for row in rows:
        cells = []
        for at, (cell, width) in enumerate(zip(row, widths, strict=True)):
            space = " " * (width - cell_len(cell))
            cells.append(space + cell if at in right else cell + space)
        yield "  ".join(cells).rstrip()


def print_lines(lines: Iterable[str], out: TextIO) -> None:
    """The first line is the header. What is wider than the terminal is cut there; elsewhere nothing is."""
    if not out.isatty():
        out.writelines(f"{line}\n" for line in lines)
        return
    console = Console(file=out, highlight=False)
    for at, line in enumerate(lines):
        console.print(Text(line, style="" if at else "bold"), no_wrap=True, overflow="ellipsis")


def reader_gone(out: TextIO) -> Callable[[], bool]:
    """Whether whoever reads our output has left; writing would tell too, but what is written next may come late."""
    try:
        poll = select.poll()
        poll.register(out.fileno(), 0)
    except (OSError, ValueError):
        return lambda: False
    return lambda: bool(poll.poll(0))


@contextmanager
def busy(text: str) -> Iterator[Callable[[], None]]:
    """Says on a terminal what takes so long, until the end or until what is given here is called."""
    console = Console(stderr=True)
    status = console.status(text)
    if console.is_terminal:
        status.start()
    try:
        yield status.stop
    finally:
        status.stop()


class _Rate(ProgressColumn):
    """Records so far, and how many a second."""

    def render(self, task: Task) -> Text:
        records = int(task.fields.get("records", 0))
        return Text(f"{records:,} records, {records / (task.elapsed or 1):,.0f}/s")


def progress() -> Progress:
    """A bar on standard error, gone when the work is done; nothing where there is no terminal."""
    console = Console(stderr=True)
    columns = (TextColumn("{task.description}"), BarColumn(), _Rate())
    return Progress(*columns, console=console, transient=True, disable=not console.is_terminal)
