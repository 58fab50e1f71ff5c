"""Sealing in the background: closed stretches are sealed by a thread of a process that appends, and then cared for.

One sealer works at a time, over all processes (a file lock); in the background the others leave it to that one. The
first append after opening looks for what earlier processes left undone, and so does one now and then. Closing the log
waits for the stretch at hand, never for another process.
"""

import errno
import fcntl
import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import Event, Lock, Thread
from typing import Protocol

from penstock.errors import LogError
from penstock.log.disk import Disk
from penstock.log.journal import Journal
from penstock.log.sealed import seal

CARE_SECONDS = 60.0
"""How often records are looked at that may have grown old, while there are appends."""
Stop = Callable[[], bool]


class Caring(Protocol):
    """What is done with records before and after their stretches are sealed."""

    def before(self, journal: Journal) -> None: ...
    def run(self, journal: Journal, stop: Stop) -> None: ...


class Sealing:
    def __init__(self, journal: Journal, disk: Disk, care: Caring) -> None:
        self._journal = journal
        self._disk = disk
        self._care = care
        self._lock = Lock()
        self._thread: Thread | None = None
        self._stop = Event()
        self._seen: int | None = None
        self._due = 0.0
        self.failure: Exception | None = None
        """Why the last background run ended early, or could not begin; the next one tries again."""

    def look(self, stretch: int, is_cared_for: Callable[[], bool]) -> None:
        """Begins to work in the background if the open stretch is a new one, or if it is time and there is anything to
        care for. Never raises: the append is done.
        """
        with self._lock:
            late = time.monotonic() >= self._due
            if (stretch == self._seen and not late) or (self._thread and self._thread.is_alive()):
                return
            self._seen = stretch
            self._due = time.monotonic() + CARE_SECONDS
            try:
                due = late and is_cared_for()
                if due or any(first < stretch for first in self._journal.unsealed()):
                    thread = Thread(target=self._in_background, name="penstock-sealing", daemon=True)
                    thread.start()
                    self._thread = thread
            except Exception as error:
                self.failure = error

    def _in_background(self) -> None:
        try:
            self.failure = None
            with self.alone(wait=False) as journal:
                if journal is not None:
                    self._care.before(journal)
                    self._work(journal)
        except Exception as error:  # the journal is complete without sealing: appends must not suffer
            self.failure = error

    def _work(self, journal: Journal) -> None:
        """Until nothing new was closed meanwhile: others rely on this run for it. What is sealed is cared for before
        more is sealed, however quickly that comes.
        """
        tried: dict[int, bool] = {}
        self._seal_closed(journal, tried)
        self._care.run(journal, self._stop.is_set)
        while self._seal_closed(journal, tried):
            self._care.run(journal, self._stop.is_set)

    def run(self) -> int:
        """Seals every closed stretch; how many could not be sealed because they are damaged."""
        with self.alone() as journal:
            assert journal is not None
            return self.seal_all(journal)

    @contextmanager
    def alone(self, *, wait: bool = True) -> Iterator[Journal | None]:
        """Inside, nobody else seals, or rewrites what is sealed. Without `wait`, None while somebody does."""
        journal = Journal(self._journal.folder)  # its own, so that old stretches do not push out those that readers use
        file = os.open(journal.folder / "sealing.lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        try:
            fcntl.flock(file, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
        except BlockingIOError:
            os.close(file)
            yield None
            return
        try:
            yield journal
        except OSError as error:
            raise _not_written(error) from error
        finally:
            journal.close()
            os.close(file)

    def seal_all(self, journal: Journal) -> int:
        """Until nothing new was closed meanwhile; how many could not be sealed."""
        tried: dict[int, bool] = {}
        while self._seal_closed(journal, tried):
            pass
        return list(tried.values()).count(False)

    def _seal_closed(self, journal: Journal, tried: dict[int, bool]) -> bool:
        """Seals what is closed now and was not tried before; whether there was any."""
        closed = [each for each in journal.unsealed() if each < journal.mark().stretch and each not in tried]
        for first in closed:
            if self._stop.is_set():
                return False
            tried[first] = seal(journal, first, self._disk)
        return bool(closed)

    def close(self) -> None:
        self._stop.set()
        if self._thread:
            self._thread.join()


def _not_written(error: OSError) -> LogError:
    return LogError(
        f"files of the log could not be written anew: {os.strerror(error.errno) if error.errno else error}",
        detail="No record is lost; what was begun is done when it is tried again.",
        hint="Make room on the disk." if error.errno == errno.ENOSPC else "",
    )
