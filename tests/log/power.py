"""A disk whose power can fail: what was not synced is lost, kept, or kept in part and out of order.

`image` builds, in another folder, what the disk could hold if the power failed now. A file holds what it did at its
last `sync`, and of the writes since any of their pages; a folder has the names of its last `sync_folder`, and any of
the changes since. Names may so survive alone that a real file system keeps together: the log has to bear more than it
will ever meet. Only what is renamed from one folder into another is never lost on the way, nor there twice.
"""

import os
from collections.abc import Callable, Sequence
from pathlib import Path
from random import Random
from threading import RLock

from penstock.log.disk import Disk

PAGE = 512


class FailingPower(Disk):
    """Calls `watch` before each of its operations."""

    def __init__(self, top: Path, watch: Callable[["FailingPower"], None] = lambda disk: None) -> None:
        self.top, self.watch = top, watch
        self.done = 0
        self._lock = RLock()
        self._ids: dict[int, int] = {}  # of what an inode is now: inodes are used again
        self._last_id = 0
        self._synced: dict[int, bytes] = {}
        self._writes: dict[int, list[tuple[int, bytes]]] = {}  # since the last sync; (length, b"") cuts off
        self._names: dict[int, dict[str, int]] = {}
        self._folders: set[int] = set()
        self._links: dict[int, str] = {}

    # What the log does

    def _step(self) -> None:
        self.done += 1
        self.watch(self)

    def open(self, path: Path, *, create: bool = False) -> int:
        with self._lock:
            new = create and not path.exists()
            if new:
                self._step()
            file = super().open(path, create=create)
            if new:
                self._ids.pop(os.fstat(file).st_ino, None)
            return file

    def write(self, file: int, pieces: Sequence[bytes], at: int) -> None:
        with self._lock:
            self._step()
            data = b"".join(pieces)
            self._writes.setdefault(self._id(os.fstat(file)), []).append((at, data))
            super().write(file, [data], at)

    def truncate(self, file: int, length: int) -> None:
        with self._lock:
            self._step()
            self._writes.setdefault(self._id(os.fstat(file)), []).append((length, b""))
            super().truncate(file, length)

    def sync(self, file: int) -> None:
        with self._lock:
            self._step()
            id_ = self._id(os.fstat(file))
            self._synced[id_] = os.pread(file, os.fstat(file).st_size, 0)
            self._writes.pop(id_, None)

    def sync_folder(self, folder: Path) -> None:
        with self._lock:
            self._step()
            self._names[self._id(os.stat(folder))] = self._listing(folder)

    def rename(self, old: Path, new: Path) -> None:
        with self._lock:
            self._step()
            if os.path.lexists(new):
                self._ids.pop(new.lstat().st_ino, None)
            super().rename(old, new)
            if old.parent != new.parent:
                self._names.setdefault(self._id(old.parent.stat()), {}).pop(old.name, None)
                self._names.setdefault(self._id(new.parent.stat()), {})[new.name] = self._id(new.lstat())

    def remove(self, path: Path) -> None:
        with self._lock:
            self._step()
            for each in (path, *path.rglob("*")) if path.exists() else ():
                self._ids.pop(each.lstat().st_ino, None)
            super().remove(path)

    def _id(self, stat: os.stat_result) -> int:
        if stat.st_ino not in self._ids:
            self._last_id += 1
            self._ids[stat.st_ino] = self._last_id
        return self._ids[stat.st_ino]

    def _listing(self, folder: Path) -> dict[str, int]:
        found = {}
        for entry in os.scandir(folder):
            found[entry.name] = self._id(entry.stat(follow_symlinks=False))
            if entry.is_symlink():
                self._links[found[entry.name]] = os.readlink(entry.path)
            elif entry.is_dir():
                self._folders.add(found[entry.name])
        return found

    # What the power leaves

    def image(self, into: Path, random: Random) -> None:
        """Builds in `into` what may be left of `top`."""
        survival = random.choice([0.0, 0.5, 0.5, 1.0])
        with self._lock:
            self._image_folder(self._id(os.stat(self.top)), self.top, into, lambda: random.random() < survival)

    def _image_folder(self, id_: int, now: Path, into: Path, survives: Callable[[], bool]) -> None:
        into.mkdir()
        synced = self._names.get(id_, {})
        current = self._listing(now) if now.is_dir() and self._id(os.stat(now)) == id_ else synced
        for name in sorted({*synced, *current}):
            chosen = current.get(name) if synced.get(name) == current.get(name) or survives() else synced.get(name)
            if chosen in self._links:
                (into / name).symlink_to(self._links[chosen])
            elif chosen in self._folders:
                self._image_folder(chosen, self._path(chosen, now / name), into / name, survives)
            elif chosen is not None:
                (into / name).write_bytes(self._content(chosen, now / name, survives))

    def _path(self, id_: int, likely: Path) -> Path:
        """Where the folder is now; it may have been renamed since its name was synced."""
        for path in (likely, *likely.parent.glob("*"), *likely.parent.glob(".*")):
            if path.is_dir() and self._id(os.stat(path)) == id_:
                return path
        return likely

    def _content(self, id_: int, now: Path, survives: Callable[[], bool]) -> bytes:
        data = bytearray(self._synced.get(id_, b""))
        writes = self._writes.get(id_)
        if writes is None and id_ not in self._synced and now.is_file() and self._id(now.stat()) == id_:
            writes = [(0, now.read_bytes())]  # written past this disk
        for at, written in writes or ():
            if not written:
                del data[at if survives() else len(data) :]
            first = at
            while first < at + len(written):
                last = min(first - first % PAGE + PAGE, at + len(written))
                if survives():
                    data.extend(bytes(max(0, last - len(data))))
                    data[first:last] = written[first - at : last - at]
                first = last
        return bytes(data)
