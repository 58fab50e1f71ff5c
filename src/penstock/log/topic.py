"""A topic: what was declared once and is stored with the log.

Its schema may grow by nullable columns at the end, and how long its records are kept may change; nothing else does.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Any

from penstock.errors import LogError, SchemaError, did_you_mean
from penstock.log.correction import Correction, correction_json, correction_of
from penstock.log.retention import FOREVER, Retention, retention_json, retention_of
from penstock.log.values import Avro, values_json, values_of
from penstock.schema import Column, Schema, has_map, parse_schema, parse_type, type_text

NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._-]{0,199}")
PLAUSIBLE = timedelta(days=1)
LONGEST = timedelta(days=3_650_000)
RAW = parse_schema("key BINARY, value BINARY, time TIMESTAMP")


@dataclass(frozen=True)
class EventTime:
    """The column that says when it happened. More than `plausible` after the append time it says nothing of how far
    event time has come; a `corrected` one is made from other columns when a record is appended.
    """

    column: str
    plausible: timedelta = PLAUSIBLE
    corrected: Correction | None = None


@dataclass(frozen=True)
class Topic:
    """What was declared; `plausible` and `corrected` are about the event time, see `EventTime`; `retention` is how long
    its records are kept; `values` is how values are written where the log is on Kafka, as JSON if it says nothing.
    """

    name: str
    schemas: tuple[Schema, ...]
    partitions: int = 1
    key: tuple[str, ...] = ()
    event_time: str | None = None
    raw: bool = False
    plausible: timedelta = PLAUSIBLE
    corrected: Correction | None = None
    retention: Retention = FOREVER
    values: Avro | None = None

    def __post_init__(self) -> None:
        if not NAME.fullmatch(self.name):
            raise LogError(
                f'"{self.name}" is not a topic name',
                hint="Letters, digits, dot, dash and underscore, at most 200, not beginning with dot or dash.",
            )
        if not 1 <= self.partitions <= 1024:
            raise LogError(f'topic "{self.name}" cannot have {self.partitions} partitions', hint="Choose 1 to 1024.")
        for name in self.key:
            _check_key(self, self.schema.column(name))
        if self.event_time is not None:
            _check_event_time(self, self.schema.column(self.event_time))
        if self.corrected is not None:
            _check_corrected(self, self.corrected)
        if not timedelta(0) <= self.plausible <= LONGEST:
            raise LogError(
                f'topic "{self.name}" cannot take event times as plausible for {self.plausible}',
                hint=f"Choose 0 to {LONGEST.days:,} days.",
            )
        if self.retention.compacted and not self.key:
            raise not_compacted(self)

    @property
    def schema(self) -> Schema:
        """The newest version."""
        return self.schemas[-1]


def _check_key(topic: Topic, column: Column) -> None:
    if has_map(column.type):
        raise SchemaError(
            f'column "{column.name}" of "{topic.name}" cannot be part of a key',
            detail=f"Its type is {type_text(column.type)}, and Spark does not compare maps.",
            hint="Choose a column that can be compared.",
        )


def _check_event_time(topic: Topic, column: Column) -> None:
    if type_text(column.type) not in ("TIMESTAMP", "TIMESTAMP_NTZ"):
        raise SchemaError(
            f'column "{column.name}" of "{topic.name}" cannot be its event time',
            detail=f"Its type is {type_text(column.type)}.",
            hint="Declare it as TIMESTAMP.",
        )


def _check_corrected(topic: Topic, correction: Correction) -> None:
    if topic.event_time is None:
        raise SchemaError(f'topic "{topic.name}" corrects its event time and has none', hint="Give event_time.")
    times = [topic.schema.column(name).type for name in (topic.event_time, *correction.columns)]
    if len(set(times)) > 1 or topic.event_time in correction.columns or topic.event_time in topic.key:
        raise SchemaError(
            f'the event time of "{topic.name}" cannot be corrected so',
            detail=f"It is {topic.event_time}, made from {', '.join(correction.columns)}.",
            hint="All are columns of one type, and the event time is none of the others, nor in the key.",
        )


def grown(topic: Topic, schema: Schema) -> Topic:
    """The topic with `schema` as its newest version; itself if nothing is new; refused unless only nullable columns
    are added.
    """
    old, new = topic.schema.columns, schema.columns
    if old == new:
        return topic
    if topic.raw:
        raise _refusal(topic, schema, "it is a raw topic")
    for before, after in zip(old, new, strict=False):
        if before != after:
            raise _refusal(topic, schema, f'column "{before.name}" would change')
    if len(new) < len(old):
        raise _refusal(topic, schema, f'column "{old[len(new)].name}" would go')
    for column in new[len(old) :]:
        if not column.nullable:
            raise _refusal(topic, schema, f'the new column "{column.name}" is NOT NULL')
    return replace(topic, schemas=(*topic.schemas, schema))


def _refusal(topic: Topic, schema: Schema, why: str) -> SchemaError:
    return SchemaError(
        f'the schema of "{topic.name}" cannot be changed so: {why}',
        detail=f"It is ({topic.schema}); asked for is ({schema}).",
        hint="Nullable columns can be added at the end. For other changes create a new topic and copy.",
    )


def same_declaration(topic: Topic, other: Topic) -> bool:
    """Whether both are declared equally. Who does not say how long records are kept leaves it as it is."""
    retention = topic.retention if other.retention != FOREVER else FOREVER
    return replace(topic, schemas=(topic.schema,), retention=retention) == other


def not_compacted(topic: Topic) -> LogError:
    return LogError(
        f'topic "{topic.name}" cannot be compacted',
        detail="It has no key, so no record of it replaces another.",
        hint="Let records go by their age or by size: penstock log retain",
    )


def starts_at_offset(topic: Topic, offset: int, partition: int | None, *, otherwise: str) -> list[int]:
    """Where each partition is read from, if that is said by an offset; `otherwise` is how else it can be said."""
    if offset < 0:
        raise LogError(f"{offset} is not an offset", hint="Offsets begin at 0.")
    if partition is None and topic.partitions > 1 and offset > 0:
        raise LogError(
            f'an offset of "{topic.name}" needs its partition',
            detail=f"The topic has {topic.partitions} partitions.",
            hint=f"Name the partition, or start at {otherwise}.",
        )
    return [offset] * topic.partitions


def check_partition(topic: Topic, partition: int) -> None:
    if not 0 <= partition < topic.partitions:
        raise LogError(
            f'topic "{topic.name}" has no partition {partition}',
            detail=f"Its partitions are 0 to {topic.partitions - 1}.",
        )


def unknown_topic(name: str, known: Sequence[str]) -> LogError:
    return LogError(
        f'topic "{name}" does not exist',
        detail=f"The topics are {', '.join(sorted(known))}." if known else "The log has no topics yet.",
        hint=did_you_mean(name, known, otherwise="Create it first: penstock log create"),
    )


def schema_json(schema: Schema) -> list[dict[str, Any]]:
    return [{"name": c.name, "type": type_text(c.type), "nullable": c.nullable} for c in schema.columns]


def schema_of(found: list[dict[str, Any]]) -> Schema:
    return Schema(tuple(Column(c["name"], parse_type(c["type"]), c["nullable"]) for c in found))


def topic_json(topic: Topic) -> dict[str, Any]:
    return {
        "partitions": topic.partitions,
        "key": list(topic.key),
        "event_time": topic.event_time,
        "raw": topic.raw,
        "plausible": topic.plausible // timedelta(microseconds=1),
        "corrected": None if topic.corrected is None else correction_json(topic.corrected),
        "schemas": [schema_json(schema) for schema in topic.schemas],
        **({} if topic.retention == FOREVER else {"retention": retention_json(topic.retention)}),
        **({} if topic.values is None else {"values": values_json(topic.values)}),
    }


def topic_of(name: str, found: dict[str, Any]) -> Topic:
    schemas = tuple(schema_of(each) for each in found["schemas"])
    return Topic(
        name,
        schemas,
        found["partitions"],
        tuple(found["key"]),
        found["event_time"],
        found["raw"],
        timedelta(microseconds=found["plausible"]),
        None if found["corrected"] is None else correction_of(found["corrected"]),
        retention_of(found["retention"]) if "retention" in found else FOREVER,
        values_of(found["values"]) if "values" in found else None,
    )
