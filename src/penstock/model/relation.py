"""Relations: what the log holds, seen as streams and tables.

A stream only grows. A table with a key holds the newest record of every key; without one it is a bag of rows. A
relation that exists makes sense by itself: its names can be used, its event time is a timestamp, its key cannot be
NULL. Whether its topic exists and fits is for the log to say.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import timedelta

from penstock.errors import ModelError, Spot, did_you_mean
from penstock.schema import Schema, has_map, type_text

# Names become Spark's tables, topics, tables of stores and parts of addresses; the dot is left for topics of our own.
NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,99}")
TOPIC = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._-]{0,199}")
MOST_PARTITIONS = 1024


@dataclass(frozen=True)
class Stream:
    """Records that are rows, for ever. Without a topic of another name, `topic` is the stream's own name."""

    name: str
    schema: Schema
    event_time: str | None = None
    watermark: timedelta | None = None
    partitions: int = 1
    topic: str = ""
    spot: Spot | None = field(default=None, compare=False, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "topic", self.topic or self.name)
        _check(self)
        if self.watermark is None:
            return
        if self.watermark < timedelta(0):
            raise ModelError(f'the watermark of "{self.name}" cannot be negative', about="watermark")
        if self.event_time is None:
            raise ModelError(
                f'stream "{self.name}" has a watermark but no event time',
                detail="The watermark says how far event times may lag behind the latest one.",
                hint="Name the column that holds the time of the event: event_time = 'at'.",
                about="watermark",
            )


@dataclass(frozen=True)
class Table:
    """Records that are the newest rows of their keys; with an empty `key`, rows that come and go."""

    name: str
    schema: Schema
    key: tuple[str, ...] = ()
    event_time: str | None = None
    partitions: int = 1
    topic: str = ""
    spot: Spot | None = field(default=None, compare=False, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "topic", self.topic or self.name)
        _check(self)
        for number, column in enumerate(self.key):
            _check_key(self, column)
            if column in self.key[:number]:
                raise ModelError(f'column "{column}" is in the key of "{self.name}" twice', about="key")


Relation = Stream | Table


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
    if relation.event_time is not None:
        _check_event_time(relation, relation.event_time)


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
