"""What the commands that start Spark have in common: options, and leaving on Ctrl-C and SIGTERM."""

import logging
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Annotated

import typer

from penstock.errors import CommandError

PipelinePath = Annotated[
    Path, typer.Argument(metavar="PIPELINE", help="A folder with .sql and .py files, or one file.", show_default=False)
]
PipelineOption = Annotated[Path, typer.Option("--pipeline", metavar="PIPELINE", help="Its folder, or its file.")]
LogOption = Annotated[
    Path | None,
    typer.Option("--log", help="The folder of the log, where it is not the pipeline's.", show_default=False),
]
Master = Annotated[str, typer.Option("--master", help="Where Spark runs: local[4], spark://host:7077, ...")]
Conf = Annotated[
    list[str] | None, typer.Option("--conf", metavar="SPARK.X=Y", help="A setting of Spark; repeat it for more.")
]


def settings(given: list[str] | None) -> dict[str, str]:
    """`["spark.x=y"]`  =>  `{"spark.x": "y"}`"""
    pairs = [each.partition("=") for each in given or ()]
    for name, sign, _ in pairs:
        if not sign:
            raise CommandError(f'"{name}" sets nothing', hint="Write --conf spark.x=y")
    return {name.strip(): value for name, _, value in pairs}


@contextmanager
def interruptible() -> Iterator[None]:
    """Inside, SIGTERM is like Ctrl-C; both end the command with 130, once everything inside has been left."""
    logging.disable()  # PySpark and py4j log tracebacks of what we tell in our own words

    def interrupt(_number: int, _frame: FrameType | None) -> None:
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGTERM, interrupt)
    try:
        yield
    except KeyboardInterrupt:
        raise typer.Exit(130) from None
    finally:
        signal.signal(signal.SIGTERM, before)
        logging.disable(logging.NOTSET)
