"""Declaring: what a user says of a topic becomes the topic."""

from collections.abc import Sequence
from dataclasses import replace

from penstock.errors import LogError
from penstock.log.topic import RAW, EventTime, Topic
from penstock.schema import Schema, parse_schema


def declared(
    name: str,
    schema: str | Schema | None,
    *,
    partitions: int,
    key: str | Sequence[str],
    event_time: str | EventTime | None,
) -> Topic:
    """The topic; without a schema a raw one, of bytes."""
    raw = schema is None
    if raw and (key or event_time):
        raise LogError(
            f'the raw topic "{name}" has its own key and event time', hint="Leave them out, or give a schema."
        )
    columns = ("key",) if raw else (key,) if isinstance(key, str) else tuple(key)
    told = EventTime("time") if raw else EventTime(event_time) if isinstance(event_time, str) else event_time
    topic = Topic(name, (schema_given(schema),), partitions, columns, raw=raw)
    if told is None:
        return topic
    return replace(topic, event_time=told.column, plausible=told.plausible, corrected=told.corrected)


def schema_given(schema: str | Schema | None) -> Schema:
    return RAW if schema is None else parse_schema(schema) if isinstance(schema, str) else schema
