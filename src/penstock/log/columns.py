"""Columns: rows and Arrow tables become the Arrow columns of a topic, or are refused with the field named.

Nothing is coerced silently: a value must fit its column's type (integers widen, Arrow tables are cast only where the
kind stays and no value is lost). The answer is one record batch: the columns of the topic's newest schema, then the
reserved ones that any record uses.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, TypeAlias

import pyarrow as pa
import pyarrow.compute as pc

from penstock.errors import SchemaError, did_you_mean
from penstock.log.casting import Misfit, cast
from penstock.log.checks import REFUSED, check
from penstock.log.correction import with_times
from penstock.log.fitting import first_misfit
from penstock.log.records import Record
from penstock.log.topic import RAW, Topic
from penstock.schema import Column, Map, Scalar, Schema, Struct, Type, arrow_schema, type_text

Row = Mapping[str, Any] | Record | bytes
Rows: TypeAlias = Iterable[Row] | pa.RecordBatch | pa.Table
HEADERS = pa.map_(pa.string(), pa.binary())
MISFITS = (pa.ArrowInvalid, pa.ArrowTypeError, pa.ArrowNotImplementedError, TypeError, ValueError, OverflowError)
EXTRAS = ("_deleted", "_headers", "_replaces")


@lru_cache(maxsize=1024)
def block_schema(schema: Schema, extras: tuple[str, ...]) -> pa.Schema:
    """The Arrow schema of a block."""
    plain = arrow_schema(schema)
    types = {"_deleted": pa.bool_(), "_headers": HEADERS, "_replaces": pa.struct(list(plain))}
    return pa.schema([*plain, *(pa.field(name, types[name]) for name in extras)])


@dataclass(frozen=True)
class Columns:
    """Records of one topic, ready to be written."""

    topic: Topic
    batch: pa.RecordBatch

    @property
    def extras(self) -> tuple[str, ...]:
        return tuple(name for name in self.batch.schema.names[len(self.topic.schema.columns) :])


def columns_of(topic: Topic, rows: Rows, *, far_times: bool = False) -> Columns:
    if isinstance(rows, pa.Table | pa.RecordBatch):
        batch = _from_arrow(topic, rows)
        batch = _marked(batch) if topic.raw else batch
    else:
        batch = _from_records(topic, [_record(topic, row, at) for at, row in enumerate(rows)])
    if topic.corrected is not None and topic.event_time is not None:
        batch = with_times(topic.corrected, topic.event_time, batch)
    check(topic, batch, far_times=far_times)
    return Columns(topic, batch)


def _from_arrow(topic: Topic, rows: pa.Table | pa.RecordBatch) -> pa.RecordBatch:
    if isinstance(rows, pa.RecordBatch) and rows.schema.equals(block_schema(topic.schema, ())):
        return rows
    table = pa.table(rows) if isinstance(rows, pa.RecordBatch) else rows
    table = table.combine_chunks()
    extras = tuple(name for name in EXTRAS if name in table.schema.names)
    wanted = block_schema(topic.schema, extras)
    for name in table.schema.names:
        if name not in wanted.names:
            raise _unknown_field(topic, name, 0, many=True)
        if table.schema.names.count(name) > 1:
            raise SchemaError(f'column "{name}" is given twice for topic "{topic.name}"')
    arrays = [_cast(topic, table, field) for field in wanted]
    return pa.RecordBatch.from_arrays(arrays, schema=wanted)


def _marked(batch: pa.RecordBatch) -> pa.RecordBatch:
    """A raw record without a value is a deletion, in a table as in a Record."""
    gone = batch.column("value").is_null()
    if not gone.true_count:
        return batch
    at = batch.schema.get_field_index("_deleted")
    if at >= 0:
        return batch.set_column(at, batch.schema.field(at), pc.or_(batch.column(at), gone))
    return batch.add_column(len(RAW.columns), pa.field("_deleted", pa.bool_()), gone)


def _cast(topic: Topic, table: pa.Table, field: pa.Field) -> pa.Array:
    if field.name not in table.schema.names:
        return pa.nulls(len(table), field.type)
    column = table.column(field.name)
    array = (
        column.chunk(0)
        if column.num_chunks == 1
        else pa.concat_arrays(column.chunks)
        if column.num_chunks
        else pa.nulls(0, column.type)
    )
    try:
        fitting = cast(array, field.type)
    except Misfit as error:
        raise _misfit_column(topic, field, array.type, str(error)) from error
    return fitting.fill_null(False) if field.name == "_deleted" else fitting


def _misfit_column(topic: Topic, field: pa.Field, found: pa.DataType, why: str) -> SchemaError:
    return SchemaError(
        f'column "{field.name}" does not fit topic "{topic.name}"',
        detail=f"It has type {found}, the topic wants {field.type}: {why}",
        hint="Cast it before appending.",
    )


def _record(topic: Topic, row: Row, at: int) -> Record:
    record = row if isinstance(row, Record) else Record(row)
    if topic.raw:
        return _raw_record(topic, record, at)
    if not isinstance(record.value, Mapping):
        raise SchemaError(
            f'record {at} is not a row of "{topic.name}"',
            detail=f"It is {type(record.value).__name__}; the columns are {', '.join(topic.schema.names)}.",
            hint="Give a mapping of column names to values.",
        )
    if record.key is not None or record.time is not None:
        raise SchemaError(
            f'record {at} of "{topic.name}" has a key or time of its own',
            hint="A typed topic has them among its columns: put them into the row.",
        )
    for name in record.value:
        if name not in topic.schema.names:
            raise _unknown_field(topic, name, at)
    return record


def _raw_record(topic: Topic, record: Record, at: int) -> Record:
    if not isinstance(record.value, bytes | None):
        raise SchemaError(
            f'record {at} of the raw topic "{topic.name}" is {type(record.value).__name__}',
            hint="Give bytes, or Record(value=bytes, key=bytes, time=...).",
        )
    if record.replaces is not None:
        raise SchemaError(
            f'record {at} of the raw topic "{topic.name}" names the row it replaces',
            hint="Only typed topics can.",
        )
    row = {"key": record.key, "value": record.value, "time": record.time}
    return Record(row, headers=record.headers, deleted=record.deleted or record.value is None)


def _from_records(topic: Topic, records: Sequence[Record]) -> pa.RecordBatch:
    extras = {
        "_deleted": [r.deleted for r in records] if any(r.deleted for r in records) else None,
        "_headers": [list(r.headers.items()) for r in records] if any(r.headers for r in records) else None,
        "_replaces": [r.replaces for r in records] if any(r.replaces is not None for r in records) else None,
    }
    present = {name: values for name, values in extras.items() if values is not None}
    wanted = block_schema(topic.schema, tuple(present))
    for at, record in enumerate(records):
        for name in record.replaces or ():
            if name not in topic.schema.names:
                raise _unknown_field(topic, name, at)
    values = [record.value for record in records]
    arrays = []
    for field in wanted:
        given = present[field.name] if field.name in present else [value.get(field.name) for value in values]  # type: ignore[union-attr]
        arrays.append(_array(topic, field, given))
    return pa.RecordBatch.from_arrays(arrays, schema=wanted)


def _array(topic: Topic, field: pa.Field, values: Sequence[Any]) -> pa.Array:
    type_ = _declared(topic, field.name)
    at = first_misfit(type_, values)
    if at is not None:
        raise _misfit(topic, field.name, type_, at, values[at])
    try:
        return pa.array(values, type=field.type)
    except MISFITS as error:
        at = next(at for at, value in enumerate(values) if not _taken(value, field.type))
        raise _misfit(topic, field.name, type_, at, values[at]) from error


def _declared(topic: Topic, name: str) -> Type:
    reserved: dict[str, Type] = {
        "_deleted": Scalar("BOOLEAN"),
        "_headers": Map(Scalar("STRING"), Scalar("BINARY")),
        "_replaces": Struct(tuple(Column(column.name, column.type) for column in topic.schema.columns)),
    }
    return reserved[name] if name in reserved else topic.schema.column(name).type


def _taken(value: Any, type_: pa.DataType) -> bool:
    try:
        pa.array([value], type=type_)
    except MISFITS:
        return False
    return True


def _misfit(topic: Topic, name: str, type_: Type, at: int, value: Any) -> SchemaError:
    shown = repr(value)
    shown = shown if len(shown) <= 80 else f"{shown[:80]}..."
    return SchemaError(
        f'field "{name}" of record {at} does not fit topic "{topic.name}"',
        detail=f"Its value is {shown} ({type(value).__name__}); the column is {type_text(type_)}.",
        hint=REFUSED,
    )


def _unknown_field(topic: Topic, name: object, at: int, *, many: bool = False) -> SchemaError:
    where = "The columns given have it" if many else f"Record {at} has it"
    return SchemaError(
        f'field "{name}" does not exist in topic "{topic.name}"',
        detail=f"{where}; the columns are {', '.join(topic.schema.names)}.",
        hint=did_you_mean(str(name), topic.schema.names, otherwise=REFUSED),
    )
