"""SqliteStore: the views of a pipeline in one SQLite file, a table for each.

A step is one transaction: the changes of all views and the position. When `apply` has returned it is on disk. Readers
in any process see the tables between two steps, never within one. The file may be deleted at any time, and be replaced
by an older copy while nobody has it open: following the log makes it whole again.

What leaves must be there: a change that does not fit what the table holds is refused with its view, row and frame,
and nothing is applied.
"""

import json
from collections import defaultdict
from collections.abc import Iterable, Sequence
from pathlib import Path
from types import TracebackType
from typing import Self

import apsw

from penstock.errors import ViewError
from penstock.schema import parse_schema
from penstock.views.database import file_identity, is_empty, opened_for_writing, told, transaction
from penstock.views.folding import fold
from penstock.views.step import Change, Lineage, Position, Step, View
from penstock.views.steps import grouped
from penstock.views.tables import POSITION, VIEWS, Table


class SqliteStore:
    """A `Store` in a file. Use it in a `with`, or call `close`; one thread at a time."""

    def __init__(self, path: Path | str) -> None:
        self.path = path
        with told(path):
            self._connection = opened_for_writing(path)
        self._file = file_identity(path)
        self._lineage = -1
        self._tables: dict[str, Table] = {}

    def close(self) -> None:
        self._connection.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def position(self) -> Position | None:
        with told(self.path):
            self._reopen_if_replaced()
            return read_position(self._connection)

    def apply(self, steps: Sequence[Step]) -> None:
        with told(self.path), transaction(self._connection):
            position = read_position(self._connection)
            if position is None:
                raise ViewError("the store has no views yet", hint="It must be switched to a lineage first.")
            self._know_tables(position.lineage)
            self._take([step for step in steps if step.position.frame > position.frame], position)

    def switch(self, lineage: Lineage, steps: Iterable[Step]) -> None:
        with told(self.path), transaction(self._connection):
            position = read_position(self._connection)
            if position is not None and position.frame >= lineage.frame:
                return
            self._replace_tables(lineage)
            for group in grouped(steps, lambda step: sum(map(len, step.changes))):
                self._take(group, group[0].position)

    def purge(self) -> None:
        """No byte is left in the store's files of rows that it does not hold any more."""
        with told(self.path):
            self._connection.execute("VACUUM")
            is_busy = self._connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").get[0]
        if is_busy:
            raise ViewError(f'the store "{self.path}" is being read', hint="Try again when its readers have left.")

    def _reopen_if_replaced(self) -> None:
        """Who writes on to a file that was deleted writes for nobody."""
        if file_identity(self.path) != self._file:
            self._connection.close()
            self._connection = opened_for_writing(self.path)
            self._file = file_identity(self.path)
            self._lineage = -1

    def _know_tables(self, lineage: int) -> None:
        if self._lineage != lineage:
            self._tables = {view.name: Table(view) for view in read_views(self._connection)}
            self._lineage = lineage

    def _replace_tables(self, lineage: Lineage) -> None:
        for view in read_views(self._connection):
            self._connection.execute(Table(view).drop)
        self._connection.execute(f"DELETE FROM {VIEWS}")
        for view in lineage.tables:
            self._connection.execute(Table(view).create)
            row = view.name, str(view.schema), json.dumps(view.key)
            self._connection.execute(f"INSERT INTO {VIEWS} VALUES (?, ?, ?)", row)
        self._lineage = -1
        self._know_tables(lineage.number)

    def _take(self, steps: Sequence[Step], before: Position) -> None:
        """Folds the steps view by view: within a transaction nobody sees the order."""
        for step in steps:
            if (step.position.log, step.position.lineage) != (before.log, before.lineage):
                raise ViewError(
                    f"the store holds lineage {before.lineage}, not {step.position.lineage}",
                    detail=f"The step is that of frame {step.position.frame}.",
                )
        parts: dict[str, list[tuple[int, Change]]] = defaultdict(list)
        for step in steps:
            for change in step.changes:
                parts[change.view].append((step.position.frame, change))
        for view, changes in parts.items():
            fold(self._connection, self._tables[view], changes)
        if steps:
            self._move(steps[-1].position)

    def _move(self, to: Position) -> None:
        row = to.log, to.lineage, to.frame, to.batch, to.until
        columns = "rowid, log, lineage, frame, batch, until"
        self._connection.execute(f"REPLACE INTO {POSITION} ({columns}) VALUES (1, ?, ?, ?, ?, ?)", row)


def read_position(connection: apsw.Connection) -> Position | None:
    if is_empty(connection):
        return None
    row = connection.execute(f"SELECT log, lineage, frame, batch, until FROM {POSITION}").fetchone()
    return None if row is None else Position(*row)


def read_views(connection: apsw.Connection) -> tuple[View, ...]:
    if is_empty(connection):
        return ()
    rows = connection.execute(f"SELECT name, schema, key FROM {VIEWS} ORDER BY rowid")
    return tuple(View(name, parse_schema(schema), tuple(json.loads(key))) for name, schema, key in rows)
