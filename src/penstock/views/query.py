"""Queries: one SELECT of a view, run inside the caller's transaction, and its answer."""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from typing import Any

import apsw
import pyarrow as pa

from penstock.errors import ViewError
from penstock.schema import arrow_schema
from penstock.views.condition import bracketed, check, only
from penstock.views.order import Order
from penstock.views.step import Position, Row, View
from penstock.views.tables import Table, quoted
from penstock.views.values import Values, decoded_rows

CHUNK = 10_000
"""Rows that are Python values at the same time."""


@dataclass(frozen=True)
class Answer:
    """Rows of a view as they were at a position. `next` says where they go on, None if these were the last: give it
    as `after`.
    """

    view: View
    position: Position
    table: pa.Table
    next: str | None = None

    def __iter__(self) -> Iterator[Row]:
        """The rows as Python values."""
        for batch in self.table.to_batches(CHUNK):
            yield from python_rows(self.view, batch)

    def __len__(self) -> int:
        return len(self.table)


def python_rows(view: View, batch: pa.RecordBatch) -> list[Row]:
    try:
        return list(batch.to_pylist())
    except (ValueError, OverflowError) as error:
        raise ViewError(
            f'a value of view "{view.name}" has no form in Python', detail=f"{error}.", hint="Read it as Arrow."
        ) from None


@dataclass(frozen=True)
class Query:
    view: View
    order: Order
    where: str = ""
    limit: int | None = None
    after: str | None = None

    def __post_init__(self) -> None:
        if self.limit is not None and self.limit < 0:
            raise ViewError(f"the limit cannot be {self.limit}")

    def answer(self, connection: apsw.Connection, position: Position) -> Answer:
        statement, parameters = self._statement(position.lineage)
        if self.where:
            check(connection, self.view, self.where)
        batches: list[pa.RecordBatch] = []
        cursor = None
        with only(connection, self.view, self.where):
            found = connection.execute(statement, parameters)
            for rows, more in self._pages(found):
                batches.append(decoded_rows(self.view.schema, [row[:-1] for row in rows]))
                cursor = self.order.cursor(rows[-1][:-1], rows[-1][-1], position.lineage) if more else None
        table = pa.Table.from_batches(batches, arrow_schema(self.view.schema))
        return Answer(self.view, position, table, cursor)

    def _pages(self, found: Iterator[Values]) -> Iterator[tuple[list[Values], bool]]:
        """The rows in pieces, and for each whether the limit has cut off what follows."""
        room = self.limit
        while rows := list(islice(found, CHUNK)):
            kept = rows if room is None else rows[:room]
            room = None if room is None else room - len(kept)
            if kept:
                yield kept, room == 0 and (len(kept) < len(rows) or bool(list(islice(found, 1))))

    def _statement(self, lineage: int) -> tuple[str, dict[str, Any]]:
        table = Table(self.view)
        columns = ", ".join([*map(quoted, self.view.schema.names), table.rowid])
        beyond, parameters = self.order.after(self.after, lineage) if self.after else ("TRUE", {})
        condition = f"{bracketed(self.where or 'TRUE')} AND {beyond}"
        limit = "" if self.limit is None else f" LIMIT {self.limit + 1}"  # one more, to know whether there is more
        return f"SELECT {columns} FROM {table.name} WHERE {condition} ORDER BY {self.order.sql}{limit}", parameters
