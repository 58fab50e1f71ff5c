"""`penstock view --follow`: the rows of a view, then every change as it comes, each with its sign."""

import csv
from collections.abc import Callable
from io import StringIO
from typing import Any, TextIO

from rich.cells import cell_len
from rich.console import Console
from rich.text import Text

from penstock.cli.console import reader_gone
from penstock.cli.options import ViewFormat
from penstock.cli.output import Fields, cell_text, fields_of, json_line, write_csv
from penstock.log import Topic
from penstock.log.protocol import OrderedLog
from penstock.schema import Schema
from penstock.text import csv_text
from penstock.views import changes
from penstock.views.query import Answer

SIGNS = {1: "+", -1: "-"}
STYLES = {1: "green", -1: "red", 0: "bold"}
Write = Callable[[int, Fields], None]
"""Prints a row that came (1) or left (-1)."""


def topic_of(schema: Schema) -> Topic:
    """The view's columns as the ways of printing know them."""
    return Topic("view", (schema,))


def follow_changes(now: Answer, log: OrderedLog, pipeline: str, *, form: ViewFormat, out: TextIO) -> None:
    """Prints what the view holds, then its changes, until whoever reads them has left."""
    schema = now.view.schema
    fields = fields_of(topic_of(schema), schema.names)
    write = _writer(schema, form, out)
    for row in now:
        write(1, fields(row))
    out.flush()
    for change in changes(log, pipeline, now.view.name, now.position.frame + 1, stop=reader_gone(out)):
        write(change.weight, fields(change.row))
        out.flush()


def _writer(schema: Schema, form: ViewFormat, out: TextIO) -> Write:
    """Begins the output; what prints each change then."""
    match form:
        case ViewFormat.JSON:
            return lambda weight, row: _print(out, json_line({"_change": weight, **row}))
        case ViewFormat.CSV:
            write_csv([], ("_change", *schema.names), out)
            return lambda weight, row: _print(out, _csv_line([weight, *map(csv_text, row.values())]))
        case ViewFormat.TABLE:
            table = _Table(out)
            table(0, {name: name for name in schema.names})
            return table


def _print(out: TextIO, line: str) -> None:
    out.write(line)


def _csv_line(cells: list[Any]) -> str:
    line = StringIO()
    csv.writer(line, lineterminator="\n").writerow(cells)
    return line.getvalue()


class _Table:
    """Cells under each other, as wide as the widest so far; in colours on a terminal."""

    def __init__(self, out: TextIO) -> None:
        self._console = Console(file=out, highlight=False, soft_wrap=True)
        self._widths: list[int] = []

    def __call__(self, weight: int, row: Fields) -> None:
        cells = [cell_text(value) for value in row.values()]
        self._widths = [max(cell_len(c), w) for c, w in zip(cells, self._widths or [0] * len(cells), strict=True)]
        padded = [cell + " " * (width - cell_len(cell)) for cell, width in zip(cells, self._widths, strict=True)]
        line = f"{SIGNS.get(weight, ' ')}  {'  '.join(padded)}".rstrip()
        self._console.print(Text(line, style=STYLES[weight]))
