"""Catalog: what the store's schema says of itself. Format 1; docs/formats/changes.md has it in full.

A *generation* is the tables of one switch; the row of `_penstock` says which one counts, and how far it has come. That
of `_penstock_filled`, if there is one, says which one is filled and waits to be shown.
"""

import json
from collections.abc import Collection, Sequence
from typing import Any

from penstock.errors import ViewError
from penstock.schema import parse_schema
from penstock.views.postgres.tables import FILLED, POSITION, VIEWS, Table, quoted
from penstock.views.step import Position, View

FORMAT = 1
COLUMNS = "log, lineage, frame, batch, until"


class Catalog:
    """The statements are run by the cursors that are given, inside their transactions."""

    def __init__(self, schema: str) -> None:
        self.schema = schema
        self._position = f"{quoted(schema)}.{POSITION}"
        self._views = f"{quoted(schema)}.{VIEWS}"
        self._filled = f"{quoted(schema)}.{FILLED}"

    def is_there(self, cursor: Any) -> bool:
        return bool(cursor.execute("SELECT to_regclass(%s)", [self._position]).fetchone()[0])

    def lock(self, cursor: Any) -> None:
        """Until the end of the transaction nobody else makes or fills tables."""
        cursor.execute("SELECT pg_advisory_xact_lock(hashtextextended(%s, 0))", [f"penstock {self.schema}"])

    def make(self, cursor: Any) -> None:
        """Makes it unless it is there; whoever makes it at the same time waits."""
        self.lock(cursor)
        if not self.is_there(cursor):
            found = cursor.execute("SELECT to_regnamespace(%s)", [quoted(self.schema)]).fetchone()[0]
            if found is None:  # even where it is there, IF NOT EXISTS asks for the right to make it
                cursor.execute(f"CREATE SCHEMA {quoted(self.schema)}")
            cursor.execute(
                f"CREATE TABLE {self._position} (format integer, generation integer, log text, lineage integer, "
                "frame bigint, batch bigint, until bigint)"
            )
            cursor.execute(
                f"CREATE TABLE {self._views} (generation integer, number integer, name text, schema text, key text)"
            )
        cursor.execute(
            f"CREATE TABLE IF NOT EXISTS {self._filled} (generation integer, log text, lineage integer, frame bigint, "
            "batch bigint, until bigint)"
        )

    def position(self, cursor: Any, *, lock: bool = False) -> tuple[int, Position | None]:
        """The generation that counts, and its position; none in a store that is new."""
        return self.read(cursor, lock=lock) if self.is_there(cursor) else (0, None)

    def read(self, cursor: Any, *, lock: bool = False) -> tuple[int, Position | None]:
        """The same, in one statement: it fails where there is no catalog."""
        which = f"SELECT format, generation, {COLUMNS} FROM {self._position}"
        row = cursor.execute(which + (" FOR UPDATE" if lock else "")).fetchone()
        if row is None:
            return 0, None
        if row[0] != FORMAT:
            raise ViewError(
                f'schema "{self.schema}" has format {row[0]}',
                detail=f"This version of Penstock knows format {FORMAT}.",
                hint="Drop it: a new one fills itself from the log.",
            )
        return row[1], Position(*row[2:])

    def move(self, cursor: Any, to: Position) -> None:
        row = to.log, to.lineage, to.frame, to.batch, to.until
        cursor.execute(f"UPDATE {_spelled(self._position)} SET ({COLUMNS}) = (%s, %s, %s, %s, %s)", row)

    def filled(self, cursor: Any) -> tuple[int, Position] | None:
        """The generation that waits to be shown, and how far it was filled."""
        row = cursor.execute(f"SELECT generation, {COLUMNS} FROM {self._filled}").fetchone()
        return None if row is None else (row[0], Position(*row[1:]))

    def keep_filled(self, cursor: Any, generation: int, at: Position) -> None:
        """From now on this one waits."""
        self.forget_filled(cursor)
        row = generation, at.log, at.lineage, at.frame, at.batch, at.until
        cursor.execute(f"INSERT INTO {_spelled(self._filled)} VALUES (%s, %s, %s, %s, %s, %s)", row)

    def forget_filled(self, cursor: Any) -> None:
        cursor.execute(f"DELETE FROM {self._filled}")

    def replace(self, cursor: Any, tables: Sequence[Table], generation: int, at: Position) -> None:
        """From now on these count, and none waits."""
        self.forget_filled(cursor)
        cursor.execute(f"DELETE FROM {self._views}")
        for table in tables:
            view = table.view
            row = generation, table.number, view.name, str(view.schema), json.dumps([view.key, view.index])
            cursor.execute(f"INSERT INTO {_spelled(self._views)} VALUES (%s, %s, %s, %s, %s)", row)
        cursor.execute(f"DELETE FROM {self._position}")
        made = f"INSERT INTO {_spelled(self._position)} (format, generation) VALUES (%s, %s)"
        cursor.execute(made, [FORMAT, generation])
        self.move(cursor, at)

    def tables(self, cursor: Any) -> list[Table]:
        """Those of the generation that counts."""
        if not self.is_there(cursor):
            return []
        rows = cursor.execute(f"SELECT generation, number, name, schema, key FROM {self._views} ORDER BY number")
        return [
            Table(_view(name, schema, key), self.schema, generation, number)
            for generation, number, name, schema, key in rows.fetchall()
        ]

    def check(self, cursor: Any, table: Table) -> None:
        """Refuses a table that somebody has changed."""
        found = dict(
            cursor.execute(
                "SELECT attname::text, format_type(atttypid, atttypmod) FROM pg_attribute "
                "WHERE attrelid = to_regclass(%s) AND attnum > 0 AND NOT attisdropped",
                [table.base],
            ).fetchall()
        )
        for name, type_ in table.catalog.items():
            if found.get(name) != type_:
                there = f"is {found[name]}" if name in found else "is missing" if found else "and the table are missing"
                raise ViewError(
                    f'the table of view "{table.view.name}" in PostgreSQL is not as it was made',
                    detail=f'Column "{name}" was {type_}, and {there}.',
                    hint=f'Drop the schema "{self.schema}": the store fills itself anew.',
                )

    def has(self, cursor: Any, tables: Sequence[Table]) -> bool:
        """Whether all of them are there."""
        names = [table.base for table in tables]
        counted = cursor.execute("SELECT count(to_regclass(name)) FROM unnest(%s::text[]) name", [names])
        return bool(counted.fetchone()[0] == len(names))

    def others(self, cursor: Any, spared: Collection[int]) -> list[str]:
        """Tables of all generations but those."""
        rows = cursor.execute(
            "SELECT relname::text FROM pg_class WHERE relnamespace = to_regnamespace(%s) AND relkind = 'r' "
            "AND relname ~ '^_penstock_[0-9]+_[0-9]+$'",
            [quoted(self.schema)],
        ).fetchall()
        return [f"{quoted(self.schema)}.{quoted(name)}" for (name,) in rows if int(name.split("_")[2]) not in spared]


def _spelled(name: str) -> str:
    """In a statement with parameters, where % begins one."""
    return name.replace("%", "%%")


def _view(name: str, schema: str, said: str) -> View:
    key, index = json.loads(said)
    return View(name, parse_schema(schema), tuple(key), index=tuple(map(tuple, index)))
