"""Relations: what the log holds, seen as streams and tables.

A stream only grows. A table with a key holds the newest record of every key; without one it is a bag of rows. The
history of a table with a key is a stream of all its records, deletions among them. A relation that exists makes sense
by itself: its names can be used, its event time is a timestamp, its key cannot be
NULL. Whether its topic exists and fits is for the log to say.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import timedelta
from typing import Literal, get_args

from penstock.errors import ModelError, Spot, did_you_mean
from penstock.log.correction import Correction
from penstock.log.standing import By
from penstock.log.topic import LONGEST, PLAUSIBLE
from penstock.model.duration import duration_text
from penstock.schema import Column, Scalar, Schema, has_map, type_text

# Names become Spark's tables, topics, tables of stores and parts of addresses; the dot is left for topics of our own.
NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,99}")
TOPIC = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._-]{0,199}")
MOST_PARTITIONS = 1024
ValueFormat = Literal["json", "avro"]
DELETED = "deleted"
"""The column of a history that says whether a version is a deletion."""


@dataclass(frozen=True)
class Stream:
    """Records that are rows, for ever. Without a topic of another name, `topic` is the stream's own name.

    The watermark stays `watermark` behind the largest event time of all records, or of the partition or producer that
    is least far; one that brings nothing for as long as `idle` says is not waited for. Event times that are further
    than `plausible` after the append time say nothing. For so long after their time as `retain` says its rows are
    corrected by what has no time; without it, for ever. A `corrected` event time is the schema's last column; the log
    makes it from others. `value_format` is how the values of a new topic are written where the log is on Kafka.
    """

    name: str
    schema: Schema
    event_time: str | None = None
    watermark: timedelta | None = None
    partitions: int = 1
    topic: str = ""
    watermark_by: By = "stream"
    idle: timedelta | None = None
    plausible: timedelta = PLAUSIBLE
    retain: timedelta | None = None
    corrected: Correction | None = None
    value_format: ValueFormat = "json"
    spot: Spot | None = field(default=None, compare=False, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "topic", self.topic or self.name)
        _check(self)
        _check_watermark(self)
        if self.corrected is not None:
            _check_corrected(self, self.corrected)

    @property
    def given(self) -> Schema:
        """The columns that records are appended with."""
        return self.schema if self.corrected is None else Schema(self.schema.columns[:-1])


@dataclass(frozen=True)
class History(Stream):
    """Every record of a table: its columns, and whether it is a deletion."""


@dataclass(frozen=True)
class Table:
    """Records that are the newest rows of their keys; with an empty `key`, rows that come and go.

    `history` is the name of a second relation, with all records; the `watermark` is that of the history.
    """

    name: str
    schema: Schema
    key: tuple[str, ...] = ()
    event_time: str | None = None
    partitions: int = 1
    topic: str = ""
    history: str | None = None
    watermark: timedelta | None = None
    value_format: ValueFormat = "json"
    spot: Spot | None = field(default=None, compare=False, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "topic", self.topic or self.name)
        _check(self)
        for number, column in enumerate(self.key):
            _check_key(self, column)
            if column in self.key[:number]:
                raise ModelError(f'column "{column}" is in the key of "{self.name}" twice', about="key")
        if self.history is not None:
            _check_history(self, self.history)
        if self.watermark is not None:
            _check_delay(self, self.watermark)
            if self.history is None:
                raise ModelError(
                    f'table "{self.name}" has a watermark but no history',
                    detail="The newest rows of a table are never late; versions of rows may be.",
                    hint="Name a relation for its versions: history = 'versions'.",
                    about="watermark",
                )

    @property
    def given(self) -> Schema:
        """The columns that records are appended with."""
        return self.schema


Relation = Stream | Table


def with_history(relation: Relation) -> tuple[Relation, ...]:
    """The relation, and its history if it has one."""
    if not isinstance(relation, Table) or relation.history is None:
        return (relation,)
    # A deletion needs no more than the key; the other columns may be missing.
    columns = [replace(column, nullable=column.name not in relation.key) for column in relation.schema.columns]
    history = History(
        relation.history,
        Schema((*columns, Column(DELETED, Scalar("BOOLEAN"), nullable=False))),
        event_time=relation.event_time,
        watermark=relation.watermark,
        partitions=relation.partitions,
        topic=relation.topic,
        spot=relation.spot,
    )
    return (relation, history)


def check_name(what: str, name: str) -> None:
    if not NAME.fullmatch(name):
        raise ModelError(
            f'a {what} cannot be named "{name}"',
            hint="Use letters, digits and underscore, at most 100, not beginning with a digit.",
            about="name",
        )


def keyed(schema: Schema, key: Sequence[str]) -> Schema:
    """The schema with the columns of the key NOT NULL."""
    return Schema(tuple(replace(c, nullable=c.nullable and c.name not in key) for c in schema.columns))


def spelled(schema: Schema, name: str) -> str:
    """The name as the schema spells it; a name that the schema does not have stays as it is."""
    return next((known for known in schema.names if known.lower() == name.lower()), name)


def _check(relation: Relation) -> None:
    check_name("stream" if isinstance(relation, Stream) else "table", relation.name)
    if not TOPIC.fullmatch(relation.topic):
        raise ModelError(
            f'a topic cannot be named "{relation.topic}"',
            hint="Use letters, digits, dot, dash and underscore, at most 200, not beginning with dot or dash.",
            about="topic",
        )
    if not 1 <= relation.partitions <= MOST_PARTITIONS:
        raise ModelError(
            f'"{relation.name}" cannot have {relation.partitions} partitions',
            hint=f"Choose 1 to {MOST_PARTITIONS}.",
            about="partitions",
        )
    if relation.value_format not in get_args(ValueFormat):
        raise ModelError(
            f'values of "{relation.name}" cannot be written as {relation.value_format}',
            hint="Choose json or avro.",
            about="value_format",
        )
    if relation.event_time is not None:
        _check_event_time(relation, relation.event_time)


def _check_delay(relation: Relation, watermark: timedelta) -> None:
    if watermark < timedelta(0):
        raise ModelError(f'the watermark of "{relation.name}" cannot be negative', about="watermark")


def _check_history(table: Table, name: str) -> None:
    check_name("history", name)
    if not table.key:
        raise ModelError(
            f'table "{table.name}" cannot have a history',
            detail="It has no key: its rows come and go, and none is a version of another.",
            hint="Write PRIMARY KEY among the columns.",
            about="history",
        )
    if table.event_time is None:
        raise ModelError(
            f'table "{table.name}" has a history but no event time',
            detail="A version holds from its time on; a deletion has one too.",
            hint="Name the column that holds it: event_time = 'since'.",
            about="history",
        )
    if DELETED in (column.lower() for column in table.schema.names):
        raise ModelError(
            f'column "{spelled(table.schema, DELETED)}" of "{table.name}" has a name that its history needs',
            detail=f'In the history, "{DELETED}" says whether a version is a deletion.',
            hint="Choose another name for the column.",
            about="history",
        )


def _check_event_time(relation: Relation, name: str) -> None:
    _check_column(relation, name, about="event_time")
    found = type_text(relation.schema.column(name).type)
    if found not in ("TIMESTAMP", "TIMESTAMP_NTZ"):
        raise ModelError(
            f'column "{name}" of "{relation.name}" cannot be its event time',
            detail=f"Its type is {found}.",
            hint="Declare it as TIMESTAMP.",
            about="event_time",
        )


def _check_watermark(stream: Stream) -> None:
    if stream.watermark is not None:
        _check_delay(stream, stream.watermark)
    if stream.watermark is not None and stream.event_time is None:
        raise ModelError(
            f'stream "{stream.name}" has a watermark but no event time',
            detail="The watermark says how far event times may lag behind the latest one.",
            hint="Name the column that holds the time of the event: event_time = 'at'.",
            about="watermark",
        )
    check_word("watermark_by", stream.watermark_by, get_args(By))
    for option in ("watermark_by", "idle", "plausible", "retain"):
        if getattr(stream, option) != getattr(Stream, option) and stream.event_time is None:
            raise ModelError(
                f'stream "{stream.name}" has {option} but no event time',
                hint="Name the column that holds the time of the event: event_time = 'at'.",
                about=option,
            )
    if stream.watermark_by == "partition" and stream.watermark is None:
        raise ModelError(
            f'the watermark of "{stream.name}" is that of its partitions, but nothing says how far it stays behind',
            hint="Write: watermark = '10 seconds', or '0 seconds'.",
            about="watermark_by",
        )
    if stream.retain is not None and stream.retain < timedelta(0):
        raise ModelError(f'retain of "{stream.name}" cannot be negative', about="retain")
    if stream.idle is not None and stream.idle <= timedelta(0):
        raise ModelError(f'idle of "{stream.name}" must be longer than nothing', about="idle")
    if not timedelta(0) <= stream.plausible <= LONGEST:
        raise ModelError(
            f'plausible of "{stream.name}" cannot be {duration_text(stream.plausible)}',
            hint=f"It is at most {LONGEST.days:,} days.",
            about="plausible",
        )


def _check_corrected(stream: Stream, correction: Correction) -> None:
    for name in correction.columns:
        _check_event_time(stream, name)
    if len({stream.schema.column(name).type for name in (*correction.columns, str(stream.event_time))}) > 1:
        raise ModelError(
            f'the times that correct "{stream.name}" have several types',
            hint="Declare all of them as TIMESTAMP, or all as TIMESTAMP_NTZ.",
            about="event_time",
        )


def check_word(option: str, value: str, words: tuple[str, ...]) -> None:
    if value not in words:
        raise ModelError(
            f'{option} cannot be "{value}"',
            detail=f"It is {', '.join(words[:-1])} or {words[-1]}.",
            hint=did_you_mean(value, words),
            about=option,
        )


def _check_key(table: Table, name: str) -> None:
    _check_column(table, name, about="key")
    column = table.schema.column(name)
    if has_map(column.type):
        raise ModelError(
            f'column "{name}" cannot be part of the key of "{table.name}"',
            detail=f"Its type is {type_text(column.type)}, and Spark does not compare maps.",
            hint="Choose a column that can be compared.",
            about="key",
        )
    if column.nullable:
        raise ModelError(
            f'column "{name}" is part of the key of "{table.name}" and can be NULL',
            hint="Declare it NOT NULL.",
            about="key",
        )


def _check_column(relation: Relation, name: str, *, about: str) -> None:
    names = relation.schema.names
    if name not in names:
        raise ModelError(
            f'column "{name}" does not exist in "{relation.name}"',
            detail=f"The columns are {', '.join(names)}.",
            hint=did_you_mean(name, names),
            about=about,
        )
