"""What the commands that start Spark have in common: options, and leaving on Ctrl-C and SIGTERM."""

import logging
import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Annotated

import typer

from penstock.errors import CommandError

PipelinePath = Annotated[
    Path,
    typer.Argument(
        metavar="PIPELINE",
        help="A folder with .sql and .py files, or one file; the current folder without it.",
        show_default=False,
    ),
]
PipelineOption = Annotated[
    Path,
    typer.Option(
        "--pipeline",
        metavar="PIPELINE",
        help="The pipeline's folder, or its file; the current folder without it.",
        show_default=False,
    ),
]
LogOption = Annotated[
    str | None,
    typer.Option(
        "--log",
        envvar="PENSTOCK_LOG",
        metavar="PATH",
        help="The log, where it is not the pipeline's: a folder, or kafka://HOST:PORT/PREFIX.",
        show_default=False,
    ),
]
Master = Annotated[str, typer.Option("--master", help="Where Spark runs: local[4], spark://host:7077, ...")]
Conf = Annotated[
    list[str] | None, typer.Option("--conf", metavar="SPARK.X=Y", help="A setting of Spark; repeat it for more.")
]
STARTING = "starting Spark"
STANDARD_ERROR = 2


def check_there(pipeline: Path) -> None:
    """Refuses a folder that holds nothing of a pipeline: somebody stands in the wrong one."""
    if pipeline.is_dir() and not any(each.suffix in (".sql", ".py") for each in pipeline.iterdir()):
        raise CommandError(
            f'there is no pipeline in "{pipeline}"',
            detail="It has no .sql and no .py files.",
            hint="Go to a pipeline's folder or name it, or make one: penstock init DIR",
        )


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
    before = {number: signal.signal(number, _interrupt) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    except KeyboardInterrupt:
        raise typer.Exit(130) from None
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
        logging.disable(logging.NOTSET)


def _interrupt(_number: int, _frame: FrameType | None) -> None:
    """Leaving Spark takes a moment: whoever has pressed the keys sees that they were noticed."""
    if os.isatty(STANDARD_ERROR):
        os.write(STANDARD_ERROR, b"\nstopping\n")  # print could be in the middle of another line
    raise KeyboardInterrupt
