"""Options that several commands have, and the log and the times that they name."""

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from penstock.app.place import log_in
from penstock.errors import CommandError
from penstock.log import Log, Place
from penstock.log.where import OnKafka, where_of
from penstock.schema import Scalar
from penstock.text import Unfit, reader

LogPath = Annotated[
    str | None,
    typer.Option(
        "--log",
        envvar="PENSTOCK_LOG",
        metavar="PATH",
        help="The folder of the log; without it, that of the pipeline in the current folder.",
        show_default=False,
    ),
]
TopicName = Annotated[str, typer.Argument(metavar="TOPIC", help="The name of the topic.", show_default=False)]
Partition = Annotated[int | None, typer.Option(help="Only this partition.", min=0, show_default=False)]
Hidden = Annotated[bool, typer.Option("--hidden", help="With partition, offset, place and append time.")]


class InputFormat(StrEnum):
    JSON = "json"
    CSV = "csv"
    ARROW = "arrow"


class OutputFormat(StrEnum):
    JSON = "json"
    CSV = "csv"
    ARROW = "arrow"
    TABLE = "table"


class ViewFormat(StrEnum):
    TABLE = "table"
    JSON = "json"
    CSV = "csv"


@contextmanager
def opened(path: str | Path | None, *, create: bool = False) -> Iterator[Log]:
    """The log that `--log` or the environment names, else that of the pipeline in the current folder."""
    found = log_in(Path()) if path is None else where_of(path)
    if found is None:
        raise CommandError(
            "no log was named",
            detail="There is neither --log nor the environment variable PENSTOCK_LOG, and this folder has no pipeline "
            "that has run.",
            hint="Go to a pipeline's folder, or name the folder of a log: --log ./log. A new pipeline gets its log and "
            "its topics by: penstock run PIPELINE --once",
        )
    if isinstance(found, OnKafka):
        raise CommandError(
            "this command works on a log in a folder only",
            detail="On Kafka, groups, retention and compaction are Kafka's own; there are no queues, places and marks.",
            hint="Use Kafka's tools. create, add-column, topics, describe, append, read, tail and copy work there too.",
        )
    with Log.open(found, create=create) as log:
        yield log


def parse_place(text: str) -> Place:
    frame, _, index = text.partition(":")
    if not (frame.isdecimal() and (index or "0").isdecimal()):
        raise CommandError(f'"{text}" is not a place', hint="Write FRAME or FRAME:INDEX, as `read --hidden` shows it.")
    return Place(int(frame), int(index or 0))


def parse_time(text: str) -> datetime:
    try:
        found: datetime = reader(Scalar("TIMESTAMP"))(text)
    except Unfit:
        raise CommandError(
            f'"{text}" is not a time', hint="Write 2024-01-31T12:00:00Z; without a zone it is UTC."
        ) from None
    return found
