"""Tables: where PostgreSQL keeps a view, and the statements that change it.

What readers see under the view's name is a view of PostgreSQL: the columns, and nothing else. Beneath it lies a table
of its generation (a switch makes the next) with the columns and what we need: the identity of the row (a hash of its
exact values), that of its key, and what its far times are. Rows are found by these, so NULL is a key like any other.

Changes are copied into a staging table, of this connection alone, and merged from there. Every statement says how many
rows it changed; if that is not as many as were staged, the table does not hold what it should.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

from penstock.errors import ViewError
from penstock.views.postgres.types import declared, staged, type_name
from penstock.views.step import View

POSITION = "_penstock"
VIEWS = "_penstock_views"
FILLED = "_penstock_filled"
KEY, ROW, FAR = "_penstock_key", "_penstock_row", "_penstock_far"
LONGEST = 63
"""Bytes of a name; PostgreSQL cuts off what is more, without a word."""
SYSTEM = ("tableoid", "xmin", "cmin", "xmax", "cmax", "ctid")


def quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def check_schema(name: str) -> None:
    """Refuses a schema that cannot be."""
    if (reason := _misnamed(name)) or name.lower().startswith("pg_"):
        raise ViewError(
            f'a schema of PostgreSQL cannot be named "{name}"',
            detail=reason or "Names that begin with pg_ belong to PostgreSQL.",
            hint="The pipeline's name is taken unless the store's address names another: ?schema=NAME",
        )


def _misnamed(name: str) -> str:
    if not name or "\0" in name:
        return "A name has at least one character, and no NUL."
    size = len(name.encode(errors="surrogatepass"))
    return f"It has {size} bytes, and PostgreSQL takes {LONGEST}." if size > LONGEST else ""


@dataclass(frozen=True)
class Table:
    """The statements for a view. `number` is its place among the views of the generation."""

    view: View
    schema: str
    generation: int
    number: int

    def __post_init__(self) -> None:
        name = self.view.name
        if (reason := _misnamed(name)) or name.lower().startswith(POSITION):
            raise ViewError(
                f'view "{name}" cannot be kept in PostgreSQL',
                detail=reason or "The store needs the name for itself.",
                hint="Give it another name, or store = 'topic'.",
            )
        for column in self.view.schema.names:
            if (reason := _misnamed(column)) or column in SYSTEM or column.startswith(POSITION):
                raise ViewError(
                    f'column "{column}" of view "{name}" cannot be kept in PostgreSQL',
                    detail=reason or "PostgreSQL, or the store, needs the name for itself.",
                    hint="Give it another name in the query: AS other_name.",
                )

    @property
    def name(self) -> str:
        """The view's name, as readers write it."""
        return f"{quoted(self.schema)}.{quoted(self.view.name)}"

    @property
    def bare(self) -> str:
        return f"_penstock_{self.generation}_{self.number}"

    @property
    def base(self) -> str:
        return f"{quoted(self.schema)}.{quoted(self.bare)}"

    @property
    def stage(self) -> str:
        return f"pg_temp.{quoted(f'_penstock_stage_{self.generation}_{self.number}')}"

    @cached_property
    def columns(self) -> str:
        return ", ".join(map(quoted, self.view.schema.names))

    @cached_property
    def created(self) -> list[str]:
        """What makes the table and the index by which rows are found, but not those for readers."""
        columns = [f"{quoted(column.name)} {declared(column.type)}" for column in self.view.schema.columns]
        ours = [f"{KEY} uuid NOT NULL"] * bool(self.view.key) + [f"{ROW} uuid NOT NULL", f"{FAR} text"]
        found = (
            f"CREATE UNIQUE INDEX ON {self.base} ({KEY})" if self.view.key else f"CREATE INDEX ON {self.base} ({ROW})"
        )
        # Where all rows of a page are replaced, the new ones fit beside the old, and no index is touched.
        room = " WITH (fillfactor = 50)" if self.view.key else ""
        # In a schema that was dropped and is made anew, generations begin anew too; this connection still has a staging
        # table of that name, whose columns are others.
        made = f"CREATE TABLE {self.base} ({', '.join([*columns, *ours])}){room}"
        return [f"DROP TABLE IF EXISTS {self.stage}", made, found]

    def indexes(self) -> Iterator[str]:
        """What makes the indexes for readers: on the key, and those that the view declares."""
        for columns in dict.fromkeys((*([self.view.key] if self.view.key else []), *self.view.index)):
            yield f"CREATE INDEX ON {self.base} ({', '.join(map(quoted, columns))})"

    @property
    def select(self) -> str:
        """What readers see."""
        return f"SELECT {self.columns} FROM {self.base}"

    @cached_property
    def catalog(self) -> dict[str, str]:
        """The columns of the table and their types, as PostgreSQL's catalog writes them."""
        columns = {column.name: type_name(column.type) for column in self.view.schema.columns}
        return columns | ({KEY: "uuid"} if self.view.key else {}) | {ROW: "uuid", FAR: "text"}

    # Staging: identities, then the columns

    @cached_property
    def staged(self) -> str:
        """A key's row: the identity that must be there, or NULL, and the one that comes, or NULL. A bag's: how many of
        it come or leave.
        """
        ours = f"{KEY} uuid, _old uuid, {ROW} uuid" if self.view.key else f"{ROW} uuid, _count integer, _need integer"
        columns = [f"c{at} {staged(column.type)}" for at, column in enumerate(self.view.schema.columns)]
        columns = [ours, f"{FAR} text", *columns]
        return f"CREATE TEMP TABLE IF NOT EXISTS {self.stage} ({', '.join(columns)}) ON COMMIT DELETE ROWS"

    @cached_property
    def copy(self) -> str:
        return f"COPY {self.stage} FROM STDIN (FORMAT binary)"

    @property
    def empty(self) -> str:
        return f"TRUNCATE {self.stage}"

    def _values(self) -> list[str]:
        """The columns as they are made from what was staged."""
        found = []
        for at, column in enumerate(self.view.schema.columns):
            wanted = type_name(column.type)
            found.append(f"s.c{at}" + ("" if staged(column.type) == wanted else f"::{wanted}"))
        return found

    @cached_property
    def insert(self) -> str:
        ours = [KEY, ROW, FAR] if self.view.key else [ROW, FAR]
        names = ", ".join([*map(quoted, self.view.schema.names), *ours])
        values = ", ".join([*self._values(), *(f"s.{name}" for name in ours)])
        which = "s._old IS NULL" if self.view.key else "s._count > 0"
        return f"INSERT INTO {self.base} ({names}) SELECT {values} FROM {self.stage} s WHERE {which}"

    @cached_property
    def update(self) -> str:
        names = [quoted(name) for name in self.view.schema.names]
        pairs = [f"{name} = {value}" for name, value in zip(names, self._values(), strict=True)]
        pairs += [f"{name} = s.{name}" for name in (ROW, FAR)]
        return f"UPDATE {self.base} t SET {', '.join(pairs)} FROM {self.stage} s WHERE {_THERE} AND s.{ROW} IS NOT NULL"

    @cached_property
    def delete(self) -> str:
        return f"DELETE FROM {self.base} t USING {self.stage} s WHERE {_THERE} AND s.{ROW} IS NULL"

    @cached_property
    def take(self) -> str:
        """Of a bag: as many of the equal rows as leave."""
        nth = f"row_number() OVER (PARTITION BY t.{ROW})"
        found = f"SELECT t.ctid AS at, s._count AS n, {nth} AS nth FROM {self.base} t JOIN {self.stage} s USING ({ROW})"
        chosen = f"SELECT at FROM ({found} WHERE s._count < 0) found WHERE nth <= -n"
        return f"DELETE FROM {self.base} WHERE ctid = ANY (ARRAY({chosen}))"

    # What does not fit

    @property
    def missing(self) -> str:
        """The identity of a key whose row is not there as it should be, or of a bag's row of which too few are."""
        if self.view.key:
            there = f"SELECT 1 FROM {self.base} t WHERE {_THERE}"
            return f"SELECT s.{KEY} FROM {self.stage} s WHERE s._old IS NOT NULL AND NOT EXISTS ({there}) LIMIT 1"
        return (
            f"SELECT s.{ROW} FROM {self.stage} s LEFT JOIN {self.base} t ON t.{ROW} = s.{ROW} "
            f"WHERE s._need > 0 GROUP BY s.{ROW}, s._need HAVING count(t.{ROW}) < s._need LIMIT 1"
        )

    @property
    def taken(self) -> str:
        """The identity of a key that comes and is there already."""
        return f"SELECT s.{KEY} FROM {self.stage} s JOIN {self.base} t USING ({KEY}) WHERE s._old IS NULL LIMIT 1"

    def look(self, of: str) -> str:
        """The rows under an identity, of keys or of rows."""
        return f"SELECT {self.columns} FROM {self.base} WHERE {of} = '{{}}'::uuid LIMIT 3"


INDEXES = f"""
SELECT format('%%I.%%I', n.nspname, c.relname) FROM pg_index JOIN pg_class c ON c.oid = indexrelid
JOIN pg_namespace n ON n.oid = c.relnamespace WHERE indrelid = %s::regclass AND NOT EXISTS
  (SELECT FROM pg_attribute a WHERE a.attrelid = indexrelid AND attname IN ('{KEY}', '{ROW}'))
"""
"""The indexes of a table that are for readers."""
_THERE = f"t.{KEY} = s.{KEY} AND t.{ROW} = s._old"


def shown(names: Sequence[str], row: Sequence[object]) -> str:
    return ", ".join(f"{name} = {_shown(value)}" for name, value in zip(names, row, strict=True))


def _shown(value: object) -> str:
    text = "NULL" if value is None else repr(value)
    return text if len(text) <= 80 else f"{text[:77]}..."
