"""Event times of messages: the least and the largest of many, without reading the records whole.

A message that does not tell its time counts for none. A time further after now than is plausible does not count.
"""

from collections.abc import Iterator, Sequence
from contextlib import suppress
from datetime import datetime, timedelta
from io import BytesIO
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from confluent_kafka import TIMESTAMP_CREATE_TIME, Message
from pyarrow import json as pj

from penstock.errors import SchemaError
from penstock.log.columns import columns_of
from penstock.log.kafka.messages import READ_TIME, TIME, Records, Unreadable
from penstock.log.records import Record, micros
from penstock.log.topic import Topic
from penstock.schema import Type, type_text
from penstock.text import Unfit, parsed_json, reader

MICROSECOND = timedelta(microseconds=1)
FEW = 64
"""So many are read one by one."""


def times_of(topic: Topic, messages: Sequence[Message], now: int) -> tuple[int, int] | None:
    """The range of the messages' event times, in microseconds; None where the topic, or every one of them, has
    none.
    """
    if topic.event_time is None:
        return None
    most = now + topic.plausible // MICROSECOND
    if topic.raw:
        return _range([time for message in messages if (time := _raw_time(message)) is not None], most)
    if topic.values is not None or topic.corrected is not None:
        return _range(list(_whole_times(topic, messages)), most)
    kind = topic.schema.column(topic.event_time).type
    values = [value for message in messages if (value := message.value()) is not None]
    quick = None if len(values) < FEW else _quick_times(values, topic.event_time, kind)
    if quick is not None:
        found = pc.min_max(quick.filter(pc.less_equal(quick, most)))
        least, largest = found["min"].as_py(), found["max"].as_py()
        return None if least is None else (least, largest)
    return _range(list(_times(values, topic.event_time, kind)), most)


def _range(times: Sequence[int], most: int) -> tuple[int, int] | None:
    counted = [time for time in times if time <= most]
    return (min(counted), max(counted)) if counted else None


def _raw_time(message: Message) -> int | None:
    given = dict(message.headers() or ())
    kind, at = message.timestamp()
    if TIME in given:
        try:
            found: datetime = READ_TIME((given[TIME] or b"").decode())
        except (Unfit, UnicodeDecodeError):
            return None
        return micros(found)
    return at * 1000 if kind == TIMESTAMP_CREATE_TIME else None


def _whole_times(topic: Topic, messages: Sequence[Message]) -> Iterator[int]:
    """Of records that have to be read whole for it: their time is made of other columns, or they are not JSON."""
    records, found = Records(topic), []
    for message in messages:
        with suppress(Unreadable, Unfit):
            found.append(records.record_of(message))
    try:
        times = columns_of(topic, found).batch.column(str(topic.event_time))
    except SchemaError:  # one of them does not fit; which, is told by whoever reads them
        fitting = [record for record in found if _fits(topic, record)]
        times = columns_of(topic, fitting).batch.column(str(topic.event_time))
    yield from (time for time in times.cast(pa.int64()).to_pylist() if time is not None)


def _fits(topic: Topic, record: Record) -> bool:
    try:
        columns_of(topic, [record])
    except SchemaError:
        return False
    return True


def _times(values: Sequence[bytes], column: str, kind: Type) -> Iterator[int]:
    """One by one, as records are read."""
    read = reader(kind)
    for value in values:
        try:
            found: Any = parsed_json(value.decode())
            time = read(found.get(column)) if isinstance(found, dict) else None
        except (ValueError, RecursionError):  # Unfit and no UTF-8 among them
            continue
        if time is not None:
            yield micros(time)


def _quick_times(values: Sequence[bytes], column: str, kind: Type) -> pa.ChunkedArray | None:
    """All at once, where each is one line of JSON and tells its time as it is usually written; None otherwise."""
    data = b"\n".join(values)
    parse = pj.ParseOptions(
        explicit_schema=pa.schema([(column, pa.string())]), unexpected_field_behavior="ignore", newlines_in_values=False
    )
    zone = "UTC" if type_text(kind) == "TIMESTAMP" else None
    try:
        table = pj.read_json(BytesIO(data), pj.ReadOptions(use_threads=False, block_size=len(data) + 1), parse)
        times = table.column(column).cast(pa.timestamp("us", zone)).cast(pa.int64())
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError, KeyError):
        return None
    return times if len(times) == len(values) else None
