"""`penstock log bound`: how far the slowest reader of a topic may be behind, and what becomes of appends beyond."""

from collections.abc import Iterator
from typing import Annotated

import typer

from penstock.cli.console import answer
from penstock.cli.options import LogPath, TopicName, opened
from penstock.errors import CommandError
from penstock.log import Log
from penstock.log.bound import Bound, Policy
from penstock.log.description import Description
from penstock.model.duration import duration_text, parse_duration

WhenFull = Annotated[
    Policy, typer.Option(help="What becomes of appends beyond the bound: they wait, are dropped, or fail.")
]
Timeout = Annotated[str, typer.Option(help="How long an append waits before it fails.")]


def bound(
    topic: TopicName,
    *,
    log: LogPath = None,
    records: Annotated[
        int | None, typer.Option(help="At most so many unread records.", min=1, show_default=False)
    ] = None,
    when_full: WhenFull = "block",
    timeout: Timeout = "30 seconds",
    none: Annotated[bool, typer.Option("--none", help="The topic has no bound any more.")] = False,
) -> None:
    """Bound how far the slowest group or queue may be behind a topic.

    A topic that no group and no queue reads is not bounded.
    """
    if none == (records is not None):
        raise CommandError("say how many records may be unread", hint="Give --records N, or --none.")
    with opened(log) as target, answer() as out:
        target.set_bound(topic, None if records is None else Bound(records, when_full, parse_duration(timeout)))
        out.write(f'topic "{topic}": {bound_text(target.describe(topic).bound)}\n')


def bound_text(found: Bound | None) -> str:
    if found is None:
        return "no bound"
    then = {
        "block": f"wait up to {duration_text(found.timeout)}",
        "drop": "are dropped",
        "fail": "fail",
    }
    return f"at most {found.records:,} unread, then appends {then[found.policy]}"


def readers_text(log: Log, found: Description) -> Iterator[str]:
    """What is told of a topic's bound and of those who read it."""
    if found.bound:
        yield bound_text(found.bound)
    if found.dropped:
        yield f"{found.dropped:,} record{'' if found.dropped == 1 else 's'} dropped"
    ends = [each.end for each in found.partitions]
    for reader in log.consumers.readers(found.topic.name):
        yield f"{reader}: {sum(ends) - reader.done_of(ends):,} unread"
