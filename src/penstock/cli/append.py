"""`penstock log append`: records from a file or a pipe, batch by batch, each batch all or nothing.

With a producer every batch is appended under the producer's name and the batch's number: what an earlier run
has appended is not appended again. A checksum kept with each batch tells whether the source is still the same.
"""

import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, BinaryIO

import typer
from rich.progress import Progress, TaskID

from penstock.cli.arrow import arrow_batches
from penstock.cli.console import progress, say
from penstock.cli.lines import Lines
from penstock.cli.logs import KafkaSettings, LogPlace, opened_at
from penstock.cli.options import InputFormat, TopicName
from penstock.cli.sources import Batch, csv_batches, json_batches, located
from penstock.errors import CommandError, LogError, PenstockError, SchemaError
from penstock.log import Appended, Log, Topic
from penstock.log.protocol import AnyAppended, AnyLog

SUFFIXES = {
    ".csv": InputFormat.CSV,
    ".arrow": InputFormat.ARROW,
    ".arrows": InputFormat.ARROW,
    ".feather": InputFormat.ARROW,
    ".ipc": InputFormat.ARROW,
}


@dataclass
class Tally:
    """What has been appended so far."""

    topic: str
    records: int = 0
    repeated: int = 0
    dropped: int = 0

    def __str__(self) -> str:
        there = f"; {self.repeated:,} were there already" if self.repeated else ""
        dropped = f"; {self.dropped:,} dropped, because the topic is full" if self.dropped else ""
        return f'{count(self.records)} appended to "{self.topic}"{there}{dropped}'

    def take_in(self, done: AnyAppended, records: int) -> None:
        self.records += records - dropped(done)
        self.dropped += dropped(done)


def append(  # noqa: PLR0913 (the options of a command)
    topic: TopicName,
    *,
    log: LogPlace = None,
    settings: KafkaSettings = None,
    source: Annotated[Path | None, typer.Option("--from", help="The file to read; standard input without it.")] = None,
    form: Annotated[
        InputFormat | None, typer.Option("--format", help="Without it the file's name decides, else JSON lines.")
    ] = None,
    batch_size: Annotated[int, typer.Option(help="Records in one batch.", min=1, max=1 << 24)] = 10_000,
    producer: Annotated[
        str | None, typer.Option(help="Append under this name: a run that was interrupted can be run again.")
    ] = None,
) -> None:
    """Append records from a file or from standard input.

    JSON: one object per line. CSV: with a header, an empty field is NULL. Arrow: an IPC file or stream.
    Timestamps, dates and decimals are text (UTC unless the text says otherwise), binary is hexadecimal.
    Beside the columns a record may have _deleted (true: it deletes), _headers and _replaces (the row before).
    A raw topic has key, value and time; bytes that are not text stand under key_base64 and value_base64.

    Every batch is written as a whole or not at all. With --producer NAME the batches are numbered from 0 and
    each is appended under that name and number; run the same command again after an interruption, and the
    batches that were written are passed over: every record is there exactly once. That needs the same source
    and the same --batch-size; another source under the same name is refused.
    """
    with opened_at(log, settings) as target, _opened_source(source) as (file, name, size):
        declared = target.topic(topic)
        tally = Tally(topic)
        reading = _batches(file, name, declared, form or _format_of(source), size=batch_size, patient=bool(producer))
        with _telling(tally, producer), progress() as bar:
            task = bar.add_task(f"appending to {topic}", total=size)
            _append_all(target, reading, tally, producer=producer, bar=bar, task=task)


def _append_all(
    log: AnyLog, reading: Iterator[Batch], tally: Tally, *, producer: str | None, bar: Progress, task: TaskID
) -> None:
    for number, batch in enumerate(reading):
        try:
            _append_batch(log, batch, tally, producer=producer, number=number)
        except SchemaError as error:
            raise located(error, batch.spot) from error
        bar.update(task, completed=batch.bytes, records=tally.records)


def dropped(done: AnyAppended) -> int:
    return done.dropped if isinstance(done, Appended) else 0


