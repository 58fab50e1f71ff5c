"""Options that several commands have, and the log that they name."""

from collections.abc import Iterator
from contextlib import contextmanager
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from penstock.errors import CommandError
from penstock.log import Log

LogPath = Annotated[
    Path | None, typer.Option("--log", envvar="PENSTOCK_LOG", help="The folder of the log.", show_default=False)
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


@contextmanager
def opened(path: Path | None, *, create: bool = False) -> Iterator[Log]:
    """The log that `--log` or the environment names."""
    if path is None:
        raise CommandError(
            "no log was named",
            detail="There is neither --log nor the environment variable PENSTOCK_LOG.",
            hint="Name the folder of the log: --log ./shop, or export PENSTOCK_LOG=./shop",
        )
    with Log.open(path, create=create) as log:
        yield log
