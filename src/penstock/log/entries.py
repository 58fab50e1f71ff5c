"""Entries: Arrow batches become records where they stand, as Python values."""

from collections.abc import Iterator
from datetime import datetime
from typing import Any

import pyarrow as pa

from penstock.errors import LogError
from penstock.log.records import Entry, Place
from penstock.log.topic import Topic


def entries_of(topic: Topic, batch: pa.RecordBatch) -> Iterator[Entry]:
    """One entry per row; `batch` has all columns of the topic, the hidden ones included."""
    columns = {name: _values(topic, name, batch.column(at)) for at, name in enumerate(batch.schema.names)}
    names = topic.schema.names
    for row in range(len(batch)):
        value = {name: columns[name][row] for name in names}
        yield Entry(
            topic=topic.name,
            partition=columns["_partition"][row],
            offset=columns["_offset"][row],
            place=Place.of(columns["_place"][row]),
            appended_at=columns["_appended_at"][row],
            key=value["key"] if topic.raw else tuple(value[name] for name in topic.key) or None,
            value=value["value"] if topic.raw else value,
            time=_time(topic, value),
            headers=dict(columns["_headers"][row] or ()),
            deleted=columns["_deleted"][row],
            replaces=columns["_replaces"][row],
        )


def _values(topic: Topic, name: str, array: pa.Array) -> list[Any]:
    try:
        return list(array.to_pylist())
    except (ValueError, OverflowError) as error:  # only appends with `far_times` bring such
        raise LogError(
            f'a value of column "{name}" of topic "{topic.name}" has no form in Python',
            detail=f"{error}.",
            hint="Read it as Arrow.",
        ) from error


def _time(topic: Topic, value: dict[str, Any]) -> datetime | None:
    return value[topic.event_time] if topic.event_time else None