def _append_batch(log: AnyLog, batch: Batch, tally: Tally, *, producer: str | None, number: int) -> None:
    if producer is None:
        tally.take_in(log.append(tally.topic, batch.rows), len(batch.rows))
        return
    note = {"topic": tally.topic, "crc": batch.crc}
    if not isinstance(log, Log):
        _append_to_kafka(log, batch, tally, producer, number, note)
        return
    done = log.append_all({tally.topic: batch.rows}, producer=producer, sequence=number, note=note)
    if not done.repeated:
        tally.take_in(done, len(batch.rows))
        return
    found = log.find(producer, number)
    if found is None or found.note != note:
        raise _other_source(batch, producer, number)
    tally.repeated += len(batch.rows) - done.dropped
    tally.dropped += done.dropped


def _append_to_kafka(
    log: AnyLog, batch: Batch, tally: Tally, producer: str, number: int, note: Mapping[str, Any]
) -> None:
    """Kafka knows the last commits of a producer only: batches before the newest one are passed over."""
    last = log.last(producer)
    if last is None or last.sequence is None or last.sequence < number:
        log.append_all({tally.topic: batch.rows}, producer=producer, sequence=number, note=note)
        tally.records += len(batch.rows)
        return
    if last.sequence == number and last.note != note:
        raise _other_source(batch, producer, number)
    tally.repeated += len(batch.rows)


def _other_source(batch: Batch, producer: str, number: int) -> LogError:
    return LogError(
        f'producer "{producer}" has appended something else as batch {number}',
        detail=f"{batch.spot}: this batch, or one before it, is not what was appended to this topic.",
        hint="Another source or topic needs another producer; the same one needs the same --batch-size.",
    )


@contextmanager
def _telling(tally: Tally, producer: str | None) -> Iterator[None]:
    """Says in the end what was appended, however it ended."""
    started = time.monotonic()
    try:
        yield
    except PenstockError as error:
        raise _with_tally(error, tally, producer) from error
    except KeyboardInterrupt:
        say(f"interrupted: {tally}")
        raise typer.Exit(130) from None
    seconds = time.monotonic() - started
    rate = f" in {seconds:.1f} s, {tally.records / seconds:,.0f}/s" if sys.stderr.isatty() and seconds > 1 else ""
    say(f"{tally}{rate}")


def _with_tally(error: PenstockError, tally: Tally, producer: str | None) -> PenstockError:
    """The error, with what is in the log by now and how to go on."""
    before = f"ritten before it: {count(tally.records + tally.repeated)}."
    # Where the log itself failed, only its own words tell what became of the batch.
    refused = isinstance(error, SchemaError | CommandError)
    told = f"Nothing of this batch was written; w{before}" if refused else f"W{before}"
    again = "Mend it and run the same command again." if producer else "Mend it and append what was not written."
    hint = f"{error.hint} {again}" if refused else error.hint
    return type(error)(error.primary, detail=f"{error.detail} {told}".strip(), hint=hint.strip())


def count(records: int) -> str:
    return f"{records:,} record{'' if records == 1 else 's'}"


@contextmanager
def _opened_source(path: Path | None) -> Iterator[tuple[BinaryIO, str, int | None]]:
    """The file or standard input, its name for errors, its size if it has one."""
    if path is None:
        if sys.stdin.isatty():
            say("Reading from the terminal; end with Ctrl-D.")
        yield sys.stdin.buffer, "standard input", None
        return
    try:
        file = path.open("rb")
    except OSError as error:
        raise CommandError(f'"{path}" cannot be read', detail=f"{error.strerror}.") from None
    with file:
        yield file, str(path), path.stat().st_size


def _format_of(path: Path | None) -> InputFormat:
    return SUFFIXES.get(path.suffix.lower(), InputFormat.JSON) if path else InputFormat.JSON


def _batches(
    file: BinaryIO, name: str, topic: Topic, form: InputFormat, *, size: int, patient: bool
) -> Iterator[Batch]:
    match form:
        case InputFormat.ARROW:
            return arrow_batches(file, name, size)
        case InputFormat.CSV:
            return csv_batches(Lines(file, name), topic, size, patient=patient)
        case InputFormat.JSON:
            return json_batches(Lines(file, name), topic, size, patient=patient)
