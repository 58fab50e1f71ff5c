"""`penstock log queue ...`: queues over topics, made, watched, emptied, and their dead letters delivered again."""

from typing import Annotated, Literal

import typer

from penstock.cli.console import aligned, answer
from penstock.cli.groups import Earliest, Latest
from penstock.cli.options import Hidden, LogPath, TopicName, opened
from penstock.cli.output import fields_of, json_line, names_of, row_of
from penstock.errors import CommandError
from penstock.log.consumers import Delivering, Queue
from penstock.log.consumers.source import End
from penstock.log.hidden import MARKS
from penstock.model.duration import duration_text, parse_duration

QueueName = Annotated[str, typer.Argument(metavar="QUEUE", help="The name of the queue.", show_default=False)]
Limit = Annotated[int | None, typer.Option(help="At most so many.", min=0, show_default=False)]
AT_ONCE = 100


def create(  # noqa: PLR0913 (the options of a command)
    queue: QueueName,
    topic: TopicName,
    *,
    log: LogPath = None,
    visibility: Annotated[
        str, typer.Option(help="A message that is not settled for so long comes again.")
    ] = "30 seconds",
    deliveries: Annotated[int, typer.Option(help="After so many deliveries a message is a dead letter.", min=1)] = 5,
    missing: Annotated[
        Literal["fail", "skip"], typer.Option(help="What to do about messages that retention has taken.")
    ] = "fail",
    earliest: Earliest = False,
    latest: Latest = False,
) -> None:
    """Make a queue over a topic.

    It begins with the first message that is there, unless --latest is given.
    """
    with opened(log) as target, answer() as out:
        delivering = Delivering(parse_duration(visibility), deliveries, missing)
        existed = queue in [each.name for each in target.consumers.queues()]
        target.create_queue(queue, topic, delivering, start=_start(earliest=earliest, latest=latest))
        out.write(f'queue "{queue}" {"is there already" if existed else "created"}: over "{topic}"\n')


def change(
    queue: QueueName,
    *,
    log: LogPath = None,
    visibility: Annotated[
        str | None, typer.Option(help="A message that is not settled for so long comes again.")
    ] = None,
    deliveries: Annotated[int | None, typer.Option(help="After so many a message is a dead letter.", min=1)] = None,
    missing: Annotated[
        Literal["fail", "skip"] | None, typer.Option(help="What to do about messages that retention has taken.")
    ] = None,
) -> None:
    """Let a queue deliver otherwise; for workers that begin from now on."""
    with opened(log) as target, answer() as out:
        found = target.queue(queue)
        now = found.describe().delivering
        found.change(
            Delivering(
                parse_duration(visibility) if visibility else now.visibility,
                deliveries or now.deliveries,
                missing or now.missing,
            )
        )
        out.write(f'queue "{queue}": {_manner(found.describe().delivering)}\n')


def show(
    queue: Annotated[str | None, typer.Argument(metavar="QUEUE", help="Only this queue.", show_default=False)] = None,
    *,
    log: LogPath = None,
) -> None:
    """Show queues: how many messages wait, are with workers, have died."""
    with opened(log) as source, answer() as out:
        chosen = source.consumers.queues() if queue is None else [source.queue(queue)]
        header = ["queue", "topic", "waiting", "in flight", "dead", "skipped", "delivers"]
        rows = [header, *(_row(each) for each in chosen)]
        out.writelines(f"{line}\n" for line in aligned(rows, right=(2, 3, 4, 5)))


def take(queue: QueueName, *, log: LogPath = None, limit: Limit = None, hidden: Hidden = False) -> None:
    """Print messages as JSON lines, and acknowledge what was printed, until there are no more.

    What was not printed when the command ends is delivered to others.
    """
    with opened(log) as source, answer() as out, source.queue(queue).worker() as worker:
        topic = source.topic(source.queue(queue).describe().topic)
        make = fields_of(topic, names_of(topic, hidden=hidden), optional=MARKS)
        left = limit
        while messages := worker.take(AT_ONCE if left is None else min(AT_ONCE, left)) if left != 0 else []:
            for message in messages:
                out.write(json_line(make(row_of(message.entry))))
            out.flush()
            for message in messages:
                message.acknowledge()
            left = None if left is None else left - len(messages)


def redrive(queue: QueueName, *, log: LogPath = None, limit: Limit = None) -> None:
    """Deliver dead letters again, from the oldest on, as if for the first time."""
    with opened(log) as target, answer() as out:
        moved = target.queue(queue).redrive(limit=limit)
        out.write(f'{moved:,} dead letter{"" if moved == 1 else "s"} of queue "{queue}" will be delivered again\n')


def reset(queue: QueueName, *, log: LogPath = None, earliest: Earliest = False, latest: Latest = False) -> None:
    """Let a queue begin anew; no message may be with a worker."""
    to = _start(earliest=earliest, latest=latest)
    if to is None:
        raise CommandError("say where the queue begins", hint="Give --earliest or --latest.")
    with opened(log) as target, answer() as out:
        target.queue(queue).reset(to)
        out.write(f'queue "{queue}" begins {"with the first message" if earliest else "with what comes next"}\n')


def delete(queue: QueueName, *, log: LogPath = None) -> None:
    """Forget a queue; its dead letters stay in their topic."""
    with opened(log) as target, answer() as out:
        target.queue(queue).delete()
        out.write(f'queue "{queue}" is forgotten\n')


def _start(*, earliest: bool, latest: bool) -> End | None:
    if earliest and latest:
        raise CommandError("only one of --earliest and --latest can be given")
    return "earliest" if earliest else "latest" if latest else None


def _row(queue: Queue) -> list[str]:
    found = queue.describe()
    numbers = (found.waiting, found.in_flight, found.dead, found.skipped)
    return [found.name, found.topic, *(f"{each:,}" for each in numbers), _manner(found.delivering)]


def _manner(how: Delivering) -> str:
    skips = ", skips what is missing" if how.missing == "skip" else ""
    return f"{how.deliveries} times, again after {duration_text(how.visibility)}{skips}"
