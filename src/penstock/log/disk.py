"""The disk: every durable change that the log makes to its files goes through here.

Each method does one thing to one file and says nothing about durability except `sync` and `sync_folder`, which return
only when the file's bytes, or the folder's names, would survive a power failure. Tests hand in disks that die or
forget.
"""

import os
import shutil
from collections.abc import Sequence
from pathlib import Path


class Disk:
    def open(self, path: Path, *, create: bool = False) -> int:
        return os.open(path, os.O_RDWR | os.O_CLOEXEC | (os.O_CREAT if create else 0), 0o644)

    def write(self, file: int, pieces: Sequence[bytes], at: int) -> None:
        """Writes all of `pieces`, one after the other; a short write is an error of the operating system, raised."""
        data = b"".join(pieces)
        view = memoryview(data)
        while view:
            done = os.pwrite(file, view, at)
            view, at = view[done:], at + done

    def truncate(self, file: int, length: int) -> None:
        os.ftruncate(file, length)

    def sync(self, file: int) -> None:
        os.fdatasync(file)

    def sync_folder(self, folder: Path) -> None:
        file = os.open(folder, os.O_RDONLY | os.O_CLOEXEC)
        try:
            os.fsync(file)
        finally:
            os.close(file)

    def rename(self, old: Path, new: Path) -> None:
        os.rename(old, new)

    def remove(self, path: Path) -> None:
        if path.is_dir():
            shutil.rmtree(path, ignore_errors=True)
        else:
            path.unlink(missing_ok=True)

    def write_whole(self, path: Path, data: bytes) -> None:
        """The file appears with all its bytes, durably, or not at all."""
        unfinished = path.with_name(f".{path.name}.new")
        file = self.open(unfinished, create=True)
        try:
            self.truncate(file, 0)
            self.write(file, [data], 0)
            self.sync(file)
        finally:
            os.close(file)
        self.rename(unfinished, path)
        self.sync_folder(path.parent)
