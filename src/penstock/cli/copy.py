"""`penstock log copy`: topics go from one log to another, in a folder or on Kafka."""

from functools import partial
from typing import Annotated

import typer
from rich.progress import Progress, TaskID

from penstock.cli.console import answer, progress
from penstock.cli.logs import KafkaSettings, opened_at
from penstock.log.copying import Copying, chosen

Where = Annotated[str, typer.Argument(help="A folder, or kafka://HOST:PORT,HOST:PORT/PREFIX.", show_default=False)]


def copy(
    source: Where,
    target: Where,
    topics: Annotated[list[str] | None, typer.Argument(metavar="[TOPIC]...", help="Which; all without it.")] = None,
    *,
    settings: KafkaSettings = None,
) -> None:
    """Copy topics from one log to another.

    Each record is copied once: run again, it goes on where it ended, after a kill too. Topics that the target does not
    have are made as they are in the source. Records stay in their partitions; offsets and append times are new.
    """
    with opened_at(source, settings) as one, opened_at(target, settings, create=True) as other, answer() as out:
        for topic in chosen(one, topics or []):
            copying = Copying(one, other, topic)
            with progress() as bar:
                task = bar.add_task(topic, total=copying.ahead)
                copied = copying.run(partial(_show, bar, task))
            full = f", {copying.dropped:,} left out: the topic is full" if copying.dropped else ""
            out.write(f"{topic}: {copied:,} record{'' if copied == 1 else 's'} copied{full}\n")


def _show(bar: Progress, task: TaskID, records: int) -> None:
    bar.update(task, completed=records, records=records)
