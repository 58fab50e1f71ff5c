"""`penstock log punctuate`, `join`, `announce`, `leave`: how far event times have come, said in the log."""

from datetime import datetime
from typing import Annotated

import typer

from penstock.cli.console import answer
from penstock.cli.options import LogPath, TopicName, opened, parse_time

Until = Annotated[
    str, typer.Argument(metavar="TIME", help="Nothing before this time comes any more.", show_default=False)
]
ProducerName = Annotated[str, typer.Argument(metavar="PRODUCER", help="The producer's name.", show_default=False)]


def punctuate(
    topic: TopicName,
    until: Until,
    *,
    log: LogPath = None,
    scope: Annotated[str, typer.Option(metavar="PIPELINE", help="Only for this pipeline.", show_default=False)] = "",
) -> None:
    """Say that a topic will bring nothing before a time any more.

    Watermarks go on to it; windows that end by then close.
    """
    with opened(log) as target, answer() as out:
        time, readers = parse_time(until), f" for pipeline {scope}" if scope else ""
        before = target.watermark(topic, scope=scope)
        target.punctuate(topic, time, scope=scope)
        out.write(f'topic "{topic}" will bring nothing before {until} any more{readers}\n')
        if target.topic(topic).event_time is None:
            out.write("it has no event time: no watermark goes by it, and no window closes\n")
        elif before is not None and before >= time:
            out.write(f"its watermarks were there before, at {before.isoformat()}: this changes nothing\n")


def join(
    topic: TopicName,
    producer: ProducerName,
    *,
    log: LogPath = None,
    until: Annotated[
        str | None, typer.Option(metavar="TIME", help="It brings nothing before this time.", show_default=False)
    ] = None,
) -> None:
    """Let watermarks that go by producers wait for this one."""
    with opened(log) as target, answer() as out:
        target.producer(producer).join(topic, _time(until))
        out.write(f'"{producer}" has joined topic "{topic}"\n')


def announce(topic: TopicName, producer: ProducerName, until: Until, *, log: LogPath = None) -> None:
    """Say that a producer will bring nothing before a time any more."""
    with opened(log) as target, answer() as out:
        target.producer(producer).announce(topic, parse_time(until))
        out.write(f'"{producer}" will bring topic "{topic}" nothing before {until} any more\n')


def leave(topic: TopicName, producer: ProducerName, *, log: LogPath = None) -> None:
    """Let watermarks wait for a producer no more."""
    with opened(log) as target, answer() as out:
        target.producer(producer).leave(topic)
        out.write(f'"{producer}" has left topic "{topic}"\n')


def _time(text: str | None) -> datetime | None:
    return None if text is None else parse_time(text)
