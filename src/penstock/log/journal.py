"""The journal: all stretches of a log, open and sealed, read as one row of frames.

Reads without a lock, up to the committed mark. Files that sealing takes away while they are looked for are found
again in their sealed place. Frame headers of a stretch are read once and kept while the stretch is in use; when the
mark tells that recovery has cut something off, all of it is read anew.
"""

import os
import time
from bisect import bisect_left, bisect_right
from collections import OrderedDict
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from threading import RLock
from typing import Any

from penstock.errors import DamagedLog, LogError
from penstock.log.catalog import Catalog, restored
from penstock.log.frame import INDEX_BITS, Block, Found, Header
from penstock.log.mark import Mark, read_mark
from penstock.log.stretch import Gap, next_front, read_front, read_prelude, scan

KEPT = 8
"""Stretches whose headers stay in memory."""
NUMBER = "[0-9]" * 20
"""The name of a stretch; whatever else lies in the folders is not ours."""
TRIES = 100
PAUSE_SECONDS = 0.002
LIST = "files"
"""The name of a sealed stretch's list of files, where it is not the prelude's any more."""


@dataclass(frozen=True)
class Member:
    """A block and the frame that holds it."""

    found: Found
    block: Block

    @property
    def place(self) -> int:
        return self.found.header.frame << INDEX_BITS | self.block.index


@dataclass
class Stretch:
    """An open stretch file: its prelude, and as many of its frames as have been looked at."""

    first: int
    path: Path
    sealed: bool
    file: int
    prelude: dict[str, Any]
    seen: int
    frames: list[Found] = field(default_factory=list)
    members: dict[tuple[str, int], list[Member]] = field(default_factory=dict)
    """The blocks of each topic and partition, in the order of their offsets."""
    gaps: list[Gap] = field(default_factory=list)
    files: list[dict[str, Any]] = field(default_factory=list)
    """What lies in which file, once it is sealed."""
    unlisted: bool = False
    """Whether that cannot be read."""

    def __del__(self) -> None:
        os.close(self.file)

    @property
    def folder(self) -> Path:
        return self.path.parent

    def frames_from(self, number: int) -> list[Found]:
        """The frames seen so far whose number is at least `number`."""
        return self.frames[bisect_left(self.frames, number, key=lambda found: found.header.frame) :]

    def members_between(self, topic: str, partition: int, start: int, end: int) -> list[Member]:
        """The blocks that hold any of the offsets from `start` up to `end`."""
        members = self.members.get((topic, partition), [])
        first = bisect_right(members, start, key=lambda member: member.block.end)
        last = bisect_left(members, end, key=lambda member: member.block.base)
        return members[first:last]

    def read_on(self, end: int) -> None:
        after = self.frames[-1].header.frame if self.frames else self.first - 1
        for each in scan(self.file, self.seen, end, after=after):
            if isinstance(each, Gap):
                self.gaps.append(each)
            else:
                self.frames.append(each)
                for block in each.header.blocks:
                    self.members.setdefault((block.topic, block.partition), []).append(Member(each, block))
        self.seen = max(self.seen, end)


