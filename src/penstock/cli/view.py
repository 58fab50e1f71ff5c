"""`penstock view`: the answer of a view, now or as it moves. Read from the store or the log, without Spark."""

import csv
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from enum import StrEnum
from io import StringIO
from pathlib import Path
from typing import Annotated, Any, TextIO

import typer
from rich.cells import cell_len

from penstock.app import Place, place_of
from penstock.cli.console import answer, say
from penstock.cli.output import Fields, fields_of, json_line, table_lines, write_csv
from penstock.cli.read import TABLE_ROWS, _print_lines, _reader_gone
from penstock.cli.text import csv_text
from penstock.cli.working import LogOption, PipelineOption
from penstock.errors import CommandError, ViewError
from penstock.log import Log, Topic
from penstock.model import Pipeline, load_pipeline
from penstock.schema import Schema
from penstock.views import ViewReader, changes

SIGNS = {1: "+", -1: "-"}


class Format(StrEnum):
    TABLE = "table"
    JSON = "json"
    CSV = "csv"


def view(  # noqa: PLR0913 (the options of a command)
    name: Annotated[str, typer.Argument(metavar="VIEW", help="The name of the view.", show_default=False)],
    *,
    pipeline: PipelineOption = Path(),
    where: Annotated[
        str, typer.Option(help="Only rows for which this holds, in SQL: city = 'Bern' AND spend > 100", metavar="SQL")
    ] = "",
    order: Annotated[
        list[str] | None,
        typer.Option(metavar="COLUMN", help='Order by a column, or "column desc"; repeat it for more.'),
    ] = None,
    limit: Annotated[int | None, typer.Option(help="At most so many rows.", min=0, show_default=False)] = None,
    form: Annotated[Format, typer.Option("--format")] = Format.TABLE,
    follow: Annotated[bool, typer.Option("--follow", help="Then its changes as they come, until Ctrl-C.")] = False,
    log: LogOption = None,
) -> None:
    """Print the rows of a view, as they are now.

    With --follow first all rows, then every change as it comes: + a row came, - a row left. In JSON and CSV the
    sign is the column _change, 1 or -1. A table shows 100 rows unless --limit says otherwise.
    """
    place = place_of(pipeline)
    with suppress(KeyboardInterrupt), answer() as out:
        if follow:
            if where or order or limit is not None:
                raise CommandError("--follow shows all rows", hint="Leave --where, --order and --limit away.")
            _follow(place, name, log, form, out)
            return
        most = TABLE_ROWS if form == Format.TABLE and limit is None else limit
        with _reader(place, name, log) as reader:
            found = reader.rows(name, where=where, order=order or (), limit=most)
        _write(found.view.schema, iter(found), form, out)
        if found.next is not None and limit is None:
            say(f"The first {most} rows; --limit shows more.")


@contextmanager
def _reader(place: Place, name: str, log: Path | None) -> Iterator[ViewReader]:
    """From the store, or folded from the view's topic where it is kept only there."""
    with ViewReader(place.store) as reader:
        if any(each.name.lower() == name.lower() for each in reader.views()):
            yield reader
            return
    pipeline = load_pipeline(place.path)
    _check_kept(pipeline, name)
    with (
        Log.open(place.log(pipeline, log), create=False) as source,
        ViewReader.of_topic(source, pipeline.name, name) as reader,
    ):
        yield reader


def _check_kept(pipeline: Pipeline, name: str) -> None:
    """The view is declared, and its changes are kept."""
    if pipeline.view(name).options.store == "none":
        raise ViewError(
            f'view "{name}" is not kept', detail="It has store = 'none'.", hint="Leave the option away to keep it."
        )


def _topic(schema: Schema) -> Topic:
    """The view's columns as the ways of printing know them."""
    return Topic("view", (schema,))


def _write(schema: Schema, rows: Iterator[dict[str, Any]], form: Format, out: TextIO) -> None:
    topic = _topic(schema)
    fields = map(fields_of(topic, schema.names), rows)
    match form:
        case Format.JSON:
            out.writelines(map(json_line, fields))
        case Format.CSV:
            write_csv(fields, schema.names, out)
        case Format.TABLE:
            _print_lines(table_lines(list(fields), topic, schema.names), out)


def _follow(place: Place, name: str, log: Path | None, form: Format, out: TextIO) -> None:
    pipeline = load_pipeline(place.path)
    _check_kept(pipeline, name)
    with Log.open(place.log(pipeline, log), create=False) as source:
        with _reader(place, name, log) as reader:
            now = reader.rows(name)
        writer = _writer(now.view.schema, form, out)
        for row in now:
            writer(1, row)
        out.flush()
        for change in changes(source, pipeline.name, name, now.position.frame + 1, stop=_reader_gone(out)):
            writer(change.weight, change.row)
            out.flush()


def _writer(schema: Schema, form: Format, out: TextIO) -> Callable[[int, dict[str, Any]], None]:
    """The function that prints a change."""
    fields = fields_of(_topic(schema), schema.names)
    lines: dict[Format, Callable[[int, Fields], str]]
    lines = {Format.JSON: _json, Format.CSV: _csv, Format.TABLE: _Aligned()}
    line = lines[form]
    if form == Format.CSV:
        write_csv([], ("_change", *schema.names), out)
    if form == Format.TABLE:
        out.write(line(0, {name: name for name in schema.names}))

    def write(weight: int, row: dict[str, Any]) -> None:
        out.write(line(weight, fields(row)))

    return write


def _json(weight: int, row: Fields) -> str:
    return json_line({"_change": weight, **row})


def _csv(weight: int, row: Fields) -> str:
    line = StringIO()
    csv.writer(line, lineterminator="\n").writerow([weight, *(csv_text(value) for value in row.values())])
    return line.getvalue()


class _Aligned:
    """Cells under each other, as wide as the widest so far."""

    def __init__(self) -> None:
        self._widths: list[int] = []

    def __call__(self, weight: int, row: Fields) -> str:
        cells = [csv_text(value) for value in row.values()]
        self._widths = [max(cell_len(c), w) for c, w in zip(cells, self._widths or [0] * len(cells), strict=True)]
        padded = [cell + " " * (width - cell_len(cell)) for cell, width in zip(cells, self._widths, strict=True)]
        return f"{SIGNS.get(weight, ' ')}  {'  '.join(padded)}".rstrip() + "\n"
