"""The mirror: the journal of a log on Kafka as files of this machine, in the format of the embedded log.

Its frames have headers only; records lie in Kafka. It is a cache: whatever is wrong with it, it is begun again and
filled from the journal. Any number of processes may share one; they take turns by a file lock. It belongs to one log.
"""

import fcntl
import json
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from threading import Lock
from typing import Any, TypeVar

from penstock.errors import DamagedLog, LogError
from penstock.log.catalog import Catalog
from penstock.log.disk import Disk
from penstock.log.frame import Header, encode
from penstock.log.journal import Journal
from penstock.log.kafka.journal import placed
from penstock.log.known import Known
from penstock.log.mark import Mark, new_cut, read_mark
from penstock.log.recovery import begin_stretch, write_mark
from penstock.log.stretch import FORMAT

T = TypeVar("T")
FOLDERS = ("journal", "staged")
STRETCH_FRAMES = 16_384


class Behind(Exception):
    """Another process has begun the mirror again: it must be filled from where it stands."""


class Mirror:
    def __init__(self, folder: Path, identity: str) -> None:
        self.folder = folder
        self.journal = Journal(folder)
        self._identity = identity
        self._disk = Disk()
        self._mine = Known(self.journal)  # of whoever holds the lock
        self._told = Known(self.journal)
        self._told_lock = Lock()

    def open(self, where: Mapping[str, Any]) -> None:
        """Makes what is missing. `where` tells the kernel where the records are; it may hold secrets."""
        for name in FOLDERS:
            (self.folder / name).mkdir(parents=True, exist_ok=True)
        with self._locked():
            self._check_ours()
            if not self._is_whole():
                self._begin_again()
            _write_privately(self.folder / "kafka.json", json.dumps(where))

    def close(self) -> None:
        self.journal.close()

    # Reading

    def ask(self, question: Callable[[Catalog], T]) -> T:
        """What the catalog up to the mark says."""
        mark = self.journal.mark()
        with self._told_lock:
            return question(self._told.at(mark))

    # Writing

    def position(self) -> tuple[int, int]:
        """A frame, and an offset of the journal behind which no earlier frame is; as far as is known."""
        try:
            found = json.loads((self.folder / "position.json").read_text())
            frame, offset = int(found["frame"]), int(found["offset"])
        except (OSError, ValueError, KeyError, TypeError):
            return 0, 0
        return (frame, offset) if frame <= self.journal.mark().next_frame else (0, 0)

    def extend(self, first: int, said: Sequence[tuple[Header, int]], offset: int) -> None:
        """Takes in what the journal says from frame `first` on, each with the time of its message; `offset` is where
        the journal goes on. Frames that are there already are passed over.
        """
        with self._locked():
            mark = self._mended()
            if first > mark.next_frame:
                raise Behind
            if fresh := said[mark.next_frame - first :]:
                self._write(mark, fresh)
            known = {"frame": first + len(said), "offset": offset}
            _write_privately(self.folder / "position.json", json.dumps(known))

    def _write(self, mark: Mark, said: Sequence[tuple[Header, int]]) -> None:
        catalog = self._mine.at(mark)
        if mark.next_frame - mark.stretch >= STRETCH_FRAMES:
            end = begin_stretch(self.folder, self._identity, catalog, self._disk)
            fresh = Mark(catalog.next_frame, end, catalog.next_frame, mark.cut)
            write_mark(self.folder, self._disk, fresh)
            self._mine.move(mark, fresh, ())
            mark = fresh
        try:
            pieces = [piece for header, at in said for piece in _taken_in(catalog, header, at)]
            self._write_durably(pieces, mark)
        except BaseException:
            self._mine.forget()  # it may be ahead of the file: it is read anew
            raise
        fresh = Mark(mark.stretch, mark.end + sum(map(len, pieces)), catalog.next_frame, mark.cut)
        write_mark(self.folder, self._disk, fresh)
        self._mine.move(mark, fresh, ())

    def _write_durably(self, pieces: Sequence[bytes], mark: Mark) -> None:
        file = self._disk.open(self._stretch(mark))
        try:
            self._disk.write(file, pieces, mark.end)
            self._disk.sync(file)  # before the mark says so: readers must find whole frames, after a power failure too
        finally:
            os.close(file)

    def _stretch(self, mark: Mark) -> Path:
        return self.folder / "journal" / f"{mark.stretch:020}.journal"

    @contextmanager
    def _locked(self) -> Iterator[None]:
        file = os.open(self.folder / "lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        try:
            fcntl.flock(file, fcntl.LOCK_EX)
            yield
        finally:
            os.close(file)  # and with it the lock

    # Beginning

    def _check_ours(self) -> None:
        file = self.folder / "identity.json"
        try:
            found = json.loads(file.read_text())["identity"]
        except FileNotFoundError:
            strange = sorted(path.name for path in self.folder.glob("*") if path.name not in (*FOLDERS, "lock"))
            if strange:
                raise LogError(
                    f'the folder "{self.folder}" is not empty, and no mirror of a log on Kafka',
                    detail=f'There is "{strange[0]}" in it.',
                    hint="Choose a folder of its own for the mirror.",
                ) from None
            text = json.dumps({"format": FORMAT, "identity": self._identity, "created_at": 0})
            self._disk.write_whole(file, text.encode())
            return
        except (ValueError, KeyError, TypeError):
            found = "unknown"
        if found != self._identity:
            raise LogError(
                f'the folder "{self.folder}" mirrors another log',
                detail=f"It is that of {found}; this one is {self._identity}.",
                hint="Remove it, if that log is gone for good: it fills itself from Kafka. Else name another folder.",
            )

    def _is_whole(self) -> bool:
        """Whether the open stretch ends where the mark says, and can be read up to there."""
        try:
            mark = self._mended()
            stretch = self.journal.stretch(mark.stretch)
            catalog = self.journal.catalog_after(mark.stretch)
        except (DamagedLog, OSError, ValueError, KeyError, IndexError):
            return False
        return bool(stretch.prelude) and not stretch.gaps and catalog.next_frame == mark.next_frame

    def _mended(self) -> Mark:
        """The mark; what lies behind it is what a process had begun to write when it died."""
        mark = self.journal.mark()
        path = self._stretch(mark)
        size = path.stat().st_size
        if size > mark.end:
            os.truncate(path, mark.end)
        elif size < mark.end:
            raise DamagedLog(f'the mirror at "{self.folder}" is shorter than what was written')
        return mark

    def _begin_again(self) -> None:
        old = read_mark(self.folder / "committed")
        (self.folder / "position.json").unlink(missing_ok=True)
        for path in (self.folder / "journal").iterdir():
            path.unlink()
        self._mine.forget()
        end = begin_stretch(self.folder, self._identity, Catalog(), self._disk)
        write_mark(self.folder, self._disk, Mark(0, end, 0, new_cut(old.cut if old else None)))


def _taken_in(catalog: Catalog, said: Header, at: int) -> list[bytes]:
    frame = placed(said, catalog, at)
    catalog.apply(frame)
    return encode(frame, [])


def _write_privately(path: Path, text: str) -> None:
    """The file has all of the text, or what it had before; nobody else can read it."""
    unfinished = path.with_name(f".{path.name}.{os.getpid()}")
    file = os.open(unfinished, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
    try:
        os.write(file, text.encode())
    finally:
        os.close(file)
    os.replace(unfinished, path)
