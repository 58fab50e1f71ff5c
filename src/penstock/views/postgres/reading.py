"""Reading: the views in a schema of PostgreSQL as Arrow, each with the position that it had.

Position and rows are of one moment, also while the store writes and switches. A view is read at once and as a whole;
`reader_of` lets it be asked in the ways of `ViewReader`. For large views ask PostgreSQL itself.
"""

import json
from collections.abc import Sequence
from struct import unpack
from typing import Any

import pyarrow as pa
from psycopg.adapt import Loader
from psycopg.errors import UndefinedTable
from psycopg.pq import Format

from penstock.errors import ViewError, without_secrets
from penstock.schema import Decimal, Scalar, Type, arrow_type
from penstock.views.copied import copied
from penstock.views.nested import from_json
from penstock.views.postgres.catalog import Catalog
from penstock.views.postgres.connecting import connected, told, transaction
from penstock.views.postgres.tables import FAR, Table
from penstock.views.postgres.texts import plain, plain_json
from penstock.views.postgres.types import DAY, EPOCH_DAYS
from penstock.views.reading import ViewReader
from penstock.views.step import Position, View, find_view

CHUNK = 10_000
TRIES = 10
TIMES = {"DATE": EPOCH_DAYS, "TIMESTAMP": EPOCH_DAYS * DAY, "TIMESTAMP_NTZ": EPOCH_DAYS * DAY}


def position_in(url: str, schema: str) -> Position | None:
    """How far the store has come."""
    with connected(url) as connection, told(url), transaction(connection, "READ ONLY") as cursor:
        return Catalog(schema).position(cursor)[1]


def views_in(url: str, schema: str) -> tuple[View, ...]:
    with connected(url) as connection, told(url), transaction(connection, "READ ONLY") as cursor:
        return tuple(table.view for table in Catalog(schema).tables(cursor))


def rows_in(url: str, schema: str, view: str) -> tuple[View, Position, list[pa.StructArray]]:
    """The view's rows, in pieces, and the position at which it held them."""
    with connected(url) as connection:
        for cls, oid in ((_Long, 1114), (_Long, 1184), (_Int, 1082), (_Text, 3802)):
            connection.adapters.register_loader(oid, cls)
        with told(url):
            for _ in range(TRIES):
                try:
                    return _rows(connection, Catalog(schema), view)
                except UndefinedTable:  # a switch, between the look at the catalog and that at the table
                    continue
    raise ViewError(f'view "{view}" in "{without_secrets(url)}" cannot be read', detail="Its table is missing.")


def _rows(connection: Any, catalog: Catalog, view: str) -> tuple[View, Position, list[pa.StructArray]]:
    with transaction(connection, "ISOLATION LEVEL REPEATABLE READ READ ONLY") as cursor:
        _, position = catalog.position(cursor)
        tables = catalog.tables(cursor)
        found = find_view(tuple(table.view for table in tables), view)
        assert position is not None  # where there are views, there is a position
        table = next(table for table in tables if table.view == found)
        pieces = []
        with connection.cursor(name="rows", binary=True) as rows:
            rows.execute(f"SELECT {table.columns}, {FAR} FROM {table.base}")
            while page := rows.fetchmany(CHUNK):
                pieces.append(_struct(table, page))
        return found, position, pieces


def reader_of(url: str, schema: str, view: str) -> ViewReader:
    """A reader of one view, as it is now, in memory."""
    return copied(*rows_in(url, schema, view))


def _struct(table: Table, page: Sequence[Sequence[Any]]) -> pa.StructArray:
    *columns, fars = (list(each) for each in zip(*page, strict=True))
    for at, text in enumerate(fars):
        for column, value in json.loads(text).items() if text else ():
            type_ = table.view.schema.columns[int(column)].type
            columns[int(column)][at] = value - TIMES[type_.name] if isinstance(type_, Scalar) else value
    declared = table.view.schema.columns
    arrays = [_array(column.type, values) for column, values in zip(declared, columns, strict=True)]
    fields = [pa.field(column.name, arrow_type(column.type)) for column in declared]
    return pa.StructArray.from_arrays(arrays, fields=fields)


def _array(type_: Type, values: list[Any]) -> pa.Array:
    wanted = arrow_type(type_)
    match type_:
        case Scalar("DATE" | "TIMESTAMP" | "TIMESTAMP_NTZ" as name):
            whole = pa.int32() if name == "DATE" else pa.int64()
            return pa.array([None if v is None else v + TIMES[name] for v in values], whole).cast(wanted)
        case Scalar("STRING"):
            data = [None if v is None else plain(v).encode(errors="surrogateescape") for v in values]
            return pa.array(data, pa.binary()).view(pa.string())
        case Scalar() | Decimal():
            return pa.array(values, wanted)
        case _:
            return from_json(type_, [None if v is None else plain_json(json.loads(v)) for v in values])


class _Long(Loader):  # type: ignore[misc]
    """Times as the number that they are."""

    format = Format.BINARY

    def load(self, data: Any) -> int:
        return int(unpack("!q", data)[0])


class _Int(Loader):  # type: ignore[misc]
    format = Format.BINARY

    def load(self, data: Any) -> int:
        return int(unpack("!i", data)[0])


class _Text(Loader):  # type: ignore[misc]
    """JSON as it is written; its first byte is a version."""

    format = Format.BINARY

    def load(self, data: Any) -> str:
        return bytes(data)[1:].decode()
