"""The columns of a declaration: what stands in the brackets of CREATE STREAM and CREATE TABLE.

    column TYPE [NOT NULL] [PRIMARY KEY], ... [, PRIMARY KEY (a, b)]

Names and types are checked here, where their places are known; types are those of `penstock.schema`.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field

from penstock.errors import ModelError, SchemaError, Spot
from penstock.model.cursor import Cursor
from penstock.schema import Column, Schema, Type, parse_type

PARTS = "A column is a name, a type, and then NOT NULL or PRIMARY KEY."
COLLATED = "Strings are kept by their bytes. Collations belong into queries: WHERE name COLLATE UNICODE_CI = 'ann'."


@dataclass
class Columns:
    """What has been read so far."""

    columns: list[Column] = field(default_factory=list)
    key: list[str] = field(default_factory=list)
    key_spot: Spot | None = None

    @property
    def schema(self) -> Schema:
        return Schema(tuple(self.columns))


def columns_read(cursor: Cursor) -> Columns:
    found = Columns()
    cursor.expect("(", hint="Write the columns in brackets: (id BIGINT, name STRING).")
    _column_or_key(cursor, found)
    while cursor.accept(","):
        _column_or_key(cursor, found)
    if not found.columns:
        raise cursor.error("there are no columns")
    cursor.expect(")")
    return found


def _column_or_key(cursor: Cursor, found: Columns) -> None:
    if cursor.at("PRIMARY", "KEY"):
        _key(cursor, found)
    else:
        _column(cursor, found)


def _column(cursor: Cursor, found: Columns) -> None:
    spot = cursor.spot()
    name = cursor.identifier("the name of a column")
    type_ = _type(cursor)
    nullable = True
    while cursor.peek() is not None and not (cursor.at(",") or cursor.at(")")):
        if cursor.at("PRIMARY", "KEY"):
            _start_key(cursor, found)
            found.key.append(name)
        elif nullable and cursor.accept("NOT", "NULL"):
            nullable = False
        else:
            raise cursor.error(
                f'unexpected {cursor.shown()} after the type of "{name}"',
                hint=COLLATED if cursor.at("COLLATE") else PARTS,
            )
    found.columns.append(Column(name, type_, nullable))
    _check_schema(found, spot)


def _key(cursor: Cursor, found: Columns) -> None:
    _start_key(cursor, found)
    cursor.expect("(")
    found.key_spot = cursor.spot()
    found.key.append(cursor.identifier("a column"))
    while cursor.accept(","):
        found.key.append(cursor.identifier("a column"))
    cursor.expect(")")


def _start_key(cursor: Cursor, found: Columns) -> None:
    if found.key:
        raise cursor.error("there are two PRIMARY KEYs", hint="Write one PRIMARY KEY (a, b) after the columns.")
    found.key_spot = cursor.spot()
    cursor.accept("PRIMARY", "KEY")


def _type(cursor: Cursor) -> Type:
    spot = cursor.spot()
    words = [cursor.identifier("a type"), *_bracketed(cursor)]
    try:
        return parse_type(" ".join(words))
    except SchemaError as error:
        raise ModelError(error.primary, detail=error.detail if words[1:] else "", hint=error.hint, spot=spot) from None


def _bracketed(cursor: Cursor) -> Iterator[str]:
    """What stands in brackets after the name of a type, with the brackets."""
    depth = 0
    while depth or cursor.at("(") or cursor.at("<"):
        token = cursor.next("the end of the type")
        depth += {"(": 1, "<": 1, ")": -1, ">": -1}.get(token.text, 0)
        yield token.text
        if depth == 0:
            return


def _check_schema(found: Columns, spot: Spot) -> None:
    """Column by column, so that the one that is too much is known."""
    try:
        _ = found.schema
    except SchemaError as error:
        raise ModelError(error.primary, detail=error.detail, hint=error.hint, spot=spot) from None
