"""Folding: changes go into a view's table, row by row, and every row is checked.

A row that leaves must be there as it is said to be, and a key that comes must be new: if not, `ViewError` names view,
row and frame. The caller's transaction is then to be given up.

The changes of many frames are folded at once. Within a frame the order of rows does not matter, so they are sorted by
what is done with them, and rows with which the same is done go to SQLite together.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import groupby
from typing import Any

import apsw
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from penstock.errors import ViewError
from penstock.views.step import Change
from penstock.views.steps import grouped
from penstock.views.tables import Table, hashed
from penstock.views.values import Values, encoded_columns

SLICE = 8192
"""Rows that are Python values at the same time."""
COMES, CHANGES, LEAVES = range(3)
"""What happens to a row, in the order in which it is done within a frame: a row of a bag that comes and leaves at once
does no harm then.
"""
Columns = list[list[Any]]


def fold(connection: apsw.Connection, table: Table, changes: Sequence[tuple[int, Change]]) -> None:
    """Folds changes, each with its frame, in order, into the view's table."""
    for group in grouped(changes, lambda change: len(change[1]), most=len(changes)):
        for part in _parts(group):
            (_fold_keyed if table.view.key else _fold_bag)(_Target(connection, table), part)


def _parts(changes: Sequence[tuple[int, Change]]) -> "Iterator[_Part]":
    old = pa.concat_arrays([change.old for _, change in changes])
    new = pa.concat_arrays([change.new for _, change in changes])
    frames = np.repeat([frame for frame, _ in changes], [len(change) for _, change in changes])
    kinds = np.where(_valid(old), np.where(_valid(new), CHANGES, LEAVES), COMES)
    order = np.lexsort((kinds, frames))
    for start in range(0, len(order), SLICE):
        at = order[start : start + SLICE]
        chosen = pa.array(at)
        yield _Part(old.take(chosen), new.take(chosen), frames[at].tolist(), kinds[at].tolist())


def _valid(rows: pa.StructArray) -> np.ndarray[Any, Any]:
    return np.asarray(rows.is_valid())


@dataclass(frozen=True)
class _Part:
    """Rows of a change in the order in which they are folded, with their frames and what happens to them."""

    old: pa.StructArray
    new: pa.StructArray
    frames: list[int]
    kinds: list[int]

    def runs(self) -> Iterator[tuple[int, slice]]:
        """The stretches of rows to which the same happens."""
        start = 0
        for kind, run in groupby(self.kinds):
            end = start + sum(1 for _ in run)
            yield kind, slice(start, end)
            start = end


@dataclass(frozen=True)
class _Target:
    """A table, and how it refuses."""

    connection: apsw.Connection
    table: Table

    def run(self, statement: str, rows: Iterable[Values], missed: Callable[[int], ViewError]) -> None:
        """Runs the statement for every row; each must change one row of the table."""
        self.connection.executemany(statement, self._watched(rows, missed))

    def _watched(self, rows: Iterable[Values], missed: Callable[[int], ViewError]) -> Iterator[Values]:
        """The rows; asked for the next, SQLite has done the one before."""
        for at, row in enumerate(rows):
            yield row
            if self.connection.changes() != 1:
                raise missed(at)

    def of_key(self, columns: Columns) -> Columns:
        return self._chosen(columns, self.table.view.key)

    def of_rest(self, columns: Columns) -> Columns:
        return self._chosen(columns, self.table.rest)

    def _chosen(self, columns: Columns, names: Sequence[str]) -> Columns:
        return [columns[self.table.view.schema.names.index(name)] for name in names]

    def refusal(self, what: str, detail: str = "") -> ViewError:
        return ViewError(
            f'view "{self.table.view.name}": {what}',
            detail=detail,
            hint="The table or the change topic is damaged. Take the store away: a new one fills itself from the log.",
        )

    def misfit(self, what: str, columns: Columns, at: int) -> ViewError:
        """The refusal of one row of a view with a key, with what the table holds instead."""
        row = [[column[at]] for column in columns]
        key = [column[0] for column in self.of_key(row)]
        found = self.connection.execute(self.table.look, key).fetchall()
        there = " and ".join(map(self.shown, found)) or "nothing"
        return self.refusal(what, f"The row is {self.shown([c[0] for c in row])}; under its key there is {there}.")

    def shown(self, row: Sequence[Any]) -> str:
        names = self.table.view.schema.names
        return ", ".join(f"{name} = {_shown(value)}" for name, value in zip(names, row, strict=True))


def _shown(value: Any) -> str:
    text = "NULL" if value is None else repr(value)
    return text if len(text) <= 80 else f"{text[:77]}..."


# A bag


def _fold_bag(target: _Target, part: _Part) -> None:
    rows = pc.if_else(part.new.is_valid(), part.new, part.old)
    values = [hashed(row) for row in zip(*encoded_columns(target.table.view.schema, rows), strict=True)]
    for kind, run in part.runs():
        statement = target.table.add if kind == COMES else target.table.take
        target.run(statement, values[run], partial(_not_there, target, part.frames[run], values[run]))


def _not_there(target: _Target, frames: Sequence[int], rows: Sequence[Values], at: int) -> ViewError:
    what = f"frame {frames[at]} takes away a row that is not there"
    return target.refusal(what, f"It is {target.shown(rows[at][:-1])}.")


# A view with a key


def _fold_keyed(target: _Target, part: _Part) -> None:
    neither = ~(_valid(part.old) | _valid(part.new))
    if neither.any():
        frame = part.frames[int(neither.argmax())]
        raise target.refusal(f"frame {frame} has a deletion that does not say which row leaves")
    schema = target.table.view.schema
    old, new = encoded_columns(schema, part.old), encoded_columns(schema, part.new)
    folds = {COMES: _insert, CHANGES: _update, LEAVES: _delete}
    for kind, run in part.runs():
        folds[kind](target, [each[run] for each in old], [each[run] for each in new], part.frames[run])


def _insert(target: _Target, _old: Columns, new: Columns, frames: Sequence[int]) -> None:
    rows = zip(*new, *target.of_key(new), strict=True)
    what = "adds a row whose key is there already"
    target.run(target.table.insert, rows, lambda at: target.misfit(f"frame {frames[at]} {what}", new, at))


def _update(target: _Target, old: Columns, new: Columns, frames: Sequence[int]) -> None:
    before, after = target.of_key(old), target.of_key(new)
    if before != after:
        at = next(at for at, keys in enumerate(zip(*before, strict=True)) if keys != tuple(c[at] for c in after))
        raise target.misfit(f"frame {frames[at]} replaces a row by one with another key", new, at)
    rows = zip(*target.of_rest(new), *old, strict=True)
    what = "replaces a row that is not there"
    target.run(target.table.update, rows, lambda at: target.misfit(f"frame {frames[at]} {what}", old, at))


def _delete(target: _Target, old: Columns, _new: Columns, frames: Sequence[int]) -> None:
    what = "deletes a row that is not there"
    rows = zip(*old, strict=True)
    target.run(target.table.delete, rows, lambda at: target.misfit(f"frame {frames[at]} {what}", old, at))
