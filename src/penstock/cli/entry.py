"""The command `penstock`: all commands, and what they do with errors.

An error that Penstock raises on purpose is three lines on standard error and exit code 1, without a traceback
unless `--debug` is given, wherever on the line; so is a disk that is full, whoever finds it so. Mistakes on the command
line exit with 2, Ctrl-C with 130.
"""

import errno
import os
import sys
from collections.abc import Callable, Sequence
from typing import Annotated, Any, Final

import typer

from penstock import __version__
from penstock.cli import bridge as bridging
from penstock.cli import queues
from penstock.cli.append import append
from penstock.cli.bounds import bound
from penstock.cli.care import compact, retain
from penstock.cli.console import show
from penstock.cli.copy import copy
from penstock.cli.demo import demo
from penstock.cli.excise import excise
from penstock.cli.groups import forget, groups, lag
from penstock.cli.groups import reset as reset_group
from penstock.cli.late import late
from penstock.cli.marks import announce, join, leave, punctuate
from penstock.cli.plans import explain, verify
from penstock.cli.read import read, tail
from penstock.cli.redrive import redrive
from penstock.cli.run import init, reset, run
from penstock.cli.serve import serve
from penstock.cli.test import test
from penstock.cli.topics import add_column, check, create, describe, topics
from penstock.cli.view import view
from penstock.errors import CommandError, PenstockError

Command = Callable[..., None]
PLAIN: Final[dict[str, Any]] = {"no_args_is_help": True, "rich_markup_mode": None, "add_completion": False}

app = typer.Typer(pretty_exceptions_enable=False, **PLAIN)
log = typer.Typer(help="The log: topics and their records.", **PLAIN)
app.add_typer(log, name="log")
queue = typer.Typer(help="Queues over topics: each message to one worker.", **PLAIN)
log.add_typer(queue, name="queue")

bridge = typer.Typer(help="Bridges: what other systems have becomes topics, and topics go there.", **PLAIN)
app.add_typer(bridge, name="bridge")
amqp = typer.Typer(help="RabbitMQ: a queue becomes a topic, a topic goes to an exchange.", **PLAIN)
bridge.add_typer(amqp, name="amqp")

PIPELINES: Final[Sequence[Command]] = (init, run, view, late, serve, explain, verify, reset, redrive, test, demo)
TOPICS: Final[Sequence[Command]] = (create, add_column, topics, describe, append, read, tail, check)
MARKS: Final[Sequence[Command]] = (punctuate, join, announce, leave)
GROUPS: Final[Sequence[Command]] = (groups, lag, reset_group, forget, bound)
QUEUES: Final[Sequence[Command]] = (
    queues.create,
    queues.change,
    queues.show,
    queues.take,
    queues.redrive,
    queues.reset,
    queues.delete,
)
BRIDGES: Final[Sequence[Command]] = (bridging.consume, bridging.publish)
CARE: Final[Sequence[Command]] = (retain, compact, excise, copy)
for command in PIPELINES:
    app.command()(command)
for command in (*TOPICS, *MARKS, *GROUPS, *CARE):
    log.command()(command)
for command in QUEUES:
    queue.command()(command)
for command in BRIDGES:
    amqp.command()(command)


def main(arguments: Sequence[str] | None = None) -> None:
    given = list(sys.argv[1:] if arguments is None else arguments)
    try:
        app([each for each in given if each != "--debug"], prog_name="penstock")
    except PenstockError as error:
        if "--debug" in given:
            raise
        show(error)
        sys.exit(1)
    except OSError as error:
        if "--debug" in given or error.errno != errno.ENOSPC:
            raise
        where = f'"{error.filename}" could not be written.' if error.filename else ""
        show(CommandError(os.strerror(errno.ENOSPC), detail=where, hint="Make room on the disk."))
        sys.exit(1)


def _version(*, asked: bool) -> None:
    if asked:
        print(f"penstock {__version__}")
        raise typer.Exit


@app.callback()
def root(
    *,
    debug: Annotated[bool, typer.Option("--debug", help="Show the traceback of an error.")] = False,
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Show the version.")
    ] = False,
) -> None:
    """Streams on Apache Spark: an embedded log, incremental views."""
