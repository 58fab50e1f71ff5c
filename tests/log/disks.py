"""Disks to hand to a log: quick, full, failing, waiting."""

import errno
import os
import re
from collections.abc import Sequence
from pathlib import Path
from threading import Event

from penstock.log.disk import Disk


class QuickDisk(Disk):
    """Does not sync: for tests in which no power fails."""

    def sync(self, file: int) -> None:
        pass

    def sync_folder(self, folder: Path) -> None:
        pass


class FullDisk(QuickDisk):
    """Has no room for its `nth` write from now on to a file whose path matches: half of it is written. Then somebody
    makes room."""

    def __init__(self, path: str) -> None:
        self.path = path
        self.nth = 0

    def write(self, file: int, pieces: Sequence[bytes], at: int) -> None:
        if re.search(self.path, os.readlink(f"/proc/self/fd/{file}")):
            self.nth -= 1
            if self.nth == 0:
                data = b"".join(pieces)
                os.pwrite(file, data[: len(data) // 2], at)
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        super().write(file, pieces, at)


class FailingDisk(Disk):
    """Its syncs fail once `fails` is set."""

    fails = False

    def sync(self, file: int) -> None:
        if self.fails:
            raise OSError(errno.EIO, os.strerror(errno.EIO))
        super().sync(file)


class WaitingDisk(QuickDisk):
    """Its first sync after `hold` waits until `release` is set; `held` says that it does."""

    def __init__(self) -> None:
        self.hold, self.held, self.release = Event(), Event(), Event()

    def sync(self, file: int) -> None:
        if self.hold.is_set() and not self.held.is_set():
            self.held.set()
            assert self.release.wait(20)
