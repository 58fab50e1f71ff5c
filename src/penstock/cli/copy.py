"""`penstock log copy`: topics go from one log to another, in a folder or on Kafka."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Annotated, Any
from urllib.parse import urlsplit

import typer
from rich.progress import Progress, TaskID

from penstock.cli.console import answer, progress, say
from penstock.errors import CommandError
from penstock.log import Log
from penstock.log.copying import Copying, chosen
from penstock.log.protocol import AnyLog

KAFKA = "kafka"
Where = Annotated[str, typer.Argument(help="A folder, or kafka://HOST:PORT,HOST:PORT/PREFIX.", show_default=False)]


def copy(
    source: Where,
    target: Where,
    topics: Annotated[list[str] | None, typer.Argument(metavar="[TOPIC]...", help="Which; all without it.")] = None,
    *,
    settings: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Settings of Kafka's client, as JSON: for security.", show_default=False),
    ] = None,
) -> None:
    """Copy topics from one log to another.

    Each record is copied once: run again, it goes on where it ended, after a kill too. Topics that the target does not
    have are made as they are in the source. Records stay in their partitions; offsets and append times are new.
    """
    known = _settings(settings)
    with _opened(source, known, create=False) as one, _opened(target, known, create=True) as other, answer() as out:
        for topic in chosen(one, topics or []):
            copying = Copying(one, other, topic)
            with progress() as bar:
                task = bar.add_task(topic, total=copying.ahead)
                copied = copying.run(partial(_show, bar, task))
            out.write(f"{topic}: {copied:,} record{'' if copied == 1 else 's'} copied\n")


def _show(bar: Progress, task: TaskID, records: int) -> None:
    bar.update(task, completed=records, records=records)


@contextmanager
def _opened(where: str, settings: dict[str, Any], *, create: bool) -> Iterator[AnyLog]:
    place = urlsplit(where)
    if place.scheme == "":
        with Log.open(Path(where), create=create) as log:
            yield log
        return
    if place.scheme != KAFKA or not place.netloc:
        raise CommandError(f'"{where}" is no log', hint="Name a folder, or kafka://HOST:PORT/PREFIX.")
    from penstock.log.kafka import KafkaLog  # noqa: PLC0415 (an extra, which those who copy folders need not have)

    with KafkaLog.open(place.netloc, prefix=place.path[1:], settings=settings, create=create, say=say) as log:
        yield log


def _settings(file: Path | None) -> dict[str, Any]:
    """What they are is shown to nobody."""
    if file is None:
        return {}
    try:
        found = json.loads(file.read_text())
    except (OSError, ValueError) as error:
        raise CommandError(f'the settings in "{file}" cannot be read', detail=f"{type(error).__name__}.") from error
    if not isinstance(found, dict):
        raise CommandError(f'the settings in "{file}" are no object', hint='Write {"security.protocol": "SASL_SSL"}.')
    return found
