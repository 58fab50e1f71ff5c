"""`penstock log create`, `add-column`, `topics`, `describe`, `check`: what a log holds, if it is whole."""

from collections.abc import Iterator
from typing import Annotated

import typer

from penstock.cli.bounds import Timeout, WhenFull, readers_text
from penstock.cli.care import retention_of, retention_text
from penstock.cli.console import aligned, answer, progress
from penstock.cli.logs import KafkaSettings, LogPlace, opened_at
from penstock.cli.options import LogPath, TopicName, opened
from penstock.errors import CommandError
from penstock.log import Log, Topic
from penstock.log.bound import Bound
from penstock.log.protocol import AnyLog
from penstock.log.retention import FOREVER
from penstock.log.topic import EventTime
from penstock.model.duration import parse_duration
from penstock.schema import Scalar, parse_schema, type_text
from penstock.text import writer

TIME = writer(Scalar("TIMESTAMP"))


def create(  # noqa: PLR0913 (the options of a command)
    topic: TopicName,
    *,
    log: LogPlace = None,
    settings: KafkaSettings = None,
    schema: Annotated[
        str | None, typer.Option(help='Columns, as in Spark SQL: "id BIGINT, name STRING"; a raw topic without them.')
    ] = None,
    key: Annotated[list[str] | None, typer.Option(help="A column of the key; repeat it for more.")] = None,
    event_time: Annotated[str | None, typer.Option(help="The column that says when it happened.")] = None,
    plausible: Annotated[
        str, typer.Option(help="Event times that are further than this after the append time move no watermark.")
    ] = "1 day",
    partitions: Annotated[int, typer.Option(help="Records are in order within a partition.")] = 1,
    bound: Annotated[
        int | None, typer.Option(help="At most so many unread records; see bound.", min=1, show_default=False)
    ] = None,
    when_full: WhenFull = "block",
    timeout: Timeout = "30 seconds",
    keep_for: Annotated[
        str | None, typer.Option(metavar="DURATION", help='Keep records for so long: "7 days".', show_default=False)
    ] = None,
    keep_bytes: Annotated[
        str | None, typer.Option(metavar="SIZE", help="Keep about so many bytes of it: 500MB.", show_default=False)
    ] = None,
    keep_unread: Annotated[bool, typer.Option("--keep-unread", help="Keep what a reader has not read yet.")] = False,
    compacted: Annotated[bool, typer.Option("--compacted", help="Keep only the newest record of each key.")] = False,
) -> None:
    """Create a topic, and the log if there is none yet.

    Creating the same topic again changes nothing. With --key it is a table: the newest record of a key is its
    row. A raw topic has no columns but key, value and time.
    """
    told = EventTime(event_time, parse_duration(plausible)) if event_time else None
    retention = retention_of(keep_for, keep_bytes, unread=keep_unread, compacted=compacted)
    with opened_at(log, settings, create=True) as target:
        existed = topic in [each.name for each in target.topics()]
        if isinstance(target, Log):
            made = target.create_topic(
                topic, schema, partitions=partitions, key=key or (), event_time=told, retention=retention
            )
            if bound is not None:
                target.set_bound(topic, Bound(bound, when_full, parse_duration(timeout)))
        else:
            check_kafkas_own(kept=retention != FOREVER, bounded=bound is not None)
            made = target.create_topic(topic, schema, partitions=partitions, key=key or (), event_time=told)
        with answer() as out:
            out.write(f'topic "{topic}" {"is there already" if existed else "created"}: {_kind(made)}\n')


def add_column(
    topic: TopicName,
    column: Annotated[str, typer.Argument(metavar="COLUMN", help='The new column: "city STRING".', show_default=False)],
    *,
    log: LogPlace = None,
    settings: KafkaSettings = None,
) -> None:
    """Add a column to a topic.

    In the records that are there it is NULL. Several columns are separated by commas.
    """
    with opened_at(log, settings) as target:
        added = parse_schema(column)
        grown = target.change_schema(topic, f"{target.topic(topic).schema}, {added}")
        with answer() as out:
            out.write(f'topic "{topic}" has the columns {grown.schema}\n')


def topics(log: LogPlace = None, *, settings: KafkaSettings = None) -> None:
    """List the topics of a log."""
    with opened_at(log, settings) as source, answer() as out:
        rows = [["topic", "records" if isinstance(source, Log) else "offsets", "partitions", "kind"]]
        for topic in source.topics():
            records = _records(source, topic.name)
            rows.append([topic.name, f"{records:,}", str(topic.partitions), _kind(topic)])
        out.writelines(f"{line}\n" for line in aligned(rows, right=(1, 2)))


