"""`penstock log read` and `penstock log tail`: records of a topic on standard output."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import islice
from typing import Annotated, TextIO

import pyarrow as pa
import typer

from penstock.cli.arrow import stream_schema, write_stream
from penstock.cli.console import answer, print_lines, reader_gone, say
from penstock.cli.groups import entries_for
from penstock.cli.logs import KafkaSettings, LogPlace, opened_at
from penstock.cli.options import Hidden, OutputFormat, Partition, TopicName, parse_place, parse_time
from penstock.cli.output import Fields, fields_of, json_line, names_of, row_of, table_lines, write_csv
from penstock.errors import CommandError
from penstock.log import Log, Place, Start, Topic
from penstock.log.hidden import MARKS, NO_PLACE, STAMPS
from penstock.log.protocol import AnyEntry, AnyLog

TABLE_ROWS = 100


@dataclass(frozen=True)
class Reading:
    """What is read, and which columns of it are shown; `optional` ones only where they say something."""

    topic: Topic
    batches: Iterator[pa.RecordBatch]
    names: tuple[str, ...]
    optional: tuple[str, ...]

    def fields(self) -> Iterator[Fields]:
        make = fields_of(self.topic, self.names, optional=self.optional)
        for batch in self.batches:
            yield from map(make, _rows(batch))


def read(  # noqa: PLR0913 (the options of a command)
    topic: TopicName,
    *,
    log: LogPlace = None,
    settings: KafkaSettings = None,
    partition: Partition = None,
    offset: Annotated[int | None, typer.Option(help="From this offset on.", min=0, show_default=False)] = None,
    place: Annotated[str | None, typer.Option(metavar="FRAME[:INDEX]", help="From this place on.")] = None,
    time: Annotated[str | None, typer.Option(metavar="ISO", help="What was appended at this time or later.")] = None,
    limit: Annotated[int | None, typer.Option(help="At most so many records.", min=0, show_default=False)] = None,
    columns: Annotated[str | None, typer.Option(metavar="A,B", help="Only these columns.")] = None,
    form: Annotated[OutputFormat, typer.Option("--format")] = OutputFormat.JSON,
    hidden: Hidden = False,
) -> None:
    """Print the records of a topic, all that are there now.

    JSON lines and CSV can be appended again; Arrow is an IPC stream, for a pipe or a file. CSV and Arrow have
    the columns _headers and _replaces with --hidden only. A table shows 100 records unless --limit says
    otherwise.
    """
    start = _start(offset=offset, place=place, time=time)
    chosen = tuple(columns.split(",")) if columns else ()
    with opened_at(log, settings) as source, answer() as out:
        declared = source.topic(topic)
        marks, stamps = _marks(form, hidden=hidden), _stamps(source)
        names = chosen or names_of(declared, hidden=hidden, marks=marks, stamps=stamps)
        found = _found(source, topic, partition, start, names)
        reading = Reading(declared, _limited(found, limit), names, () if chosen else MARKS)
        _write(reading, form, limit, out)


def tail(  # noqa: PLR0913 (the options of a command)
    topic: TopicName,
    *,
    log: LogPlace = None,
    settings: KafkaSettings = None,
    partition: Partition = None,
    from_start: Annotated[bool, typer.Option("--from-start", help="First what is there already.")] = False,
    group: Annotated[
        str | None, typer.Option(metavar="NAME", help="As a member of this group, from where it was.")
    ] = None,
    form: Annotated[OutputFormat, typer.Option("--format")] = OutputFormat.JSON,
    hidden: Hidden = False,
) -> None:
    """Print records as they are appended, until Ctrl-C.

    As JSON lines, CSV, or an Arrow IPC stream. With --group, what other members of the group print is not printed here,
    and what was printed is not printed again.
    """
    if form == OutputFormat.TABLE:
        raise CommandError("a table has an end, and tail has none", hint="Use --format json, csv or arrow.")
    with opened_at(log, settings) as source, answer() as out, suppress(KeyboardInterrupt):
        entries = _coming(source, topic, partition, group, from_start=from_start, stop=reader_gone(out))
        if form == OutputFormat.JSON:
            for fields in _tailed(source, topic, entries, hidden=hidden):
                out.write(json_line(fields))
                out.flush()
            return
        declared = source.topic(topic)
        names = names_of(declared, hidden=hidden, marks=_marks(form, hidden=hidden), stamps=_stamps(source))
        batches = _one_by_one(entries, stream_schema(declared, names), out)
        _write(Reading(declared, batches, names, ()), form, None, out)


def _found(
    log: AnyLog, topic: str, partition: int | None, start: Start | None, names: tuple[str, ...]
) -> Iterator[pa.RecordBatch]:
    if isinstance(log, Log):
        return log.batches(topic, partition=partition, start=start, columns=names)
    if isinstance(start, Place):
        raise CommandError("there are no places on Kafka", hint="Use --offset or --time.")
    begins = log.begins(topic)
    chosen = range(len(begins)) if partition is None else [partition]
    return (
        batch
        for part in chosen
        for batch in log.batches(
            topic, partition=part, start=_first(begins, part) if start is None else start, columns=names
        )
    )


def _first(begins: tuple[int, ...], partition: int) -> int:
    """0 of one that is not there: the log refuses it by its number."""
    return begins[partition] if partition < len(begins) else 0


def _coming(
    log: AnyLog, topic: str, partition: int | None, group: str | None, *, from_start: bool, stop: Callable[[], bool]
) -> Iterator[AnyEntry]:
    if group is None and isinstance(log, Log):
        return log.tail(topic, partition=partition, from_first=from_start, stop=stop)
    if group is None:
        first = min(log.begins(topic), default=0)
        return log.tail(topic, partition=partition, start=first if from_start else None, stop=stop)
    if not isinstance(log, Log):
        raise CommandError("a group on Kafka is Kafka's own", hint="Leave --group out, or use Kafka's own tools.")
    if partition is not None or from_start:
        raise CommandError(
            "a group reads from where it was, and shares the partitions",
            hint="Leave --partition and --from-start out. To go back: penstock log reset",
        )
    return entries_for(log, topic, group, stop=stop)


def _one_by_one(entries: Iterator[AnyEntry], schema: pa.Schema, out: TextIO) -> Iterator[pa.RecordBatch]:
    """A batch for each record; what was made of the one before is sent on its way first."""
    for entry in entries:
        row = row_of(entry)
        yield pa.RecordBatch.from_pylist([{name: row[name] for name in schema.names}], schema)
        out.flush()


def _start(*, offset: int | None, place: str | None, time: str | None) -> Start | None:
    if sum(each is not None for each in (offset, place, time)) > 1:
        raise CommandError("only one of --offset, --place and --time can be given")
    if place is not None:
        return parse_place(place)
    if time is not None:
        return parse_time(time)
    return offset


def _stamps(log: AnyLog) -> Sequence[str]:
    return STAMPS if isinstance(log, Log) else NO_PLACE


def _marks(form: OutputFormat, *, hidden: bool) -> Sequence[str]:
    """CSV and Arrow have the same columns for all records, so few: but a deletion must not look like a row."""
    fixed = form in (OutputFormat.CSV, OutputFormat.ARROW)
    return ("_deleted",) if fixed and not hidden else MARKS


def _limited(batches: Iterator[pa.RecordBatch], limit: int | None) -> Iterator[pa.RecordBatch]:
    if limit is None:
        yield from batches
        return
    for batch in batches if limit else ():
        yield batch.slice(0, limit)
        limit -= len(batch)
        if limit <= 0:
            return


def _write(reading: Reading, form: OutputFormat, limit: int | None, out: TextIO) -> None:
    match form:
        case OutputFormat.JSON:
            for fields in reading.fields():
                out.write(json_line(fields))
        case OutputFormat.CSV:
            write_csv(reading.fields(), reading.names, out)
        case OutputFormat.ARROW:
            _write_arrow(reading, out)
        case OutputFormat.TABLE:
            _write_table(reading, limit, out)


def _write_arrow(reading: Reading, out: TextIO) -> None:
    if out.isatty():
        raise CommandError("Arrow is not for terminals", hint="Send it to a file (> orders.arrows) or a pipe.")
    write_stream(reading.batches, stream_schema(reading.topic, reading.names), out.buffer)


def _write_table(reading: Reading, limit: int | None, out: TextIO) -> None:
    wanted = TABLE_ROWS if limit is None else limit
    rows = list(islice(reading.fields(), wanted + 1))
    print_lines(table_lines(rows[:wanted], reading.topic, reading.names), out)
    if len(rows) > wanted:
        say(f"The first {wanted} records; --limit shows more.")


def _rows(batch: pa.RecordBatch) -> list[dict[str, object]]:
    try:
        return batch.to_pylist()  # type: ignore[no-any-return]
    except (ValueError, OverflowError) as error:
        raise CommandError(
            "a time cannot be shown as text", detail=f"{error}.", hint="Use --format arrow, or other --columns."
        ) from None


def _tailed(log: AnyLog, name: str, entries: Iterator[AnyEntry], *, hidden: bool) -> Iterator[Fields]:
    columns: tuple[str, ...] | None = None
    for entry in entries:
        found = tuple(entry.value) if isinstance(entry.value, Mapping) else ()
        if found != columns:  # at first, and when columns were added
            columns, topic = found, log.topic(name)
            make = fields_of(topic, names_of(topic, hidden=hidden, stamps=_stamps(log)), optional=MARKS)
        yield make(row_of(entry))
