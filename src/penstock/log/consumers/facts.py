"""Facts: the small things about readers that change, in a SQLite file beside the journal.

Who is in which group, how far groups have read, which messages of a queue are with a worker. A transaction is on disk
when it ends, whole or not at all, and every process sees it then. Writers take turns by a file lock, so that nobody
sleeps while it is free. A file that belongs to another log, or was taken away while it was open, is refused.
"""

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import RLock

import apsw

from penstock.errors import DamagedLog, LogError

NAME = "consumers.sqlite"
LOCK = "consumers.lock"
APPLICATION = int.from_bytes(b"PSTC")
FORMAT = 1
WAIT_MILLISECONDS = 10_000
SCHEMA = f"""
CREATE TABLE log (identity TEXT NOT NULL);
CREATE TABLE groups (name TEXT PRIMARY KEY, generation INTEGER NOT NULL) WITHOUT ROWID;
CREATE TABLE members (grp TEXT, member TEXT, topics TEXT NOT NULL, session INTEGER NOT NULL, deadline INTEGER NOT NULL,
    PRIMARY KEY (grp, member)) WITHOUT ROWID;
CREATE TABLE shares (grp TEXT, topic TEXT, part INTEGER, wanted TEXT, owner TEXT, since INTEGER,
    PRIMARY KEY (grp, topic, part)) WITHOUT ROWID;
CREATE TABLE offsets (grp TEXT, topic TEXT, part INTEGER, next INTEGER NOT NULL, generation INTEGER NOT NULL,
    at INTEGER NOT NULL, PRIMARY KEY (grp, topic, part)) WITHOUT ROWID;
CREATE TABLE queues (name TEXT PRIMARY KEY, topic TEXT NOT NULL, visibility INTEGER NOT NULL,
    deliveries INTEGER NOT NULL, missing TEXT NOT NULL, lease INTEGER NOT NULL, skipped INTEGER NOT NULL) WITHOUT ROWID;
CREATE TABLE fronts (queue TEXT, part INTEGER, next INTEGER NOT NULL, PRIMARY KEY (queue, part)) WITHOUT ROWID;
CREATE TABLE messages (queue TEXT, part INTEGER, num INTEGER, life INTEGER NOT NULL, delivered INTEGER NOT NULL,
    due INTEGER NOT NULL, lease INTEGER, worker TEXT, reason TEXT, PRIMARY KEY (queue, part, num)) WITHOUT ROWID;
CREATE INDEX messages_due ON messages (queue, due);
CREATE TABLE redriven (queue TEXT, part INTEGER, next INTEGER NOT NULL, PRIMARY KEY (queue, part)) WITHOUT ROWID;
PRAGMA application_id = {APPLICATION};
PRAGMA user_version = {FORMAT};
"""


