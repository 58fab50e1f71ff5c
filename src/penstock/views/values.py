"""Values: a column of a view as SQLite keeps it, and back. `decoded` is the inverse of `encoded`.

| type | in SQLite |
|---|---|
| BOOLEAN, TINYINT, SMALLINT, INT, BIGINT | INTEGER |
| FLOAT, DOUBLE | REAL; NaN, which SQLite does not have, is the text NaN: greater than every number, as in Spark |
| DECIMAL | TEXT with all its digits after the point, compared as a number by the collation DECIMAL |
| STRING | TEXT; a BLOB if it is not UTF-8 |
| BINARY | BLOB |
| DATE | TEXT 2024-01-31 |
| TIMESTAMP | TEXT 2024-01-31T12:00:00.000000Z, compared as a time by the collation TIMESTAMP |
| TIMESTAMP_NTZ | the same without Z |
| ARRAY, MAP, STRUCT | TEXT, JSON |

Equal values are equal in SQLite, byte by byte; zero has no sign there: -0.0 becomes 0.0. Dates and times outside of the
years 1 to 9999 are kept, but do not sort.
"""

import json
from collections.abc import Sequence
from typing import Any

import pyarrow as pa

from penstock.schema import Decimal, Scalar, Schema, Type, arrow_schema
from penstock.views.nested import from_json, to_json
from penstock.views.scalars import decoded_scalars, encoded_scalars

Values = tuple[Any, ...]
"""A row as SQLite keeps it."""


def encoded(type_: Type, array: pa.Array) -> list[Any]:
    """The values of an Arrow array as SQLite keeps them."""
    if isinstance(type_, Scalar | Decimal):
        return encoded_scalars(type_, array)
    return [None if value is None else json.dumps(value, separators=(",", ":")) for value in to_json(type_, array)]


def decoded(type_: Type, values: Sequence[Any]) -> pa.Array:
    """The Arrow array whose values SQLite keeps so."""
    if isinstance(type_, Scalar | Decimal):
        return decoded_scalars(type_, values)
    return from_json(type_, [None if text is None else json.loads(text) for text in values])


def encoded_columns(schema: Schema, rows: pa.StructArray) -> list[list[Any]]:
    """The columns of rows, none of which is NULL."""
    return [encoded(column.type, rows.field(at)) for at, column in enumerate(schema.columns)]


def decoded_rows(schema: Schema, rows: Sequence[Values]) -> pa.RecordBatch:
    columns = list(zip(*rows, strict=True)) or [()] * len(schema.columns)
    arrays = [decoded(column.type, values) for column, values in zip(schema.columns, columns, strict=True)]
    return pa.RecordBatch.from_arrays(arrays, schema=arrow_schema(schema))
