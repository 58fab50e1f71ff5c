"""Look-ups: the row of a key, quickly.

What a store says of its views is read once for each lineage, and a connection is kept open; apart from that an answer
is like that of a `ViewReader`: of one moment, with its position. A `Lookup` belongs to one thread.
"""

from collections.abc import Sequence
from pathlib import Path

import apsw
import pyarrow as pa

from penstock.errors import ViewError
from penstock.schema import Array, Column, Map, Struct, arrow_type
from penstock.text import Unfit, reader, text_reader
from penstock.views.database import file_identity, is_empty, opened_for_reading, told
from penstock.views.query import Answer
from penstock.views.sqlite import read_position, read_views
from penstock.views.step import Position, View, find_view
from penstock.views.tables import Table
from penstock.views.values import Values, decoded_rows, encoded


class Lookup:
    def __init__(self, path: Path | str) -> None:
        self.path = path
        self._connection: apsw.Connection | None = None
        self._file: tuple[int, int] | None = None
        self._of: tuple[str, int] | None = None
        self._views: tuple[View, ...] = ()
        self._looks: dict[str, tuple[View, str]] = {}

    def close(self) -> None:
        if self._connection is not None:
            self._connection.close()
        self._connection = self._of = None

    def position(self) -> Position | None:
        with told(self.path):
            return read_position(self._connected())

    def row(self, view: str, key: Sequence[str]) -> Answer:
        """The row under a key, given as text, column by column; an answer without rows if there is none."""
        with told(self.path):
            connection = self._connected()
            connection.execute("BEGIN")
            try:
                return self._answer(connection, view, key)
            finally:
                connection.execute("COMMIT")

    def _answer(self, connection: apsw.Connection, name: str, key: Sequence[str]) -> Answer:
        position = read_position(connection)
        view, statement = self._look(connection, position, name)
        assert position is not None  # where there are views, there is a position
        found: list[Values] = connection.execute(statement, key_values(view, key)).fetchall()
        return Answer(view, position, pa.Table.from_batches([decoded_rows(view.schema, found)]))

    def _look(self, connection: apsw.Connection, position: Position | None, name: str) -> tuple[View, str]:
        if position is None or self._of != (position.log, position.lineage):
            self._views, self._looks = read_views(connection), {}
            self._of = None if position is None else (position.log, position.lineage)
        known = name.lower()  # not as it is written: names have as many forms as somebody likes to send
        if known not in self._looks:
            view = find_view(self._views, name)
            self._looks[known] = view, Table(view).look if view.key else ""
        return self._looks[known]

    def _connected(self) -> apsw.Connection:
        file = file_identity(self.path)
        if self._connection is None or file != self._file:
            self.close()
            self._connection, self._file = opened_for_reading(self.path), file
        elif self._of is None and is_empty(self._connection):  # what will be in it is looked at when it is opened
            self.close()
            self._connection = opened_for_reading(self.path)
        return self._connection


def key_values(view: View, key: Sequence[str]) -> Values:
    """A key that was given as text, as SQLite keeps it."""
    if not view.key:
        raise ViewError(
            f'view "{view.name}" has no key', detail="It is a bag of rows.", hint="Look for rows by a condition."
        )
    if len(key) != len(view.key):
        raise ViewError(
            f'the key of view "{view.name}" has {len(view.key)} column{"" if len(view.key) == 1 else "s"}',
            detail=f"{len(key)} were given; it is {', '.join(view.key)}.",
        )
    columns = [view.schema.column(name) for name in view.key]
    return tuple(_value(view, column, text) for column, text in zip(columns, key, strict=True))


def _value(view: View, column: Column, text: str) -> object:
    nested = isinstance(column.type, Array | Map | Struct)
    try:
        value = (text_reader if nested else reader)(column.type)(text)
        return encoded(column.type, pa.array([value], arrow_type(column.type)))[0]
    except (Unfit, ValueError) as error:
        raise ViewError(
            f'"{text[:60]}" cannot be in column "{column.name}" of view "{view.name}"',
            detail=f"{error}.",
            hint=getattr(error, "hint", ""),
        ) from None