class Journal:
    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._lock = RLock()
        self._open: OrderedDict[tuple[int, bool], Stretch] = OrderedDict()
        self._cut: int | None = None
        self._process = os.getpid()
        self._closed = False

    @property
    def is_inherited(self) -> bool:
        """Whether this is a fork of the process that opened the log."""
        return os.getpid() != self._process

    def check_usable(self) -> None:
        """Refuses where the log is closed, and in a forked process: it would share the locks of its parent."""
        if self.is_inherited:
            raise LogError(
                f'the log at "{self.folder}" was opened by another process',
                detail=f"Process {self._process} opened it; this is process {os.getpid()}, forked from it.",
                hint="Open the log in the child.",
            )
        if self._closed:
            raise LogError("the log is closed", hint="Open it again.")

    def close(self) -> None:
        """Lets go of all files; those that a reader is in the middle of are closed when it ends."""
        self._closed = True
        self._open = OrderedDict()

    def mark(self) -> Mark:
        self.check_usable()
        with self._lock:
            mark = read_mark(self.folder / "committed")
            if mark is None:
                raise DamagedLog(
                    f'the mark of the log at "{self.folder}" cannot be read',
                    hint="Open the log again, for instance by penstock log topics: that writes it anew.",
                )
            if mark.cut != self._cut:
                self._open.clear()
                self._cut = mark.cut
            return mark

    def firsts(self) -> list[int]:
        """The first frames of all stretches that readers may see, in order."""
        last = self.mark().stretch
        return sorted(first for first in {*self.unsealed(), *self.sealed()} if first <= last)

    def unsealed(self) -> list[int]:
        return sorted(int(path.stem) for path in (self.folder / "journal").glob(f"{NUMBER}.journal"))

    def sealed(self) -> list[int]:
        return sorted(int(path.name) for path in (self.folder / "sealed").glob(NUMBER))

    def has(self, first: int) -> bool:
        """Whether there is a stretch that begins with this frame."""
        return any(path.exists() for path in self._paths(first))

    def stretch(self, first: int) -> Stretch:
        """The stretch with all its committed frames read."""
        for _ in range(TRIES):
            with self._lock:
                mark = self.mark()
                stretch = self._opened(first)
                size = os.fstat(stretch.file).st_size
                # It may have been closed and sealed since the mark was read, whose end is then not one of this file.
                end = mark.end if first == mark.stretch and not stretch.sealed else size
                if size >= end and self._read_on(stretch, end, mark):
                    return stretch
            time.sleep(PAUSE_SECONDS)  # recovery is at work: it cuts the file before it moves the mark
        raise DamagedLog(
            f'the log at "{self.folder}" is shorter than what was committed',
            detail=f"{stretch.path.name} has {size} bytes of {mark.end}.",
            hint="Open the log again, then penstock log check says what was lost.",
        )

    def _read_on(self, stretch: Stretch, end: int, mark: Mark) -> bool:
        """Reads what is new; False if recovery has changed the file meanwhile."""
        if stretch.seen >= end:
            return True
        stretch.read_on(end)
        return self.mark().cut == mark.cut

    def _paths(self, first: int) -> tuple[Path, Path]:
        """Where the stretch is if it is sealed, and if it is not."""
        name = f"{first:020}"
        return self.folder / "sealed" / name / "headers.journal", self.folder / "journal" / f"{name}.journal"

    def _opened(self, first: int) -> Stretch:
        sealed, open_ = self._paths(first)
        for path in (sealed, open_, sealed):  # sealing may come between the first look and the second
            key = (first, path is sealed)
            if key in self._open:
                self._open.move_to_end(key)
                if key[1] or not sealed.exists():
                    return self._open[key]
            try:
                file = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
            except FileNotFoundError:
                continue
            stretch = self._open[key] = self._read(first, path, file, sealed=path is sealed)
            self._let_go()
            return stretch
        raise DamagedLog(
            f"the frames from {first} on are missing", detail=f'There is neither "{sealed}" nor "{open_}".'
        )

    def _begun(self, first: int) -> Stretch:
        """The stretch, as far as it has been read."""
        with self._lock:
            self.mark()
            return self._opened(first)

    def _read(self, first: int, path: Path, file: int, *, sealed: bool) -> Stretch:
        found = read_prelude(file)
        if found:
            files = _listed(path.parent, found[0]) if sealed else []
            return Stretch(first, path, sealed, file, *found, files=files or [], unlisted=files is None)
        # What the prelude said follows from the stretches before; the frames after it are found by their marks. Which
        # files a sealed stretch has is said nowhere else: their records are missing, and whoever reads says so.
        size = os.fstat(file).st_size
        start = next_front(file, 24, size, after=first - 1)
        frame = read_front(file, start, size)
        lost = [] if start == size or (frame and frame.header.frame == first) else [Gap(24, start)]
        return Stretch(first, path, sealed, file, {}, start, gaps=lost)

    def reopened(self, first: int) -> Stretch:
        """The stretch as it lies on the disk now: it may have been sealed, or its files rewritten, since."""
        with self._lock:
            for sealed in (True, False):
                self._open.pop((first, sealed), None)
        return self.stretch(first)

    def _let_go(self) -> None:
        """Forgets the stretches not used for longest, and files sealed since: removed, they would keep their room."""
        for first in [first for first, sealed in self._open if not sealed and self._paths(first)[0].exists()]:
            del self._open[first, False]
        while len(self._open) > KEPT:
            self._open.popitem(last=False)

    def catalog_before(self, first: int) -> Catalog:
        """The catalog as it stood before the stretch."""
        stretch = self._begun(first)
        if stretch.prelude:
            return restored(stretch.prelude)
        earlier = [each for each in self.firsts() if each < first]
        return self.catalog_after(earlier[-1]) if earlier else Catalog()

    def catalog_after(self, first: int) -> Catalog:
        """The catalog as it stands after the stretch's last committed frame."""
        catalog = self.catalog_before(first)
        for found in self.stretch(first).frames:
            catalog.apply(found.header)
        return catalog

    def catalog_now(self) -> Catalog:
        """The catalog as it stands at the mark."""
        return self.catalog_after(self.mark().stretch)

    def stretch_of(self, frame: int) -> int | None:
        """The first frame of the stretch in which `frame` is, or would be."""
        firsts = self.firsts()
        at = bisect_right(firsts, frame)
        return firsts[at - 1] if at else None

    def header(self, frame: int) -> Header | None:
        first = self.stretch_of(frame)
        found = self.stretch(first).frames_from(frame)[:1] if first is not None else []
        return found[0].header if found and found[0].header.frame == frame else None

    def find(self, producer: str, sequence: int) -> Header | None:
        """The frame that this producer appended under this sequence. Sequences only rise: it is in the last stretch
        before which they had not come so far.
        """
        firsts = self.firsts()
        at = bisect_left(firsts, sequence, key=lambda first: self._sequence_before(first, producer))
        for found in self.stretch(firsts[at - 1]).frames if at else ():
            if (found.header.producer, found.header.sequence) == (producer, sequence):
                return found.header
        return None

    def _sequence_before(self, first: int, producer: str) -> int:
        """The last sequence of the producer before the stretch, or -1."""
        prelude = self._begun(first).prelude
        producers = prelude["producers"] if prelude else self.catalog_before(first).producers
        return int(producers[producer][0]) if producer in producers else -1

    def headers(self, start: int = 0) -> Iterator[Header]:
        """All committed frames' headers from number `start` on."""
        begin = self.stretch_of(start) or 0
        for first in [each for each in self.firsts() if each >= begin]:
            for found in self.stretch(first).frames_from(start):
                yield found.header


def _listed(folder: Path, prelude: dict[str, Any]) -> list[dict[str, Any]] | None:
    """The files of a sealed stretch, as the prelude says or what has replaced that; None if that cannot be read."""
    try:
        file = os.open(folder / LIST, os.O_RDONLY | os.O_CLOEXEC)
    except FileNotFoundError:
        return list(prelude.get("files", ()))
    try:
        found = read_prelude(file)
        return list(found[0]["files"]) if found else None
    finally:
        os.close(file)
