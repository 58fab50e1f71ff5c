"""`penstock log excise`: a value goes for good, from the log and from what pipelines have made of it."""

import getpass
from pathlib import Path
from typing import Annotated, Any

import typer

from penstock.cli.console import answer, say
from penstock.cli.options import LogPath, TopicName, opened
from penstock.cli.working import interruptible
from penstock.errors import CommandError
from penstock.log import Topic
from penstock.text import Unfit, reader


def excise(
    topic: TopicName,
    key: Annotated[list[str], typer.Argument(metavar="KEY...", help="The key, one value for each of its columns.")],
    *,
    log: LogPath = None,
    column: Annotated[
        list[str] | None, typer.Option(help="The column to look in, if it is not the key; repeat it for more.")
    ] = None,
    pipeline: Annotated[
        list[Path] | None,
        typer.Option(metavar="DIR", help="A pipeline that reads the topic, or did; repeatable.", show_default=False),
    ] = None,
    ended: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME", help="A pipeline that is no more; repeat it for more.", show_default=False),
    ] = None,
) -> None:
    """Take every record of a key out of the log, for good.

    Pipelines that read the topic are computed anew, and what they had before is removed; so is what is left with
    those that read it before they were changed, and in the log what is left of those that have ended. That it
    happened stays in the log, with a hash of the key.
    """
    with opened(log) as source:
        folder, values = source.folder, _values(source.topic(topic), key, column)
        read = source.readers(topic) + source.former_readers(topic)
    with interruptible(), answer() as out:
        if read or pipeline or ended:
            from penstock.app.excising import excise as excised  # noqa: PLC0415 (PySpark takes long to import)

            given, who = pipeline or _here(), getpass.getuser()
            done = excised(folder, topic, values, given, ended=ended or [], by=who, told=say)
        else:
            with opened(log) as target:
                done = target.excise(topic, values, by=getpass.getuser())
        out.write(f'{done.records:,} record{"" if done.records == 1 else "s"} gone from topic "{topic}"\n')
        out.write(f"{done.hash} stands for the key in the log\n")


def _here() -> list[Path]:
    """The pipeline of the current folder, if there is one."""
    here = Path()
    return [here] if any(each.suffix in (".sql", ".py") for each in here.iterdir()) else []


def _values(topic: Topic, key: list[str], columns: list[str] | None) -> dict[str, Any]:
    names = tuple(columns) if columns else topic.key
    if names and len(names) != len(key):
        raise CommandError(
            f"{len(key)} value{'' if len(key) == 1 else 's'} for {len(names)} column{'' if len(names) == 1 else 's'}",
            detail=f"The columns are {', '.join(names)}.",
        )
    return {name: _value(topic, name, text) for name, text in zip(names, key, strict=False)}


def _value(topic: Topic, name: str, text: str) -> Any:
    if topic.raw:
        return text.encode()
    column = topic.schema.column(name)
    try:
        return reader(column.type)(text)
    except Unfit:
        pass
    try:  # numbers are numbers in JSON
        return reader(column.type)(float(text) if "." in text else int(text))
    except (Unfit, ValueError):
        raise CommandError(f'"{text}" is no value of column "{name}" of topic "{topic.name}"') from None
