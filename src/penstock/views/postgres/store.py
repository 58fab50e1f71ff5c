"""PostgresStore: the views of a pipeline in a schema of PostgreSQL.

A call is one transaction: the changes of all views and the position. Readers see the views between two calls, never
within one. A switch fills tables that nobody sees yet, in one transaction, and gives them to the readers in another, a
short one: it waits until nobody is reading in a transaction that stays open, and what was filled is kept meanwhile. A
connection that was lost is made anew by the next call; whether its last transaction has happened, the position says.

What leaves must be there: a change that does not fit what the table holds is refused with its view, row and frame, and
nothing is applied.
"""

import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from itertools import chain
from types import TracebackType
from typing import Any, Self

import psycopg
from psycopg import errors

from penstock.errors import ViewError, without_secrets
from penstock.views.postgres.catalog import Catalog
from penstock.views.postgres.connecting import being_read, connected, told, transaction
from penstock.views.postgres.merging import merge
from penstock.views.postgres.showing import show
from penstock.views.postgres.tables import INDEXES, Table, check_schema
from penstock.views.step import Change, Lineage, Position, Step
from penstock.views.steps import grouped

LOCKING_MILLISECONDS = 100
PAUSE_SECONDS = 0.4
SHOWING_SECONDS = 10.0
"""A new generation waits for readers for so long at a time, lets others read in between, and says so after so long."""
Say = Callable[[str], None]


