"""Stores by where they are: a file beside the pipeline, a schema of PostgreSQL, keys of Redis. Schema and keys have the
pipeline's name unless the address names another.
"""

from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from typing import Any, assert_never

from penstock.errors import ViewError
from penstock.model.stores import OnPostgres, OnRedis
from penstock.views import Position, SqliteStore, ViewReader

if find_spec("psycopg") is not None:
    from penstock.views import postgres
if find_spec("redis") is not None:
    from penstock.views import redis

Where = Path | OnPostgres | OnRedis


def opened_store(where: Where, pipeline: str, *, say: Callable[[str], None] = lambda _: None) -> Any:
    """The store, to be used in a `with`; `say` is told of what it leaves out."""
    match where:
        case Path():
            return SqliteStore(where)
        case OnPostgres():
            _check_client("psycopg", "PostgreSQL", "postgres")
            return postgres.PostgresStore(where.url, where.schema or pipeline, say=say)
        case OnRedis():
            _check_client("redis", "Redis", "redis")
            return redis.RedisStore(where.url, where.prefix or pipeline)
        case _:
            assert_never(where)


def position_of(where: Where, pipeline: str) -> Position | None:
    """How far the store has come."""
    match where:
        case Path():
            with ViewReader(where) as reader:
                return reader.position()
        case OnPostgres():
            _check_client("psycopg", "PostgreSQL", "postgres")
            return postgres.position_in(where.url, where.schema or pipeline)
        case OnRedis():
            _check_client("redis", "Redis", "redis")
            return redis.position_in(where.url, where.prefix or pipeline)
        case _:
            assert_never(where)


def reader_of(where: Where, pipeline: str, view: str) -> ViewReader:
    """A reader of the view, as it is there now."""
    match where:
        case Path():
            return ViewReader(where)
        case OnPostgres():
            _check_client("psycopg", "PostgreSQL", "postgres")
            return postgres.reader_of(where.url, where.schema or pipeline, view)
        case OnRedis():
            _check_client("redis", "Redis", "redis")
            return redis.reader_of(where.url, where.prefix or pipeline, view)
        case _:
            assert_never(where)


def remove(path: Path) -> None:
    """Takes away a store in a file: what it held, the log holds."""
    for each in (path, path.with_name(f"{path.name}-wal"), path.with_name(f"{path.name}-shm")):
        each.unlink(missing_ok=True)


def _check_client(package: str, what: str, extra: str) -> None:
    if find_spec(package) is None:
        raise ViewError(
            f"views cannot be kept in {what} here",
            detail=f"The package {package} is not installed.",
            hint=f"Install it: pip install 'penstock[{extra}]'",
        )
