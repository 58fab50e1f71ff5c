"""Tables: a view's table in SQLite, and the statements that change it.

A view with a key has an index on it (NULL is a key like any other, so it is not a UNIQUE one); a bag has an additional
column, the hash of the row, with an index, so that a row to be taken away is found without a scan. Every statement
changes exactly one row if the table holds what it should, else none. Comparisons are byte by byte and know NULL.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from zlib import crc32

from penstock.errors import ViewError
from penstock.schema import Decimal, Scalar, Type
from penstock.views.step import View
from penstock.views.values import Values

POSITION = "_penstock"
VIEWS = "_penstock_views"
DECLARED = {
    **dict.fromkeys(("BOOLEAN", "TINYINT", "SMALLINT", "INT", "BIGINT"), "INTEGER"),
    **dict.fromkeys(("FLOAT", "DOUBLE"), "REAL"),
    **dict.fromkeys(("TIMESTAMP", "TIMESTAMP_NTZ"), "TEXT COLLATE TIMESTAMP"),
    "BINARY": "BLOB",
}


def quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def declared(type_: Type) -> str:
    """The type of a column in SQLite."""
    match type_:
        case Scalar(name):
            return DECLARED.get(name, "TEXT")
        case Decimal():
            return "TEXT COLLATE DECIMAL"
        case _:
            return "TEXT"


@dataclass(frozen=True)
class Table:
    """The statements for a view's table. Their parameters are rows as `values.py` makes them."""

    view: View

    def __post_init__(self) -> None:
        name = self.view.name.lower()
        if name.startswith("sqlite_") or name in (POSITION, VIEWS):
            raise ViewError(
                f'view "{self.view.name}" cannot be a table in SQLite',
                detail="SQLite, or the store, needs the name for itself.",
                hint="Give it another name, or store = 'topic'.",
            )

    @property
    def name(self) -> str:
        return quoted(self.view.name)

    @cached_property
    def hash(self) -> str:
        """The name of the hash column: one that the view does not have."""
        name = "_hash"
        while name in [column.lower() for column in self.view.schema.names]:
            name += "_"
        return quoted(name)

    @cached_property
    def rowid(self) -> str:
        """The name of SQLite's own row number that the view does not hide."""
        hidden = [column.lower() for column in self.view.schema.names]
        return next((name for name in ("rowid", "_rowid_", "oid") if name not in hidden), "rowid")

    @property
    def create(self) -> str:
        columns = [f"{quoted(column.name)} {declared(column.type)}" for column in self.view.schema.columns]
        if self.view.key:
            key = ", ".join(f"{quoted(name)} COLLATE BINARY" for name in self.view.key)
        else:
            columns.append(f"{self.hash} INTEGER")
            key = self.hash
        index = quoted(f"{self.view.name} key")  # no view has a space in its name
        made = [f"CREATE TABLE {self.name} ({', '.join(columns)})", f"CREATE INDEX {index} ON {self.name} ({key})"]
        for number, names in enumerate(self.view.index):
            index = quoted(f"{self.view.name} index {number}")
            made.append(f"CREATE INDEX {index} ON {self.name} ({', '.join(map(quoted, names))})")
        return "; ".join(made)

    @property
    def drop(self) -> str:
        return f"DROP TABLE {self.name}"

    # A view with a key

    @cached_property
    def rest(self) -> tuple[str, ...]:
        """The columns that an update sets: those outside of the key, or if there are none, the key's own."""
        return tuple(name for name in self.view.schema.names if name not in self.view.key) or self.view.key

    @cached_property
    def insert(self) -> str:
        """Parameters: the new row, its key."""
        places = ", ".join("?" for _ in self.view.schema.names)
        there = f"SELECT 1 FROM {self.name} WHERE {_equal(self.view.key)}"
        return f"INSERT INTO {self.name} SELECT {places} WHERE NOT EXISTS ({there})"

    @cached_property
    def update(self) -> str:
        """Parameters: the rest of the new row, the old row."""
        values = ", ".join(f"{quoted(name)} = ?" for name in self.rest)
        return f"UPDATE {self.name} SET {values} WHERE {_equal(self.view.schema.names)}"

    @cached_property
    def delete(self) -> str:
        """Parameters: the old row."""
        return f"DELETE FROM {self.name} WHERE {_equal(self.view.schema.names)}"

    @property
    def look(self) -> str:
        """Parameters: a key."""
        columns = ", ".join(map(quoted, self.view.schema.names))
        return f"SELECT {columns} FROM {self.name} WHERE {_equal(self.view.key)}"

    # A bag

    @cached_property
    def add(self) -> str:
        """Parameters: the row, its hash."""
        return f"INSERT INTO {self.name} VALUES ({', '.join('?' for _ in self.view.schema.names)}, ?)"

    @cached_property
    def take(self) -> str:
        """Parameters: the row, its hash."""
        equal = f"{_equal(self.view.schema.names)} AND {self.hash} = ?"
        found = f"SELECT {self.rowid} FROM {self.name} WHERE {equal} LIMIT 1"
        return f"DELETE FROM {self.name} WHERE {self.rowid} = ({found})"


def hashed(row: Values) -> Values:
    """The row and its hash."""
    return *row, crc32(repr(row).encode(errors="surrogateescape"))


def _equal(names: Sequence[str]) -> str:
    return " AND ".join(f"{quoted(name)} COLLATE BINARY IS ?" for name in names)