def describe(topic: TopicName, log: LogPlace = None, *, settings: KafkaSettings = None) -> None:
    """Show a topic: its columns and partitions.

    And what recovery had to set aside, if it had to.
    """
    with opened_at(log, settings) as source, answer() as out:
        lines = _description(source, topic) if isinstance(source, Log) else _on_kafka(source, topic)
        out.writelines(f"{line}\n" for line in lines)


def check(log: LogPath = None) -> None:
    """Read the whole log and say what is damaged.

    The exit code is 1 if anything is.
    """
    with opened(log) as source, answer() as out:
        damaged = False
        for line, bad in _inspected(source):
            out.write(f"{line}\n")
            damaged = damaged or bad
        if damaged:
            raise typer.Exit(1)


def _kind(topic: Topic) -> str:
    if topic.raw:
        return "raw"
    key = f"table, key {', '.join(topic.key)}" if topic.key else "stream"
    return key + (f", event time {topic.event_time}" if topic.event_time else "")


def check_kafkas_own(*, kept: bool, bounded: bool) -> None:
    """Refuses what the embedded log alone can be told of a topic."""
    if kept or bounded:
        raise CommandError(
            "how long records are kept on Kafka is a setting of Kafka" if kept else "a topic on Kafka has no bound",
            hint="Leave it out, and say it to Kafka: retention.ms, retention.bytes, cleanup.policy."
            if kept
            else "Leave --bound out.",
        )


def _records(log: AnyLog, topic: str) -> int:
    """On Kafka offsets: some of them are marks of transactions."""
    if isinstance(log, Log):
        return log.describe(topic).records
    return sum(log.ends(topic)) - sum(log.begins(topic))


def _columns(topic: Topic) -> Iterator[str]:
    columns = [[c.name, type_text(c.type), "" if c.nullable else "NOT NULL"] for c in topic.schema.columns]
    yield from aligned([["column", "type", ""], *columns])
    yield ""


def _on_kafka(log: AnyLog, name: str) -> Iterator[str]:
    topic = log.topic(name)
    yield f"{topic.name}: {_kind(topic)}; on Kafka, where marks of transactions have offsets too"
    yield ""
    yield from _columns(topic)
    ends = zip(log.begins(name), log.ends(name), strict=True)
    states = [[str(at), str(begin), str(end)] for at, (begin, end) in enumerate(ends)]
    yield from aligned([["partition", "begin", "end"], *states], right=(0, 1, 2))


def _description(log: Log, name: str) -> Iterator[str]:
    found = log.describe(name)
    topic = found.topic
    yield f"{topic.name}: {_kind(topic)}; {found.records:,} record{'' if found.records == 1 else 's'}"
    yield ""
    yield from _columns(topic)
    states = [[str(p.partition), str(p.begin), str(p.end), TIME(p.largest_time) or ""] for p in found.partitions]
    yield from aligned([["partition", "begin", "end", "largest event time"], *states], right=(0, 1, 2))
    if topic.retention != FOREVER:
        yield ""
        yield retention_text(topic.retention)
    if found.compacted:
        yield ""
        yield f"before frame {found.compacted} only the newest record of each key is left"
    if told := list(readers_text(log, found)):
        yield from ["", *told]
    if found.uncorrected:
        yield ""
        yield f"{found.uncorrected:,} event times could not be corrected"
    if found.producers:
        yield ""
        producers = [[p.name, TIME(p.announced) or "", TIME(p.largest_time) or ""] for p in found.producers]
        yield from aligned([["producer", "announced", "largest event time"], *producers])
    for each in log.set_aside():
        if not each.spans or name in [span.topic for span in each.spans]:
            yield ""
            yield str(each)


def _inspected(log: Log) -> Iterator[tuple[str, bool]]:
    """Lines about what was found, and whether each tells of damage."""
    files = frames = records = damaged = 0
    with progress() as bar:
        task = bar.add_task("checking", total=None)
        for finding in log.check():
            files, frames, records = files + 1, frames + finding.frames, records + finding.records
            bar.update(task, records=records)
            for problem in finding.damage:
                damaged += 1
                yield f"{finding.path.relative_to(log.folder)}: {problem}", True
    for each in log.set_aside():
        damaged += each.committed
        yield f"{each}", each.committed
    read = f"{files:,} file{'' if files == 1 else 's'}, {frames:,} frames, {records:,} records"
    yield f"{read}: {f'{damaged:,} damaged' if damaged else 'no damage'}", False
