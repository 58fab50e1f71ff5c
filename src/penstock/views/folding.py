"""Folding: a change goes into a view's table, row by row, and every row is checked.

A row that leaves must be there as it is said to be, and a key that comes must be new: if not, `ViewError` names view,
row and frame. The caller's transaction is then to be given up.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import apsw
import pyarrow as pa
import pyarrow.compute as pc

from penstock.errors import ViewError
from penstock.views.step import Change
from penstock.views.tables import Table, hashed
from penstock.views.values import Values, encoded_columns

SLICE = 8192
"""Rows that are Python values at the same time."""


def fold(connection: apsw.Connection, table: Table, change: Change, *, frame: int) -> None:
    folded = _Keyed if table.view.key else _Bag
    for start in range(0, len(change), SLICE):
        part = Change(change.view, change.old.slice(start, SLICE), change.new.slice(start, SLICE))
        folded(connection, table, frame).fold(part)


class _Folding:
    """What both kinds of views share: running a statement for many rows, each of which must change one."""

    def __init__(self, connection: apsw.Connection, table: Table, frame: int) -> None:
        self._connection = connection
        self._table = table
        self._frame = frame

    def _columns(self, rows: pa.StructArray, which: pa.Array) -> list[list[Any]]:
        chosen = rows if which.true_count == len(which) else rows.filter(which)
        return encoded_columns(self._table.view.schema, chosen)

    def _run(self, statement: str, rows: Iterable[Values], missed: Callable[[Values], ViewError]) -> None:
        self._connection.executemany(statement, self._watched(rows, missed))

    def _watched(self, rows: Iterable[Values], missed: Callable[[Values], ViewError]) -> Iterator[Values]:
        """The rows; asked for the next, SQLite has done the one before."""
        for row in rows:
            yield row
            if self._connection.changes() != 1:
                raise missed(row)

    def _refusal(self, primary: str, detail: str) -> ViewError:
        return ViewError(
            f'view "{self._table.view.name}": {primary}',
            detail=detail,
            hint="The table or the change topic is damaged. Take the store away: a new one fills itself from the log.",
        )

    def _shown(self, row: Sequence[Any]) -> str:
        pairs = zip(self._table.view.schema.names, row, strict=True)
        return ", ".join(f"{name} = {_shown(value)}" for name, value in pairs)


class _Bag(_Folding):
    def fold(self, change: Change) -> None:
        added = self._columns(change.new, change.new.is_valid())
        taken = self._columns(change.old, change.old.is_valid())
        self._run(self._table.add, map(hashed, zip(*added, strict=True)), self._not_there)
        self._run(self._table.take, map(hashed, zip(*taken, strict=True)), self._not_there)

    def _not_there(self, row: Values) -> ViewError:
        return self._refusal(
            f"frame {self._frame} takes away a row that is not there", f"It is {self._shown(row[:-1])}."
        )


class _Keyed(_Folding):
    def fold(self, change: Change) -> None:
        comes, leaves = change.new.is_valid(), change.old.is_valid()
        if pc.or_(comes, leaves).false_count:
            raise self._refusal(f"frame {self._frame} has a deletion that does not say which row leaves", "")
        self._delete(self._columns(change.old, pc.and_not(leaves, comes)))
        both = pc.and_(comes, leaves)
        self._update(self._columns(change.old, both), self._columns(change.new, both))
        self._insert(self._columns(change.new, pc.and_not(comes, leaves)))

    def _delete(self, old: list[list[Any]]) -> None:
        self._run(self._table.delete, zip(*old, strict=True), lambda row: self._otherwise(row))

    def _update(self, old: list[list[Any]], new: list[list[Any]]) -> None:
        names = self._table.view.schema.names
        for at in map(names.index, self._table.view.key):
            if old[at] != new[at]:
                odd = next(row for row, (a, b) in enumerate(zip(old[at], new[at], strict=True)) if a != b)
                raise self._another_key([column[odd] for column in old], [column[odd] for column in new])
        set_ = [new[names.index(name)] for name in self._table.rest]
        rows = zip(*set_, *old, strict=True)
        self._run(self._table.update, rows, lambda row: self._otherwise(row[len(set_) :]))

    def _insert(self, new: list[list[Any]]) -> None:
        names = self._table.view.schema.names
        rows = zip(*new, *(new[names.index(name)] for name in self._table.view.key), strict=True)
        self._run(self._table.insert, rows, lambda row: self._there_already(row[: len(new)]))

    def _another_key(self, old: Sequence[Any], new: Sequence[Any]) -> ViewError:
        return self._refusal(
            f"frame {self._frame} replaces a row by one with another key",
            f"The row is {self._shown(old)}; the other is {self._shown(new)}.",
        )

    def _otherwise(self, row: Values) -> ViewError:
        return self._refusal(
            f"frame {self._frame} replaces a row that is not there",
            f"The row is {self._shown(row)}; {self._stored(row)}.",
        )

    def _there_already(self, row: Values) -> ViewError:
        return self._refusal(
            f"frame {self._frame} adds a row whose key is there already",
            f"The row is {self._shown(row)}; {self._stored(row)}.",
        )

    def _stored(self, row: Values) -> str:
        names = self._table.view.schema.names
        key = tuple(row[names.index(name)] for name in self._table.view.key)
        found = self._connection.execute(self._table.look, key).fetchall()
        return f"under its key there is {' and '.join(map(self._shown, found)) or 'nothing'}"


def _shown(value: Any) -> str:
    text = "NULL" if value is None else repr(value)
    return text if len(text) <= 80 else f"{text[:77]}..."
