"""`penstock log groups`, `lag`, `reset`, `forget`: who reads the log in groups, and how far each has come."""

from collections.abc import Callable, Iterator
from datetime import timedelta
from typing import Annotated

import typer

from penstock.cli.console import aligned, answer
from penstock.cli.options import LogPath, Partition, TopicName, opened, parse_place, parse_time
from penstock.errors import CommandError
from penstock.log import Entry, Log, Start
from penstock.log.consumers import Group
from penstock.log.consumers.source import End

PAUSE = timedelta(milliseconds=100)
GroupName = Annotated[str, typer.Argument(metavar="GROUP", help="The name of the group.", show_default=False)]
Earliest = Annotated[bool, typer.Option("--earliest", help="With the first record that is there.")]
Latest = Annotated[bool, typer.Option("--latest", help="With what comes from now on.")]


def groups(log: LogPath = None) -> None:
    """List the groups that read the log."""
    with opened(log) as source, answer() as out:
        rows = [_summary(group) for group in source.consumers.groups()]
        header = ["group", "topics", "members", "lag"]
        out.writelines(f"{line}\n" for line in aligned([header, *rows], right=(2, 3)))


def lag(
    group: Annotated[str | None, typer.Argument(metavar="GROUP", help="Only this group.", show_default=False)] = None,
    *,
    log: LogPath = None,
) -> None:
    """Show how many records groups have not read yet, by partition."""
    with opened(log) as source, answer() as out:
        chosen = source.consumers.groups() if group is None else [source.group(group)]
        rows = [row for each in chosen for row in _lags(each)]
        header = ["group", "topic", "partition", "committed", "end", "lag", "member"]
        out.writelines(f"{line}\n" for line in aligned([header, *rows], right=(2, 3, 4, 5)))


def reset(  # noqa: PLR0913 (the options of a command)
    group: GroupName,
    topic: TopicName,
    *,
    log: LogPath = None,
    earliest: Earliest = False,
    latest: Latest = False,
    offset: Annotated[int | None, typer.Option(help="At this offset.", min=0, show_default=False)] = None,
    place: Annotated[str | None, typer.Option(metavar="FRAME[:INDEX]", help="At this place.")] = None,
    time: Annotated[str | None, typer.Option(metavar="ISO", help="With what was appended then or later.")] = None,
    partition: Partition = None,
) -> None:
    """Let a group go on elsewhere in a topic.

    Its members must have stopped. A group that is not there yet is made.
    """
    to = _chosen(
        {
            "earliest": "earliest" if earliest else None,
            "latest": "latest" if latest else None,
            "offset": offset,
            "place": None if place is None else parse_place(place),
            "time": None if time is None else parse_time(time),
        }
    )
    with opened(log) as target, answer() as out:
        moved = target.group(group).reset(topic, to, partition=partition)
        for (name, part), at in moved.items():
            out.write(f'group "{group}" goes on at offset {at} of partition {part} of "{name}"\n')


def forget(group: GroupName, *, log: LogPath = None) -> None:
    """Forget a group, and how far it has read.

    Its members must have stopped. Nothing waits for it any more.
    """
    with opened(log) as target, answer() as out:
        target.group(group).delete()
        out.write(f'group "{group}" is forgotten\n')


def entries_for(log: Log, topic: str, group: str, *, stop: Callable[[], bool]) -> Iterator[Entry]:
    """Records as a member of the group gets them, until `stop` says so. What the caller has done with is committed."""
    with log.group(group).join(topic) as member:
        while not stop():
            yield from member.poll(wait=PAUSE)
            member.commit()


def _chosen(given: dict[str, Start | End | None]) -> Start | End:
    found = [value for value in given.values() if value is not None]
    if len(found) != 1:
        names = [f"--{name}" for name in given]
        raise CommandError(
            "say where the group goes on" if not found else "a group can go on at one place only",
            hint=f"Give one of {', '.join(names)}.",
        )
    return found[0]


def _summary(group: Group) -> list[str]:
    lags = group.lag()
    topics = ", ".join(sorted({lag.topic for lag in lags}))
    return [group.name, topics, str(len(group.members())), f"{sum(lag.records for lag in lags):,}"]


def _lags(group: Group) -> Iterator[list[str]]:
    for each in group.lag():
        numbers = [str(each.partition), str(each.committed), str(each.end), str(each.records)]
        yield [group.name, each.topic, *numbers, each.member or ""]
