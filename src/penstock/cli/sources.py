"""Sources: JSON lines and CSV become batches of records to append.

A batch ends when it is full. Unless the source is read `patient`ly it also ends when nothing more is there to
be read at once: what somebody types, or a slow program prints, does not wait for a full batch. Errors name
the line.
"""

import csv
import json
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from penstock.cli.lines import Lines
from penstock.errors import CommandError, PenstockError, SchemaError
from penstock.log import Record, Topic
from penstock.log.hidden import STAMPS
from penstock.log.rows import Shape, record_of, shape_of, unknown_field
from penstock.text import parsed_json


@dataclass(frozen=True)
class Batch:
    """Records to append together.

    `spot` is where they were; `crc` and `bytes` are the checksum and the length of the source up to their end.
    """

    rows: Sequence[Record] | pa.RecordBatch
    spot: str
    crc: int
    bytes: int


def json_batches(lines: Lines, topic: Topic, size: int, *, patient: bool) -> Iterator[Batch]:
    return _batches(lines, _json_rows(lines), shape_of(topic, text=False), size=size, patient=patient)


def csv_batches(lines: Lines, topic: Topic, size: int, *, patient: bool) -> Iterator[Batch]:
    shape = shape_of(topic, text=True)
    return _batches(lines, _csv_rows(lines, shape), shape, size=size, patient=patient)


def located(error: PenstockError, spot: str) -> PenstockError:
    """The same error, with the spot named in its detail."""
    return type(error)(error.primary, detail=f"{spot}: {error.detail}", hint=error.hint)


def _batches(
    lines: Lines, rows: Iterator[Mapping[str, Any]], shape: Shape, *, size: int, patient: bool
) -> Iterator[Batch]:
    records: list[Record] = []
    first = 0
    for row in rows:
        first = first or lines.number
        try:
            records.append(record_of(shape, row))
        except SchemaError as error:
            raise located(error, lines.spot) from error
        if len(records) >= size or (not patient and lines.idle()):
            yield _batch(records, lines, first)
            records, first = [], 0
    if records:
        yield _batch(records, lines, first)


def _batch(records: Sequence[Record], lines: Lines, first: int) -> Batch:
    return Batch(records, f"{lines.name}, lines {first} to {lines.number}", lines.crc, lines.bytes)


def _json_rows(lines: Lines) -> Iterator[Mapping[str, Any]]:
    for line in lines:
        if not line.isspace():
            yield _json_row(line, lines.spot)


def _json_row(line: str, spot: str) -> Mapping[str, Any]:
    try:
        row = parsed_json(line)
    except json.JSONDecodeError as error:
        raise _not_an_object(spot, f"{error.msg}, at character {error.pos + 1}") from None
    except ValueError as error:
        raise _not_an_object(spot, str(error)) from None
    if not isinstance(row, Mapping):
        raise _not_an_object(spot, f"it holds {_kind(row)}")
    return row


def _kind(value: Any) -> str:
    kinds = {list: "an array", str: "a string", bool: "true or false", type(None): "null"}
    return kinds.get(type(value), "a number")


def _not_an_object(spot: str, why: str) -> CommandError:
    return CommandError(
        "a line is not a JSON object",
        detail=f"{spot}: {why}.",
        hint="Write each record as one JSON object on one line.",
    )


def _csv_rows(lines: Lines, shape: Shape) -> Iterator[Mapping[str, Any]]:
    csv.field_size_limit(sys.maxsize)
    rows = csv.reader(lines, strict=True)
    try:
        names = next(rows, [])
        _check_header(names, shape, lines.spot)
        for row in rows:
            if len(row) not in (0, len(names)):
                raise _wrong_length(names, row, lines.spot)
            if row:
                yield dict(zip(names, row, strict=True))
    except csv.Error as error:
        raise CommandError("a line is not CSV", detail=f"{lines.spot}: {error}.") from None


def _check_header(names: Sequence[str], shape: Shape, spot: str) -> None:
    for name in names:
        if name not in shape.readers and name not in STAMPS:
            raise located(unknown_field(shape, name), spot)
        if names.count(name) > 1:
            raise CommandError(f'the header names "{name}" twice', detail=f"{spot}.")


def _wrong_length(names: Sequence[str], row: Sequence[str], spot: str) -> CommandError:
    return CommandError(
        f"a line has {len(row)} fields, the header {len(names)}",
        detail=f"{spot}: the header is {','.join(names)}.",
        hint="A field that holds a comma is written in double quotes.",
    )
