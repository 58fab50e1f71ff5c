"""Stores by where they are: a file beside the pipeline, or a schema of PostgreSQL, which has the pipeline's name unless
the address names another.
"""

from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path

from penstock.errors import ViewError
from penstock.model.stores import OnPostgres
from penstock.views import Position, SqliteStore, ViewReader

if find_spec("psycopg") is not None:
    from penstock.views import postgres


def postgres_store(
    where: OnPostgres, pipeline: str, *, say: Callable[[str], None] = lambda _: None
) -> "postgres.PostgresStore":
    _check_driver()
    return postgres.PostgresStore(where.url, where.schema or pipeline, say=say)


def position_of(where: Path | OnPostgres, pipeline: str) -> Position | None:
    """How far the store has come."""
    if isinstance(where, Path):
        with ViewReader(where) as reader:
            return reader.position()
    _check_driver()
    return postgres.position_in(where.url, where.schema or pipeline)


def reader_of(where: Path | OnPostgres, pipeline: str, view: str) -> ViewReader:
    """A reader of the view, as it is there now."""
    if isinstance(where, Path):
        return ViewReader(where)
    _check_driver()
    return postgres.reader_of(where.url, where.schema or pipeline, view)


def purge(where: Path | OnPostgres, pipeline: str) -> None:
    """Nothing is left there of rows that are not held any more."""
    if isinstance(where, Path):
        with SqliteStore(where) as store:
            store.purge()
    else:
        with postgres_store(where, pipeline) as store:
            store.purge()


def remove(path: Path) -> None:
    """Takes away a store in a file: what it held, the log holds."""
    for each in (path, path.with_name(f"{path.name}-wal"), path.with_name(f"{path.name}-shm")):
        each.unlink(missing_ok=True)


def _check_driver() -> None:
    if find_spec("psycopg") is None:
        raise ViewError(
            "views cannot be kept in PostgreSQL here",
            detail="The package psycopg is not installed.",
            hint="Install it: pip install 'penstock[postgres]'",
        )