class Facts:
    """The file, opened when it is first needed. May be used by any number of threads."""

    def __init__(self, folder: Path, identity: str) -> None:
        self.folder = folder
        self._identity = identity
        self._path = folder / NAME
        self._lock = RLock()
        self._connection: apsw.Connection | None = None
        self._lock_file = -1
        self._inode: tuple[int, int] | None = None
        self._process = os.getpid()
        self.closed = False
        self._changes = 0  # SQLite tells only of those by others

    @property
    def exist(self) -> bool:
        return self._path.exists()

    @contextmanager
    def reading(self) -> Iterator[apsw.Connection]:
        """All that is asked inside is answered as of one moment."""
        with self._lock, self._told():
            connection = self._opened()
            with _transaction(connection, "DEFERRED"):
                yield connection

    @contextmanager
    def writing(self) -> Iterator[apsw.Connection]:
        """What is done inside is done wholly, durably, or not at all; nobody else writes meanwhile."""
        with self._lock, self._told():
            connection = self._opened()
            with self._turn(), _transaction(connection, "IMMEDIATE"):
                yield connection
            self._changes += 1

    @property
    def version(self) -> tuple[int, int]:
        """Another one whenever anybody has changed something."""
        with self._lock, self._told():
            return int(self._opened().pragma("data_version")), self._changes

    def rewrite(self) -> None:
        """Nothing is left in the files of what is no longer in the tables. Others may read and write meanwhile."""
        with self._lock, self._told():
            connection = self._opened()
            with self._turn():
                connection.execute("VACUUM")
                busy, *_ = next(connection.execute("PRAGMA wal_checkpoint(TRUNCATE)"))
        if busy:
            raise LogError(
                f'"{self._path}" cannot be rewritten',
                detail=f"Somebody has been reading it for {WAIT_MILLISECONDS // 1000} seconds.",
                hint="Do it again when that has ended.",
            )

    def close(self) -> None:
        with self._lock:
            self.closed = True
            if self._connection is not None and os.getpid() == self._process:
                self._connection.close()
                os.close(self._lock_file)
            self._connection, self._lock_file = None, -1

    def _opened(self) -> apsw.Connection:
        if os.getpid() != self._process:
            raise LogError("the log was opened by another process", hint="Open the log in the child.")
        if self.closed:
            raise LogError("the log is closed", hint="Open it again.")
        if self._connection is None:
            self._open()
        assert self._connection is not None
        if _inode(self._path) != self._inode:
            raise LogError(f'"{self._path}" was taken away or replaced while it was in use', hint="Open the log again.")
        return self._connection

    def _open(self) -> None:
        self._lock_file = os.open(self.folder / LOCK, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        try:
            with self._turn():
                connection = _connected(self._path, self._identity)
        except BaseException:
            os.close(self._lock_file)
            raise
        self._connection, self._inode = connection, _inode(self._path)

    @contextmanager
    def _turn(self) -> Iterator[None]:
        fcntl.flock(self._lock_file, fcntl.LOCK_EX)
        try:
            yield
        finally:
            fcntl.flock(self._lock_file, fcntl.LOCK_UN)

    @contextmanager
    def _told(self) -> Iterator[None]:
        """SQLite's errors as ours."""
        try:
            yield
        except (apsw.CorruptError, apsw.NotADBError) as error:
            raise DamagedLog(
                f'"{self._path}" is damaged',
                detail=f"{error}. It says how far groups and queues have read; the records are not in it.",
                hint="Restore it from a copy, or take it away and say where each group goes on: penstock log reset",
            ) from error
        except apsw.Error as error:
            room = "Make room on the disk." if isinstance(error, apsw.FullError) else ""
            raise LogError(f'"{self._path}" cannot be used', detail=f"{error}.", hint=room) from error


def _connected(path: Path, identity: str) -> apsw.Connection:
    connection = apsw.Connection(str(path))
    connection.set_busy_timeout(WAIT_MILLISECONDS)
    connection.execute("PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL; PRAGMA journal_size_limit = 67108864")
    if not connection.execute("SELECT count(*) FROM sqlite_schema").get:
        with _transaction(connection, "IMMEDIATE"):
            connection.execute(SCHEMA)
            connection.execute("INSERT INTO log VALUES (?)", (identity,))
    _check(path, connection, identity)
    return connection


def _check(path: Path, connection: apsw.Connection, identity: str) -> None:
    if connection.pragma("application_id") != APPLICATION:
        raise LogError(f'"{path}" does not belong to a log', detail="It is a database of something else.")
    if (version := connection.pragma("user_version")) != FORMAT:
        raise LogError(f'"{path}" has format {version}', detail=f"This version reads format {FORMAT}.")
    if (found := connection.execute("SELECT identity FROM log").get) != identity:
        raise LogError(
            f'"{path}" belongs to another log',
            detail=f"It was made for the log {found}; this is {identity}.",
            hint="Take it away, or put back the one that belongs here.",
        )


@contextmanager
def _transaction(connection: apsw.Connection, kind: str) -> Iterator[None]:
    connection.execute(f"BEGIN {kind}")
    try:
        yield
        connection.execute("COMMIT")
    finally:
        if connection.in_transaction:
            connection.execute("ROLLBACK")


def _inode(path: Path) -> tuple[int, int] | None:
    try:
        found = os.stat(path)
    except OSError:
        return None
    return found.st_dev, found.st_ino
