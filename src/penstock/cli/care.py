"""`penstock log retain`, `compact`: how long records are kept, and letting go those that are kept no longer."""

import re
from collections.abc import Iterator
from dataclasses import replace
from typing import Annotated, Final

import typer

from penstock.cli.console import answer, busy, progress
from penstock.cli.options import LogPath, opened
from penstock.errors import CommandError
from penstock.log import Log
from penstock.log.compaction import Compacted
from penstock.log.expiry import Expired
from penstock.log.retention import FOREVER, Retention
from penstock.model.duration import duration_text, parse_duration

SomeTopic = Annotated[
    str | None, typer.Argument(metavar="[TOPIC]", help="One topic; all without it.", show_default=False)
]
Age = Annotated[
    str | None,
    typer.Option("--for", metavar="DURATION", help='Keep records for so long: "7 days".', show_default=False),
]
Size = Annotated[
    str | None,
    typer.Option("--bytes", metavar="SIZE", help="Keep about so many bytes of the topic: 500MB.", show_default=False),
]
Unread = Annotated[
    bool | None,
    typer.Option("--unread/--no-unread", help="Keep what a reader has not read yet.", show_default=False),
]
UNITS: Final = {"": 1, "kb": 10**3, "mb": 10**6, "gb": 10**9, "tb": 10**12}


def retain(
    topic: SomeTopic = None,
    *,
    log: LogPath = None,
    age: Age = None,
    size: Size = None,
    unread: Unread = None,
    forever: Annotated[bool, typer.Option("--forever", help="Keep records however old and many.")] = False,
) -> None:
    """Let records go that are kept no longer.

    With --for, --bytes, --unread or --forever, it first says how long records of the topic are kept from now on. They
    go in whole files, the oldest first; what frames say of themselves stays.
    """
    changes = age is not None or size is not None or unread is not None or forever
    if changes and topic is None:
        raise CommandError("how long records are kept is said of a topic", hint="Name it.")
    with opened(log) as target, answer() as out:
        if topic is not None and changes:
            target.change_retention(
                topic, _changed(target.topic(topic).retention, age, size, unread=unread, forever=forever)
            )
        with busy("letting records go"):
            gone = target.retain(None if topic is None else [topic])
        out.writelines(f"{line}\n" for line in _told(target, topic, gone))


def compact(
    topic: SomeTopic = None,
    *,
    log: LogPath = None,
    always: Annotated[
        bool | None,
        typer.Option("--always/--never", help="From now on also in the background, or not.", show_default=False),
    ] = None,
    deletions: Annotated[
        str | None,
        typer.Option(metavar="DURATION", help='Keep deletions for so long: "1 day".', show_default=False),
    ] = None,
) -> None:
    """Keep only the newest record of each key.

    Of one topic, or of all that are compacted in the background too. Records that no pipeline has still to read go,
    their offsets stay. Deletions go in a later run.
    """
    changes = always is not None or deletions is not None
    if changes and topic is None:
        raise CommandError("how records are kept is said of a topic", hint="Name it.")
    with opened(log) as target, answer() as out:
        if topic is not None and changes:
            before = target.topic(topic).retention
            kept = before.deletions if deletions is None else parse_duration(deletions)
            compacted = before.compacted if always is None else always
            target.change_retention(topic, replace(before, compacted=compacted, deletions=kept))
        if always is False:
            out.write(f'topic "{topic}": {retention_text(target.topic(str(topic)).retention)}\n')
            return
        done = _compacted(target, None if topic is None else [topic])
        out.writelines(f"{each.topic}: {each.before:,} records, {each.after:,} left\n" for each in done)
        out.write("" if done else "nothing to compact\n")


def _compacted(log: Log, topics: list[str] | None) -> list[Compacted]:
    """With a bar that shows how many records were looked at."""
    seen = 0
    with progress() as bar:
        task = bar.add_task("compacting", total=None)

        def told(count: int) -> None:
            nonlocal seen
            seen += count
            bar.update(task, records=seen)

        return log.compact(topics, told=told)


def _changed(
    before: Retention, age: str | None, size: str | None, *, unread: bool | None, forever: bool = False
) -> Retention:
    if forever:
        before = replace(before, age=None, bytes=None)
    return replace(
        before,
        age=parse_duration(age) if age is not None else before.age,
        bytes=parse_size(size) if size is not None else before.bytes,
        unread=before.unread if unread is None else unread,
    )


def _told(log: Log, topic: str | None, gone: list[Expired]) -> Iterator[str]:
    if topic is not None:
        yield f'topic "{topic}": {retention_text(log.topic(topic).retention)}'
    for each in gone:
        yield f"{each.topic}: {each.records:,} record{'' if each.records == 1 else 's'} gone, {each.bytes:,} bytes"
    if not gone:
        yield "nothing to let go"


def retention_text(retention: Retention) -> str:
    """`records are kept for 7 days, those that are not read yet longer`"""
    kept = [f"for {duration_text(retention.age)}"] if retention.age is not None else []
    kept += [f"as long as the topic has about {retention.bytes:,} bytes"] if retention.bytes is not None else []
    said = f"records are kept {' and '.join(kept) or 'for ever'}"
    if kept and retention.unread:
        said += ", those that are not read yet longer"
    if retention.compacted:
        said += f"; compacted, deletions are kept for {duration_text(retention.deletions)}"
    return said


def parse_size(text: str) -> int:
    """`500MB`  =>  500_000_000"""
    found = re.fullmatch(r"\s*(\d+)\s*([a-z]*)\s*", text.lower().replace("_", ""))
    if found is None or found[2] not in UNITS:
        raise CommandError(f'"{text}" is no size', hint="Write it as 500MB, or as a number of bytes.")
    return int(found[1]) * UNITS[found[2]]


def retention_of(age: str | None, size: str | None, *, unread: bool, compacted: bool) -> Retention:
    """Of a new topic."""
    return replace(_changed(FOREVER, age, size, unread=unread), compacted=compacted)