class PostgresStore:
    """A `Store` at an address, `postgresql://...`. Use it in a `with`, or call `close`; one thread at a time."""

    def __init__(self, url: str, schema: str, *, say: Say = lambda _: None) -> None:
        check_schema(schema)
        self._url = url
        self._say = say
        self._catalog = Catalog(schema)
        self._held: Any = None
        self._generation = -1
        self._tables: dict[str, Table] = {}
        self._merging: Table | None = None

    def __repr__(self) -> str:
        return f"PostgresStore({without_secrets(self._url)!r}, {self._catalog.schema!r})"

    def close(self) -> None:
        if self._held is not None:
            self._held.close()
        self._held = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def position(self) -> Position | None:
        """In one statement: a follower asks all the time."""
        connection = self._connected()
        with told(self._url), connection.cursor() as cursor, suppress(errors.UndefinedTable):
            return self._catalog.read(cursor)[1]
        return None

    def apply(self, steps: Sequence[Step]) -> None:
        try:
            self._apply(steps)
        except ViewError as error:
            if not isinstance(error.__cause__, errors.ProgramLimitExceeded):
                raise
            self._drop_indexes(error.__cause__)  # a value is too long for one of them
            self._apply(steps)

    def _apply(self, steps: Sequence[Step]) -> None:
        with self._transaction() as cursor:
            generation, position = self._catalog.position(cursor, lock=True)
            if position is None:
                raise ViewError("the store has no views yet", hint="It must be switched to a lineage first.")
            self._know_tables(cursor, generation)
            fresh = [step for step in steps if step.position.frame > position.frame]
            self._take(cursor, fresh, position, set())
            if fresh:
                self._catalog.move(cursor, fresh[-1].position)

    def switch(self, lineage: Lineage, steps: Iterable[Step]) -> None:
        generation = self._filled(lineage, steps)
        if generation is not None:
            self._show_at_last(lineage, generation)
            self._tidy()

    def _filled(self, lineage: Lineage, steps: Iterable[Step]) -> int | None:
        """The generation that holds the lineage, filled by this call or an earlier one; None if it is done already."""
        told = iter(steps)
        with self._transaction() as cursor:
            self._catalog.make(cursor)
            generation, position = self._catalog.position(cursor, lock=True)
            if position is not None and position.frame >= lineage.frame:
                return None
            first, waiting = next(told), self._catalog.filled(cursor)
            if (
                waiting is not None
                and _holds(waiting[1], lineage, first.position.log)
                and self._catalog.has(cursor, self._tables_of(lineage, waiting[0]))
            ):
                return waiting[0]
            made = 1 + (generation if waiting is None else max(generation, waiting[0]))
            self._catalog.keep_filled(cursor, made, self._fill(cursor, lineage, made, chain([first], told)))
            return made

    def _fill(self, cursor: Any, lineage: Lineage, generation: int, steps: Iterable[Step]) -> Position:
        """Makes the tables and fills them; how far that is."""
        tables, used = self._made(cursor, lineage, generation), set[str]()
        for group in grouped(steps, lambda step: sum(map(len, step.changes))):
            self._take(cursor, group, group[0].position, used)
            last = group[-1].position
        for table in tables:
            self._index(cursor, table)
            cursor.execute(f"ANALYZE {table.base}")
        return last

    def _show_at_last(self, lineage: Lineage, generation: int) -> None:
        """Who waits for a lock is in the way of all who come after: it waits a moment, lets them read, tries again."""
        until = time.monotonic() + SHOWING_SECONDS
        while True:
            try:
                return self._show(lineage, generation)
            except _BeingRead:
                if time.monotonic() >= until:
                    raise being_read(self._url) from None
            time.sleep(PAUSE_SECONDS)

    def _show(self, lineage: Lineage, generation: int) -> None:
        with self._transaction() as cursor:
            _, position = self._catalog.position(cursor, lock=True)
            if position is not None and position.frame >= lineage.frame:
                return  # somebody else has
            waiting = self._catalog.filled(cursor)
            if waiting is None or waiting[0] != generation:
                raise ViewError(
                    "what the store was filled with is gone", hint="Is the pipeline running twice? It is tried again."
                )
            before, tables = self._catalog.tables(cursor), self._tables_of(lineage, generation)
            self._catalog.replace(cursor, tables, generation, waiting[1])
            cursor.execute(f"SET LOCAL lock_timeout = '{LOCKING_MILLISECONDS}ms'")
            try:
                show(cursor, before, tables)
            except errors.LockNotAvailable as error:
                raise _BeingRead from error

    def purge(self) -> None:
        """Tables of earlier lineages are gone, and those that wait: they are filled anew."""
        with self._transaction() as cursor:
            self._catalog.lock(cursor)  # first: what somebody is filling now would be passed over
            generation, _ = self._catalog.position(cursor, lock=True)
            for name in self._catalog.others(cursor, {generation}):
                cursor.execute(f"DROP TABLE {name}")
            if self._catalog.is_there(cursor):
                self._catalog.make(cursor)
                self._catalog.forget_filled(cursor)

    @contextmanager
    def _transaction(self, how: str = "") -> Iterator[Any]:
        connection = self._connected()
        with told(self._url), transaction(connection, how) as cursor:
            yield cursor

    def _connected(self) -> Any:
        """A connection that was not lost, as far as one can know."""
        if self._held is None or self._held.closed or self._held.broken:
            self.close()
            self._generation = -1
            self._held = connected(self._url)
        return self._held

    def _know_tables(self, cursor: Any, generation: int) -> None:
        if self._generation != generation:
            tables = self._catalog.tables(cursor)
            for table in tables:
                self._catalog.check(cursor, table)
            self._tables = {table.view.name: table for table in tables}
            self._generation = generation

    def _made(self, cursor: Any, lineage: Lineage, generation: int) -> list[Table]:
        self._generation = -1  # until they are shown they are not what counts
        tables = self._tables_of(lineage, generation)
        for table in tables:
            for statement in table.created:
                cursor.execute(statement)
        self._tables = {table.view.name: table for table in tables}
        return tables

    def _tables_of(self, lineage: Lineage, generation: int) -> list[Table]:
        return [Table(view, self._catalog.schema, generation, at) for at, view in enumerate(lineage.tables)]

    def _take(self, cursor: Any, steps: Sequence[Step], before: Position, used: set[str]) -> None:
        """Merges the steps view by view: within a transaction nobody sees the order."""
        parts: dict[str, list[tuple[int, Change]]] = defaultdict(list)
        for step in steps:
            if (step.position.log, step.position.lineage) != (before.log, before.lineage):
                raise ViewError(
                    f"the store holds lineage {before.lineage}, not {step.position.lineage}",
                    detail=f"The step is that of frame {step.position.frame}.",
                )
            for change in step.changes:
                if len(change):
                    parts[change.view].append((step.position.frame, change))
        for view, changes in parts.items():
            self._merging = self._tables[view]
            merge(cursor, self._merging, changes, used)

    def _index(self, cursor: Any, table: Table) -> None:
        """Makes the indexes for readers; one that has no room for a value of the view is left out, and that is said."""
        for statement in table.indexes():
            cursor.execute("SAVEPOINT index")
            try:
                cursor.execute(statement)
                cursor.execute("RELEASE index")
            except errors.ProgramLimitExceeded as error:
                cursor.execute("ROLLBACK TO index")
                self._say(_too_long(table, error))

    def _drop_indexes(self, error: psycopg.Error) -> None:
        """Takes away the indexes of the view that had no room for a value: rows go before indexes."""
        table = self._merging
        assert table is not None
        with self._transaction() as cursor:
            for (index,) in cursor.execute(INDEXES, [table.base]).fetchall():
                cursor.execute(f"DROP INDEX {index}")
        self._say(_too_long(table, error))

    def _tidy(self) -> None:
        """Drops what counts for nobody any more, unless somebody reads it still; the next switch tries again."""
        with suppress(ViewError):
            for name in self._leftovers():
                with self._transaction() as cursor:
                    cursor.execute("SET LOCAL lock_timeout = '200ms'")
                    cursor.execute(f"DROP TABLE IF EXISTS {name}")

    def _leftovers(self) -> list[str]:
        """Of one moment: what another follower has filled since is no table yet, or is the one that waits or counts."""
        with self._transaction("ISOLATION LEVEL REPEATABLE READ, READ ONLY") as cursor:
            generation, _ = self._catalog.position(cursor)
            waiting = self._catalog.filled(cursor)
            return self._catalog.others(cursor, {generation} if waiting is None else {generation, waiting[0]})


def _holds(filled: Position, lineage: Lineage, log: str) -> bool:
    return (filled.log, filled.lineage) == (log, lineage.number) and filled.frame >= lineage.frame


class _BeingRead(Exception):
    """Somebody reads a view that is to be replaced."""


def _too_long(table: Table, error: psycopg.Error) -> str:
    said = error.diag.message_primary or "a value is too long"
    return f'view "{table.view.name}" has no index for readers in PostgreSQL any more: {said}'
