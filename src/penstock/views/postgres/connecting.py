"""Connecting: connections to PostgreSQL, and its errors as ours. No password is ever shown."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import psycopg
from psycopg import errors

from penstock.errors import ViewError, without_secrets

LOCK_SECONDS = 10
LOST = ("08", "28", "3D", "57")
"""Errors that are about the connection, and not about what was asked."""
HOW: dict[str, Any] = {
    "application_name": "penstock",
    "connect_timeout": 10,
    "keepalives_idle": 30,
    "tcp_user_timeout": 60_000,
}
"""What an address does not say itself. A server that has vanished is noticed."""


def connected(url: str) -> Any:
    """A connection that begins and ends no transaction by itself."""
    said = _parsed(url)
    with told(url):
        # Nothing is prepared: a plan that was made when a table was small would be kept when it is large.
        made = psycopg.connect(**(HOW | said), client_encoding="UTF8", autocommit=True, prepare_threshold=None)
        try:
            _check(url, made)
            made.execute(f"SET lock_timeout = '{LOCK_SECONDS}s'")
            # Rows that change are looked for by an index, one by one: to read a whole table or index for them, as other
            # joins do, is slower than it seems.
            made.execute("SET random_page_cost = 1.1; SET enable_mergejoin = off; SET enable_hashjoin = off")
        except BaseException:
            made.close()
            raise
        return made


def _parsed(url: str) -> dict[str, Any]:
    try:
        return dict(psycopg.conninfo.conninfo_to_dict(url))
    except psycopg.ProgrammingError:  # it quotes what it cannot read: that may be the password
        raise ViewError(
            "the address of the store cannot be read",
            detail="It is not one that PostgreSQL understands.",
            hint="In names and passwords, write % as %25, @ as %40, / as %2F and : as %3A.",
        ) from None


def _check(url: str, made: Any) -> None:
    encoding = made.info.parameter_status("server_encoding")
    if encoding != "UTF8":
        raise ViewError(
            f'the database "{without_secrets(url)}" cannot hold all texts',
            detail=f"Its encoding is {encoding}.",
            hint="Make one for the views: CREATE DATABASE views ENCODING 'UTF8' TEMPLATE template0",
        )


@contextmanager
def told(url: str) -> Iterator[None]:
    """PostgreSQL's errors as ours."""
    shown = without_secrets(url)
    try:
        yield
    except errors.LockNotAvailable as error:
        raise ViewError(
            f'the store "{shown}" is locked',
            detail=f"Somebody else has been holding what it needs for {LOCK_SECONDS} seconds.",
            hint="Is the pipeline running twice? pg_stat_activity shows who is at work.",
        ) from error
    except errors.QueryCanceled as error:
        raise ViewError(
            f'the store "{shown}" is given too little time',
            detail=f"{_said(error)}.",
            hint="To fill it may take long. Let who connects have the time: ALTER ROLE NAME SET statement_timeout = 0",
        ) from error
    except errors.DependentObjectsStillExist as error:
        raise ViewError(
            f'the views in "{shown}" cannot be replaced by those of the new lineage',
            detail=f"{_said(error)}. {(error.diag.message_detail or '').strip()}",
            hint="Drop what depends on them, and create it again when the store has caught up.",
        ) from error
    except errors.InsufficientPrivilege as error:
        raise ViewError(
            f'the store "{shown}" may not be written',
            detail=f"{_said(error)}.",
            hint="Who connects needs CREATE on the database, or on a schema named by ?schema=NAME",
        ) from error
    except (errors.DuplicateTable, errors.WrongObjectType) as error:
        raise ViewError(
            f'a view cannot be made in "{shown}"',
            detail=f"{_said(error)}.",
            hint="The name is another's. Name a schema for the views alone: ?schema=NAME",
        ) from error
    except psycopg.OperationalError as error:
        if error.sqlstate and error.sqlstate[:2] not in LOST:
            raise ViewError(f'the store "{shown}" cannot be used', detail=f"{_said(error)}.") from error
        raise ViewError(
            f'the store "{shown}" cannot be reached',
            detail=f"{_said(error)}.",
            hint="It is tried again; what it has missed meanwhile it reads then.",
        ) from error
    except psycopg.Error as error:
        raise ViewError(f'the store "{shown}" cannot be used', detail=f"{_said(error)}.") from error


def being_read(url: str) -> ViewError:
    """Of views that cannot be replaced by those of the new lineage yet."""
    return ViewError(
        f'the views in "{without_secrets(url)}" wait for a reader before they can be replaced',
        detail="The new lineage is filled. Somebody has read the views in a transaction that is still open.",
        hint="It is tried again. pg_stat_activity shows who is idle in transaction.",
    )


def _said(error: psycopg.Error) -> str:
    said = error.diag.message_primary or next(iter(str(error).strip().splitlines()), type(error).__name__)
    return without_secrets(said).rstrip(".")


@contextmanager
def transaction(connection: Any, how: str = "") -> Iterator[Any]:
    """What is done inside is done wholly or not at all. Gives a cursor."""
    with connection.cursor() as cursor:
        cursor.execute(f"BEGIN {how}")
        try:
            yield cursor
            cursor.execute("COMMIT")
        except BaseException:
            if not connection.closed and not connection.broken:
                cursor.execute("ROLLBACK")
            raise
