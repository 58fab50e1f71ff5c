"""Reading: the answers in a store.

An answer is what the view held at one position, which it carries. It is read at once and as a whole, so that a slow
reader does not keep SQLite from tidying up; `limit` and `after` read a large view page by page, each page at its own
position. Readers never wait for the writer, nor it for them. A `ViewReader` can be used by several threads.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from types import TracebackType
from typing import Self
from uuid import uuid4

import apsw

from penstock.errors import ViewError
from penstock.log.protocol import OrderedLog
from penstock.schema import Schema
from penstock.views.database import file_identity, is_empty, opened_for_reading, told, transaction, within
from penstock.views.lineage import current
from penstock.views.order import order_of
from penstock.views.query import Answer, Query
from penstock.views.sqlite import SqliteStore, read_position, read_views
from penstock.views.step import Position, View, find_view
from penstock.views.steps import steps_until


class ViewReader:
    """Reads the views in a store's file. Use it in a `with`, or call `close`."""

    def __init__(self, path: Path | str) -> None:
        self.path = path
        self._idle: list[tuple[apsw.Connection, tuple[int, int] | None]] = []
        with self._connected():  # now is the time to say that there is no such file
            pass

    @staticmethod
    def of_topic(log: OrderedLog, pipeline: str, view: str) -> "ViewReader":
        """A reader of one view, folded from its change topic into memory: for views that are kept only there."""
        lineage = current(log, pipeline)
        if lineage is None:
            raise ViewError(f'pipeline "{pipeline}" has no views yet', hint="Run the pipeline first.")
        alone = replace(lineage, views=(replace(lineage.view(view), kept="table"),))
        path = f"file:/penstock-{uuid4().hex}?vfs=memdb"
        with SqliteStore(path) as store:
            store.switch(alone, steps_until(log, alone, log.mark().next_frame - 1))
            return ViewReader(path)  # with the last connection to it the memory goes

    def close(self) -> None:
        while self._idle:
            self._idle.pop()[0].close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def views(self) -> tuple[View, ...]:
        with self._connected() as connection:
            return read_views(connection)

    def columns(self, view: str) -> Schema:
        return find_view(self.views(), view).schema

    def position(self) -> Position | None:
        with self._connected() as connection:
            return read_position(connection)

    def rows(
        self,
        view: str,
        *,
        where: str = "",
        order: Sequence[str] | None = (),
        limit: int | None = None,
        after: str | None = None,
        seconds: float | None = None,
    ) -> Answer:
        """The view's rows: those for which the SQL condition `where` holds, ordered by columns (`"spend desc"`; None:
        by the key), at most `limit` of them, going on where another answer's `next` says; given up after so many
        seconds.
        """
        with self._connected() as connection, transaction(connection, "DEFERRED"):
            found, position = find_view(read_views(connection), view), read_position(connection)
            assert position is not None  # where there are views, there is a position
            ordered = order_of(found, found.key if order is None else order)
            query = Query(found, ordered, where.strip(), limit, after)
            with within(connection, seconds):
                return query.answer(connection, position)

    @contextmanager
    def _connected(self) -> Iterator[apsw.Connection]:
        """A connection for this thread, to the file that the path leads to now."""
        file = file_identity(self.path)
        with told(self.path):
            connection = self._idle_connection(file) or opened_for_reading(self.path)
            try:
                yield connection
            finally:
                self._put_back(connection, file)

    def _put_back(self, connection: apsw.Connection, file: tuple[int, int] | None) -> None:
        if is_empty(connection):  # whether what will be in it is a store is looked at when it is opened
            connection.close()
        else:
            self._idle.append((connection, file))

    def _idle_connection(self, file: tuple[int, int] | None) -> apsw.Connection | None:
        try:
            connection, of = self._idle.pop()
        except IndexError:
            return None
        if of == file:
            return connection
        connection.close()
        return None
