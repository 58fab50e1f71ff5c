"""Appending: records in JSON become one append, all or nothing; what does not fit is told record by record.

Under a producer and a sequence an append that comes again changes nothing and gets the answer of the first. Only topics
that the pipeline reads take records: nobody writes into the answers.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any
from zlib import crc32

from penstock.errors import PenstockError, SchemaError, ServeError, did_you_mean
from penstock.log import Record, Topic
from penstock.log.columns import columns_of
from penstock.log.protocol import AnyAppended
from penstock.log.rows import record_of, shape_of
from penstock.serve.source import Served
from penstock.text import shown

PREFIX = "http:"
"""Of the names of producers: pipelines are producers too, and nobody may speak for them."""
CHANGES = re.compile(r"(.+)\.[0-9]+\.[^.]+")
"""Names of change topics: pipeline, lineage, view."""
MOST_TOLD = 100
"""Records whose faults are told."""


@dataclass(frozen=True)
class Under:
    """Under which name and number something is appended."""

    producer: str
    sequence: int


class Unfitting(ServeError):
    """Records that do not fit their topic: the number of each, and why."""

    def __init__(self, topic: str, count: int, faults: Sequence[tuple[int, PenstockError]]) -> None:
        super().__init__(
            f'{len(faults)} of {count} records {"does" if len(faults) == 1 else "do"} not fit topic "{topic}"',
            detail="Nothing was appended.",
            hint="Mend them and append all again.",
            status=422,
        )
        self.faults = faults[:MOST_TOLD]


def append(served: Served, topic: str, rows: Sequence[Any], under: Under | None) -> AnyAppended:
    declared = topic_of(served, topic)
    records = _records(declared, rows)
    try:
        if under is None:
            return served.log.append_all({topic: records})
        note = {"topic": topic, "crc": crc32(repr(rows).encode(errors="backslashreplace"))}
        producer = PREFIX + under.producer
        done = served.log.append_all({topic: records}, producer=producer, sequence=under.sequence, note=note)
    except SchemaError as error:
        raise Unfitting(topic, len(rows), _faults(declared, records) or [(0, error)]) from error
    found = served.log.find(producer, under.sequence) if done.repeated else None
    if done.repeated and (found is None or dict(found.note) != note):
        raise ServeError(
            f'producer "{under.producer}" has appended something else under sequence {under.sequence}',
            detail="Nothing was appended.",
            hint="Count on by one for every append, and repeat one only as it was.",
            status=409,
        )
    return done


def topic_of(served: Served, name: str) -> Topic:
    if name not in served.topics:
        raise ServeError(
            f'topic "{name}" is not one that pipeline "{served.pipeline.name}" reads',
            detail=f"It reads {', '.join(sorted(served.topics)) or 'none'}.",
            hint=did_you_mean(name, served.topics),
            status=404,
        )
    if (owner := _answers_of(served, name)) is not None:
        raise ServeError(
            f'topic "{name}" holds answers of pipeline "{owner}"', detail="Only its runs append to it.", status=403
        )
    return served.log.topic(name)


def takes_records(served: Served, name: str) -> bool:
    return name in served.topics and _answers_of(served, name) is None


def _answers_of(served: Served, topic: str) -> str | None:
    """The pipeline whose change topic it is: others may read it, as they read any topic."""
    found = CHANGES.fullmatch(topic)
    last = None if found is None else served.log.last(found[1])
    return None if found is None or last is None or "current" not in last.note else found[1]


def _records(topic: Topic, rows: Sequence[Any]) -> list[Record]:
    shape = shape_of(topic, text=False)
    records: list[Record] = []
    faults: list[tuple[int, PenstockError]] = []
    for number, row in enumerate(rows):
        try:
            if not isinstance(row, dict):
                raise SchemaError("a record is an object", detail=f"this is {shown(row)}.")
            records.append(record_of(shape, row))
        except PenstockError as error:
            faults.append((number, error))
    if faults:
        raise Unfitting(topic.name, len(rows), faults)
    return records


def _faults(topic: Topic, records: Sequence[Record]) -> list[tuple[int, PenstockError]]:
    """What the log finds wrong, record by record; it tells the first only."""
    faults: list[tuple[int, PenstockError]] = []
    for number, record in enumerate(records):
        try:
            columns_of(topic, [record])
        except SchemaError as error:
            faults.append((number, error))
    return faults
