"""Sealing in the background: closed stretches are sealed by a thread of a process that appends.

One sealer works at a time, over all processes (a file lock); in the background the others leave it to that one. The
first append after opening looks for what earlier processes left unsealed. Closing the log waits for the stretch at
hand, never for another process.
"""

import fcntl
import os
from threading import Event, Lock, Thread

from penstock.log.disk import Disk
from penstock.log.journal import Journal
from penstock.log.sealed import seal


class Sealing:
    def __init__(self, journal: Journal, disk: Disk) -> None:
        self._journal = journal
        self._disk = disk
        self._lock = Lock()
        self._thread: Thread | None = None
        self._stop = Event()
        self._seen: int | None = None
        self.failure: Exception | None = None
        """Why the last background run ended early, or could not begin; the next one tries again."""

    def look(self, stretch: int) -> None:
        """Begins to seal in the background if the open stretch is a new one. Never raises: the append is done."""
        with self._lock:
            if stretch == self._seen or (self._thread and self._thread.is_alive()):
                return
            self._seen = stretch
            try:
                if any(first < stretch for first in self._journal.unsealed()):
                    thread = Thread(target=self._in_background, name="penstock-sealing", daemon=True)
                    thread.start()
                    self._thread = thread
            except Exception as error:
                self.failure = error

    def _in_background(self) -> None:
        try:
            self.failure = None
            self.run(wait=False)
        except Exception as error:  # the journal is complete without sealing: appends must not suffer
            self.failure = error

    def run(self, *, wait: bool = True) -> int:
        """Seals every closed stretch; how many could not be sealed because they are damaged. Without `wait`, not while
        somebody else does."""
        journal = Journal(self._journal.folder)  # its own, so that old stretches do not push out those that readers use
        file = os.open(journal.folder / "sealing.lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        try:
            fcntl.flock(file, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
            return self._seal_all(journal)
        except BlockingIOError:
            return 0
        finally:
            journal.close()
            os.close(file)

    def _seal_all(self, journal: Journal) -> int:
        done: dict[int, bool] = {}
        while not self._stop.is_set():  # until nothing new was closed meanwhile: others rely on this run for it
            closed = [each for each in journal.unsealed() if each < journal.mark().stretch and each not in done]
            if not closed:
                break
            done[closed[0]] = seal(journal, closed[0], self._disk)
        return list(done.values()).count(False)

    def close(self) -> None:
        self._stop.set()
        if self._thread:
            self._thread.join()
