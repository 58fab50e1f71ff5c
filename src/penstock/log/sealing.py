"""Sealing in the background: closed stretches are sealed by a thread of whichever process closed them.

One sealer works at a time, over all processes (a file lock); the others leave it to that one. Closing the log waits
for the stretch at hand.
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
        self._seen = journal.mark().stretch
        self.failure: Exception | None = None
        """Why the last background run ended early; the next one tries again."""

    def look(self, stretch: int) -> None:
        """Begins to seal in the background if the open stretch is a new one."""
        with self._lock:
            if stretch == self._seen or (self._thread and self._thread.is_alive()):
                return
            self._seen = stretch
            self._thread = Thread(target=self._in_background, name="penstock-sealing", daemon=True)
            self._thread.start()

    def _in_background(self) -> None:
        try:
            self.failure = None
            self.run()
        except Exception as error:  # the journal is complete without sealing: appends must not suffer
            self.failure = error

    def run(self) -> int:
        """Seals every closed stretch; how many could not be sealed because they are damaged."""
        journal = Journal(self._journal.folder)  # its own, so that old stretches do not push out those that readers use
        file = os.open(journal.folder / "sealing.lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        try:
            fcntl.flock(file, fcntl.LOCK_EX)
            left = 0
            for first in journal.unsealed():
                if first < journal.mark().stretch and not self._stop.is_set():
                    left += not seal(journal, first, self._disk)
            return left
        finally:
            os.close(file)

    def close(self) -> None:
        self._stop.set()
        if self._thread:
            self._thread.join()
