"""`penstock view`: the answer of a view, now or as it moves. Read from the store or the log, without Spark."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Annotated, Any, TextIO

import typer

from penstock.app import Place, place_of
from penstock.app.stores import reader_of
from penstock.cli.console import answer, print_lines, say
from penstock.cli.export import check_can_export
from penstock.cli.export import export as write_export
from penstock.cli.following import follow_changes, topic_of
from penstock.cli.options import ViewFormat
from penstock.cli.output import fields_of, json_line, table_lines, write_csv
from penstock.cli.read import TABLE_ROWS
from penstock.cli.working import LogOption, PipelineOption
from penstock.errors import CommandError, ViewError
from penstock.log.opening import opened_log
from penstock.log.protocol import OrderedLog
from penstock.model import Pipeline, load_pipeline
from penstock.schema import Schema
from penstock.views import ViewReader, current
from penstock.views.parquet import files_of


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
    form: Annotated[ViewFormat, typer.Option("--format")] = ViewFormat.TABLE,
    follow: Annotated[bool, typer.Option("--follow", help="Then its changes as they come, until Ctrl-C.")] = False,
    export: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE", help="Write the rows to this file, .parquet or .arrow, instead.", show_default=False
        ),
    ] = None,
    log: LogOption = None,
) -> None:
    """Print the rows of a view, as they are now.

    With --follow first all rows, then every change as it comes: + a row came, - a row left. In JSON and CSV the
    sign is the column _change, 1 or -1. A table shows 100 rows unless --limit says otherwise, by the view's key
    unless --order does.
    """
    place = _place(pipeline, name)
    if export is not None:
        check_can_export(export)
    with suppress(KeyboardInterrupt), place.hinted(), answer() as out:
        if follow:
            if where or order or limit is not None or export is not None:
                raise CommandError("--follow shows all rows", hint="Leave --where, --order, --limit and --export away.")
            _follow(place, name, log, form, out)
            return
        most = TABLE_ROWS if form == ViewFormat.TABLE and limit is None and export is None else limit
        with _reader(place, name, log) as reader:
            chosen = order or (_key(reader, name) if form == ViewFormat.TABLE else ())
            found = reader.rows(name, where=where, order=chosen, limit=most)
        if export is not None:
            write_export(found, export)
            say(f"{len(found):,} row{'' if len(found) == 1 else 's'} of {found.view.name} in {export}")
            return
        _write(found.view.schema, iter(found), form, out)
        if (files := files_of(place.files, name)) is not None:
            say(f"Its files are in {files}.")
        if found.next is not None and limit is None:
            say(f"The first {most} rows; --limit shows more.")


def _place(pipeline: Path, view: str) -> Place:
    """Where the pipeline lies; one that never ran has no views, and its files are not looked at."""
    place = place_of(pipeline)
    if not place.home.is_dir():
        raise ViewError(
            f'no pipeline has run in "{place.folder}"',
            hint=f"Go to a pipeline's folder, or name it: penstock view {view} --pipeline DIR",
        )
    return place


@contextmanager
def _reader(place: Place, name: str, log: str | None) -> Iterator[ViewReader]:
    """From the store, or folded from the view's topic where it is kept only there."""
    if place.store.exists():
        with ViewReader(place.store) as reader:
            if any(each.name.lower() == name.lower() for each in reader.views()):
                yield reader
                return
    pipeline = load_pipeline(place.path)
    if (where := pipeline.options.store) is not None and pipeline.view(name).options.store == "table":
        with reader_of(where, pipeline.name, name) as reader:
            yield reader
            return
    with _source(place, pipeline, name, log) as source, ViewReader.of_topic(source, pipeline.name, name) as reader:
        yield reader


@contextmanager
def _source(place: Place, pipeline: Pipeline, name: str, log: str | None) -> Iterator[OrderedLog]:
    """The log that holds the view's changes, or why it does not."""
    if pipeline.view(name).options.store == "none":
        raise ViewError(
            f'view "{name}" is not kept', detail="It has store = 'none'.", hint="Leave the option away to keep it."
        )
    path = place.log(pipeline, log)
    if log is None and isinstance(path, Path) and not path.exists():
        raise _not_run(place, pipeline)
    with opened_log(path, place.opening(pipeline, say=say), create=False) as source:
        lineage = current(source, pipeline.name)
        if lineage is None:
            raise _not_run(place, pipeline)
        if all(each.name.lower() != name.lower() for each in lineage.views):
            raise ViewError(
                f'view "{name}" has not been computed yet',
                detail=f"The views of the last run are {', '.join(each.name for each in lineage.views)}.",
                hint="To compute it: penstock run PIPELINE",
            )
        yield source


def _not_run(place: Place, pipeline: Pipeline) -> ViewError:
    return ViewError(f'pipeline "{pipeline.name}" has not run yet', hint=f"Run it first: penstock run {place} --once")


def _key(reader: ViewReader, name: str) -> Sequence[str]:
    return next(each.key for each in reader.views() if each.name.lower() == name.lower())


def _write(schema: Schema, rows: Iterator[dict[str, Any]], form: ViewFormat, out: TextIO) -> None:
    topic = topic_of(schema)
    fields = map(fields_of(topic, schema.names), rows)
    match form:
        case ViewFormat.JSON:
            out.writelines(map(json_line, fields))
        case ViewFormat.CSV:
            write_csv(fields, schema.names, out)
        case ViewFormat.TABLE:
            print_lines(table_lines(list(fields), topic, schema.names), out)


def _follow(place: Place, name: str, log: str | None, form: ViewFormat, out: TextIO) -> None:
    pipeline = load_pipeline(place.path)
    with _source(place, pipeline, name, log) as source:
        with _reader(place, name, log) as reader:
            now = reader.rows(name, order=_key(reader, name))
        if now.position.log != source.identity:
            raise ViewError(
                f'the store is not one of pipeline "{pipeline.name}" in this log',
                detail=f"It was filled from log {now.position.log}; {source.folder} is {source.identity}.",
                hint="Look at --log and PENSTOCK_LOG: they name another log than the last run had.",
            )
        follow_changes(now, source, pipeline.name, form=form, out=out)
