"""Acknowledgements of one worker, in a file of its own: one small write each, which no death of a process undoes.

They are not synced: a power failure may take those that are not yet taken into the facts. Whoever takes messages takes
them in: the worker its own, and those of another worker before anything is taken away from that one. All of that
happens in a transaction of the facts; only `write` does not.
"""

import errno
import os
import struct
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from zlib import crc32

import apsw

from penstock.errors import LogError

FOLDER = "acks"
LAYOUT = struct.Struct("<QQI")
SIZE = LAYOUT.size + 4


@dataclass(frozen=True)
class Ack:
    """The message at an offset of a partition is done; valid while it is under that lease."""

    offset: int
    lease: int
    partition: int


class Acks:
    def __init__(self, log: Path, queue: str, worker: str) -> None:
        self._path = _path(log, worker)
        self._queue = queue
        self._file = -1
        self._inode = -1
        self.pending: list[Ack] = []
        """Those that are not taken in yet."""

    def write(self, ack: Ack) -> None:
        data = LAYOUT.pack(ack.offset, ack.lease, ack.partition)
        try:
            if os.write(self._file, data + struct.pack("<I", crc32(data))) < SIZE:
                os.ftruncate(self._file, len(self.pending) * SIZE)  # or those after it could not be read
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        except OSError as error:
            room = "Make room on the disk." if error.errno == errno.ENOSPC else ""
            raise LogError(f"an acknowledgement could not be written: {error.strerror}", hint=room) from error
        self.pending.append(ack)

    def take_in(self, db: apsw.Connection) -> None:
        """The file is there afterwards; others remove it when its worker has no messages."""
        done(db, self._queue, self.pending)
        if self._file < 0 or not self._is_there():
            self.close()
            self._path.parent.mkdir(exist_ok=True)
            self._file = os.open(self._path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o644)
            self._inode = os.fstat(self._file).st_ino

    def clear(self) -> None:
        """They were taken in, and that is committed."""
        self.pending = []
        os.ftruncate(self._file, 0)

    def _is_there(self) -> bool:
        try:
            return os.stat(self._path).st_ino == self._inode
        except FileNotFoundError:
            return False

    def close(self) -> None:
        if self._file >= 0:
            os.close(self._file)
        self._file = -1


def take_in_late(db: apsw.Connection, log: Path, queue: str, now: int) -> None:
    """What was acknowledged by those who have messages whose time has passed."""
    query = "SELECT DISTINCT worker FROM messages WHERE queue = ? AND due <= ? AND lease IS NOT NULL"
    for (worker,) in list(db.execute(query, (queue, now))):
        done(db, queue, _read(_path(log, worker)))


def take_in_all(db: apsw.Connection, log: Path, queue: str) -> None:
    query = "SELECT DISTINCT worker FROM messages WHERE queue = ? AND lease IS NOT NULL"
    for (worker,) in list(db.execute(query, (queue,))):
        done(db, queue, _read(_path(log, worker)))


def tidy(db: apsw.Connection, log: Path) -> None:
    """Removes the files of workers that have no messages."""
    for path in (log / FOLDER).glob("*.acks"):
        if not db.execute("SELECT count(*) FROM messages WHERE worker = ?", (path.stem,)).get:
            path.unlink(missing_ok=True)


def done(db: apsw.Connection, queue: str, acks: Iterable[Ack]) -> None:
    db.executemany(
        "DELETE FROM messages WHERE queue = ? AND part = ? AND num = ? AND lease = ?",
        [(queue, ack.partition, ack.offset, ack.lease) for ack in acks],
    )


def _read(path: Path) -> list[Ack]:
    """What was torn by a power failure is left out."""
    try:
        data = path.read_bytes()
    except FileNotFoundError:
        return []
    found = []
    for at in range(0, len(data) - SIZE + 1, SIZE):
        one = data[at : at + LAYOUT.size]
        if struct.unpack_from("<I", data, at + LAYOUT.size)[0] == crc32(one):
            found.append(Ack(*LAYOUT.unpack(one)))
    return found


def _path(log: Path, worker: str) -> Path:
    return log / FOLDER / f"{worker}.acks"
