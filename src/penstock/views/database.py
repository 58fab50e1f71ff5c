"""Databases: connections to SQLite that know our collations, and SQLite's errors as ours.

A writer's transaction is on disk when it ends (WAL, synchronous = FULL: SQLite syncs its log before a commit returns,
and that is what a power failure relies on). Any number of readers read meanwhile, each the state at its beginning.
"""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from decimal import Decimal
from math import isnan
from pathlib import Path
from threading import Event, Thread

import apsw

from penstock.errors import StoreUnavailable, TooSlow, ViewError
from penstock.views.costly import hold
from penstock.views.tables import POSITION, VIEWS

BUSY_MILLISECONDS = 10_000
CACHE_KIBIBYTES = 1 << 16
APPLICATION = int.from_bytes(b"PSTK")
FORMAT = 1
AGAIN_SECONDS = 0.01
"""From one interruption to the next: one that falls between two statements stops neither."""
SCHEMA = f"""
CREATE TABLE {POSITION} (log TEXT, lineage INTEGER, frame INTEGER, batch INTEGER, until INTEGER);
CREATE TABLE {VIEWS} (name TEXT, schema TEXT, key TEXT);
PRAGMA application_id = {APPLICATION};
PRAGMA user_version = {FORMAT};
"""


def opened_for_writing(path: Path | str) -> apsw.Connection:
    """A connection to the store's file, made if it is not there."""
    connection = _connected(path, apsw.SQLITE_OPEN_READWRITE | apsw.SQLITE_OPEN_CREATE)
    connection.execute("PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL")
    connection.execute(f"PRAGMA cache_size = -{CACHE_KIBIBYTES}; PRAGMA journal_size_limit = {CACHE_KIBIBYTES << 10}")
    if is_empty(connection):
        with transaction(connection):
            if is_empty(connection):  # still, now that nobody else can be making it
                connection.execute(SCHEMA)
    check_format(path, connection)
    return connection


def is_empty(connection: apsw.Connection) -> bool:
    """Whether the store is still being made: the file is there before what is in it."""
    return not connection.execute("SELECT count(*) FROM sqlite_schema").get


def opened_for_reading(path: Path | str) -> apsw.Connection:
    """A connection that can change nothing, to a store that may still be empty."""
    connection = _connected(path, apsw.SQLITE_OPEN_READONLY)
    connection.config(apsw.SQLITE_DBCONFIG_DEFENSIVE, 1)
    connection.config(apsw.SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0)
    connection.config(apsw.SQLITE_DBCONFIG_DQS_DML, 0)  # "Bern" is then a column, never a text
    connection.execute("PRAGMA query_only = 1")
    hold(connection)
    if not is_empty(connection):
        check_format(path, connection)
    return connection


def _connected(path: Path | str, flags: int) -> apsw.Connection:
    connection = apsw.Connection(str(path), flags | apsw.SQLITE_OPEN_URI)
    connection.set_busy_timeout(BUSY_MILLISECONDS)
    connection.create_collation("DECIMAL", compared_decimals)
    connection.create_collation("TIMESTAMP", compared_times)
    return connection


def check_format(path: Path | str, connection: apsw.Connection) -> None:
    found = connection.pragma("application_id"), connection.pragma("user_version")
    if found[0] != APPLICATION:
        raise ViewError(f'"{path}" is not a store of views', detail="It is a database of something else.")
    if found[1] != FORMAT:
        raise ViewError(
            f'"{path}" has format {found[1]}',
            detail=f"This version of Penstock knows format {FORMAT}.",
            hint="Take it away: a new one fills itself from the log.",
        )


def file_identity(path: Path | str) -> tuple[int, int] | None:
    """Which file the path leads to now."""
    try:
        found = os.stat(path)
    except OSError:
        return None
    return found.st_dev, found.st_ino


@contextmanager
def transaction(connection: apsw.Connection, kind: str = "IMMEDIATE") -> Iterator[None]:
    """What is done inside is done wholly or not at all."""
    connection.execute(f"BEGIN {kind}")
    try:
        yield
        connection.execute("COMMIT")
    finally:
        if connection.in_transaction:
            connection.execute("ROLLBACK")


@contextmanager
def told(path: Path | str) -> Iterator[None]:
    """SQLite's errors as ours."""
    try:
        yield
    except apsw.BusyError as error:
        raise StoreUnavailable(
            f'the store "{path}" is locked',
            detail=f"Somebody else has been writing to it for {BUSY_MILLISECONDS // 1000} seconds.",
            hint="Is the pipeline running twice?",
        ) from error
    except apsw.CantOpenError as error:
        there = os.path.exists(path)
        raise StoreUnavailable(
            f'the store "{path}" cannot be opened' if there else f'there is no store "{path}"',
            detail=f"{error}." if there else "",
            hint="" if there else "Run the pipeline first.",
        ) from error
    except (apsw.CorruptError, apsw.NotADBError) as error:
        raise StoreUnavailable(
            f'the store "{path}" is damaged',
            detail=f"{error}.",
            hint="Take it away: a new one fills itself from the log.",
        ) from error
    except apsw.Error as error:
        raise StoreUnavailable(f'the store "{path}" cannot be used', detail=f"{error}.") from error


@contextmanager
def within(connection: apsw.Connection, seconds: float | None) -> Iterator[None]:
    """What is asked inside is given up after so many seconds, between two rows: not after so many steps of SQLite, for
    one of them may be long.
    """
    if seconds is None:
        yield
        return
    done = Event()
    watch = Thread(target=_interrupt, args=(connection, seconds, done), name="penstock-watch", daemon=True)
    watch.start()
    try:
        yield
    except apsw.InterruptError:
        raise TooSlow(
            f"the answer takes longer than {seconds:g} seconds",
            hint="Ask for fewer rows, or by the view's key, or allow more time.",
        ) from None
    finally:
        done.set()
        watch.join()  # who asks next must not be interrupted


def _interrupt(connection: apsw.Connection, seconds: float, done: Event) -> None:
    while not done.wait(seconds):
        connection.interrupt()
        seconds = AGAIN_SECONDS


def compared_decimals(one: str, other: str) -> int:
    """As numbers; what is no number comes first."""
    left, right = _number(one), _number(other)
    if left is None or right is None:
        return (left is not None) - (right is not None) or (one > other) - (one < other)
    if left != right:
        return 1 if left > right else -1
    try:
        exact = Decimal(one), Decimal(other)  # rounding keeps the order, but may make two numbers one
    except ArithmeticError:  # an exponent that no number has
        return (one > other) - (one < other)
    return (exact[0] > exact[1]) - (exact[0] < exact[1])


def _number(text: str) -> float | None:
    try:
        number = float(text)
    except ValueError:
        return None
    return None if isnan(number) else number


def compared_times(one: str, other: str) -> int:
    """As times, however they are written; one without a zone is UTC. What is no time is compared as text."""
    left, right = _canonical(one), _canonical(other)
    return (left > right) - (left < right)


def _canonical(text: str) -> str:
    if len(text) >= 26 and text[10] == "T" and text[19] == "." and text[26:] in ("", "Z"):
        return text[:26]
    try:
        time = datetime.fromisoformat(text)
        plain = time.astimezone(UTC).replace(tzinfo=None) if time.tzinfo else time
    except (ValueError, OverflowError):  # the latter beyond the years 1 to 9999, in UTC
        return text
    return plain.isoformat(timespec="microseconds")
