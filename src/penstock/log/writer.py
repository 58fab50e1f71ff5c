"""The writer: appends become frames, one after the other, durable and all or nothing.

Writers in several processes take turns by a file lock. Appends of several threads that wait for the same turn are
written and synced together (one *group*). An append is acknowledged after the sync and after the mark has moved. A
failed write leaves the journal as it was; after a failed sync, which leaves nobody knowing what is on the disk, the
writer refuses to go on until the log is opened again.
"""

import errno
import fcntl
import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from threading import Lock
from typing import TypeVar

from penstock.errors import ConditionFailed, LogError, PenstockError
from penstock.log.catalog import Catalog
from penstock.log.disk import Disk
from penstock.log.draft import Draft, Part
from penstock.log.frame import Block, Header, encode
from penstock.log.journal import Journal
from penstock.log.mark import Mark, read_mark
from penstock.log.records import Appended, Condition, EndOffset, Epoch, appended
from penstock.log.recovery import begin_stretch, recover, write_mark
from penstock.log.stretch import read_back
from penstock.log.topic import check_partition

T = TypeVar("T")


@dataclass(frozen=True)
class Limits:
    """When a stretch is closed and the next one begun."""

    stretch_bytes: int = 64 << 20
    stretch_frames: int = 16_384


@dataclass
class _Ticket:
    """A draft waiting for its turn, then its answer."""

    draft: Draft
    answer: Appended | BaseException | None = None
    done: bool = False


class Writer:
    def __init__(
        self, journal: Journal, identity: str, *, disk: Disk, clock: Callable[[], int], limits: Limits
    ) -> None:
        self._journal = journal
        self._folder: Path = journal.folder
        self._identity = identity
        self._disk = disk
        self._clock = clock
        self._limits = limits
        self._queue: list[_Ticket] = []
        self._queue_lock = Lock()
        self._turn = Lock()
        self._lock_file = os.open(self._folder / "lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        self._mark_file = disk.open(self._folder / "committed", create=True)
        self._file = -1
        self._stretch = -1
        self._catalog: Catalog | None = None
        self._caught_up: Mark | None = None
        self._broken = False

    def close(self) -> None:
        with self._turn:
            self._stretch = -1
            for file in (self._lock_file, self._mark_file, self._file):
                if file >= 0:
                    os.close(file)
            self._lock_file = self._mark_file = self._file = -1

    def commit(self, draft: Draft) -> Appended | None:
        """Appends the draft durably; None if there was nothing to write."""
        ticket = _Ticket(draft)
        with self._queue_lock:
            self._queue.append(ticket)
        with self._turn:
            if not ticket.done:
                self._write_group()
        if isinstance(ticket.answer, BaseException):
            raise ticket.answer
        return ticket.answer

    def ask(self, question: Callable[[Catalog], T]) -> T:
        """What the catalog up to the mark says; in turn with appends, which change it before they are committed."""
        with self._turn:
            mark = read_mark(self._folder / "committed")
            if mark is None:  # its writer died over it
                with self._locked():
                    mark = self._settled_mark()
            return question(self._catch_up(mark))

    def settle(self, *, wait: bool) -> bool:
        """Recovers if the last run left something to recover, or if the last frame is gone to damage. Without `wait`,
        not while another process is writing: it has.
        """
        with self._turn, self._locked(wait=wait) as held:
            if held:
                mark = self._settled_mark()
                if mark.next_frame > mark.stretch and not read_back(self._opened(mark.stretch), 0, mark.end):
                    self._recovered()
            return held

    def roll(self) -> None:
        """Closes the open stretch, if it holds any frames, so that it can be sealed."""
        with self._turn, self._locked():
            mark = self._settled_mark()
            if mark.next_frame > mark.stretch:
                self._begin_stretch(self._catch_up(mark))

    @contextmanager
    def _locked(self, *, wait: bool = True) -> Iterator[bool]:
        if self._lock_file < 0:
            raise LogError("the log is closed")
        try:
            fcntl.flock(self._lock_file, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
        except BlockingIOError:
            yield False
            return
        try:
            yield True
        finally:
            fcntl.flock(self._lock_file, fcntl.LOCK_UN)

    def _write_group(self) -> None:
        with self._queue_lock:
            group, self._queue = self._queue, []
        try:
            with self._locked():
                self._write(group)
        except BaseException as raised:
            error = raised
            if isinstance(raised, OSError):
                error = _refused(raised, kept="The append may or may not be kept.")
                error.__cause__ = raised
            self._catalog = None  # it may be ahead of the disk: read it anew
            for ticket in group:
                ticket.answer = ticket.answer if isinstance(ticket.answer, BaseException) else error
            if not isinstance(error, Exception):
                raise
        finally:
            for ticket in group:
                ticket.done = True

    def _write(self, tickets: Sequence[_Ticket]) -> None:
        try:
            mark, catalog = self._ready()
        except OSError as error:
            raise _refused(error, kept="Nothing of this append was kept.") from error
        pieces: list[bytes] = []
        group: list[Header] = []
        for ticket in tickets:
            try:
                pieces += self._prepared(ticket, catalog, group)
            except PenstockError as error:
                ticket.answer = error
        if pieces:
            self._write_durably(pieces, mark)
            fresh = Mark(mark.stretch, mark.end + sum(map(len, pieces)), catalog.next_frame)
            self._disk.write(self._mark_file, [fresh.encode()], 0)
            self._caught_up = fresh

    def _ready(self) -> tuple[Mark, Catalog]:
        """The mark and the catalog, in a stretch that has room."""
        mark = self._settled_mark()
        catalog = self._catch_up(mark)
        return self._begin_stretch(catalog) if self._is_full(mark) else mark, catalog

    def _is_full(self, mark: Mark) -> bool:
        frames = mark.next_frame - mark.stretch
        return frames >= self._limits.stretch_frames or (frames > 0 and mark.end >= self._limits.stretch_bytes)

    def _write_durably(self, pieces: Sequence[bytes], mark: Mark) -> None:
        file = self._opened(mark.stretch)
        try:
            self._disk.write(file, pieces, mark.end)
        except OSError as error:
            self._disk.truncate(file, mark.end)
            self._disk.sync(file)  # or half a frame would come back after a power failure, in a stretch closed by then
            raise _refused(error, kept="Nothing of this append was kept.") from error
        try:
            self._disk.sync(file)
        except OSError as error:
            self._broken = True
            raise LogError(
                f"the log could not be synced: {error.strerror}", detail="The append may or may not be kept."
            ) from error

    def _prepared(self, ticket: _Ticket, catalog: Catalog, group: list[Header]) -> list[bytes]:
        """The bytes of the ticket's frame, taken into catalog and group; none where there is nothing to write."""
        draft = ticket.draft
        last = catalog.producers.get(draft.producer) if draft.producer is not None else None
        if last is not None and draft.sequence is not None and draft.sequence <= last[0]:
            ticket.answer = self._repeated(draft, group, last[0])
            return []
        for condition in draft.expect:
            _check(condition, catalog)
        control = tuple(draft.control(catalog))
        if not (draft.parts or control or draft.punctuation or draft.note or draft.producer):
            return []
        header = self._header(draft, catalog, group[0].frame if group else catalog.next_frame, control)
        ticket.answer = appended(header)
        catalog.apply(header)
        group.append(header)
        return encode(header, [part.data for part in draft.parts])

    def _header(self, draft: Draft, catalog: Catalog, group: int, control: Sequence[object]) -> Header:
        return Header(
            frame=catalog.next_frame,
            group=group,
            at=max(catalog.appended_at, self._clock()),
            blocks=tuple(_blocks(draft.parts, catalog)),
            producer=draft.producer,
            sequence=draft.sequence,
            note=draft.note,
            punctuation=draft.punctuation,
            control=tuple(control),  # type: ignore[arg-type]
        )

    def _repeated(self, draft: Draft, group: Sequence[Header], last: int) -> Appended | Exception:
        assert draft.producer is not None and draft.sequence is not None
        for header in group:  # by another thread, in this very turn
            if (header.producer, header.sequence) == (draft.producer, draft.sequence):
                return appended(header, repeated=True)
        found = self._journal.find(draft.producer, draft.sequence)
        if found is not None:
            return appended(found, repeated=True)
        return LogError(
            f'producer "{draft.producer}" went past sequence {draft.sequence} without using it',
            detail=f"Its last sequence is {last}.",
            hint="Sequences only rise.",
        )

    def _settled_mark(self) -> Mark:
        """The mark, after recovery where the journal does not end at it."""
        if self._broken:
            raise LogError(
                "an earlier sync of the log failed", hint="Open the log again; what was acknowledged is safe."
            )
        mark = read_mark(self._folder / "committed")
        return mark if mark and self._ends_at(mark) else self._recovered()

    def _recovered(self) -> Mark:
        self._catalog = None
        self._stretch = -1
        return recover(self._journal, self._identity, self._disk)

    def _ends_at(self, mark: Mark) -> bool:
        """Whether the mark is where the journal ends. After a power failure it may point into a stretch long closed,
        even sealed."""
        if mark.next_frame > mark.stretch and self._journal.has(mark.next_frame):
            return False
        try:
            return os.fstat(self._opened(mark.stretch)).st_size == mark.end
        except FileNotFoundError:
            return False

    def _catch_up(self, mark: Mark) -> Catalog:
        """The catalog with all frames up to the mark taken in."""
        if self._catalog is None or self._caught_up is None or self._caught_up.stretch != mark.stretch:
            self._catalog = self._journal.catalog_after(mark.stretch)
        elif self._caught_up != mark:
            for found in self._journal.stretch(mark.stretch).frames_from(self._catalog.next_frame):
                self._catalog.apply(found.header)
        self._catalog.next_frame = max(self._catalog.next_frame, mark.next_frame)
        self._caught_up = mark
        return self._catalog

    def _opened(self, stretch: int) -> int:
        if self._stretch != stretch:
            old, self._file = self._file, -1
            if old >= 0:
                os.close(old)
            self._file = self._disk.open(self._folder / "journal" / f"{stretch:020}.journal")
            self._stretch = stretch
        return self._file

    def _begin_stretch(self, catalog: Catalog) -> Mark:
        prelude = begin_stretch(self._folder, self._identity, catalog, self._disk)
        mark = Mark(catalog.next_frame, prelude, catalog.next_frame)
        write_mark(self._folder, self._disk, mark)
        self._caught_up = mark
        return mark


def _refused(error: OSError, *, kept: str) -> LogError:
    room = "Make room on the disk." if error.errno == errno.ENOSPC else ""
    return LogError(f"the log could not be written: {error.strerror}", detail=kept, hint=room)


def _blocks(parts: Sequence[Part], catalog: Catalog) -> Iterator[Block]:
    index = start = 0
    ends: dict[tuple[str, int], int] = {}
    tops: dict[tuple[str, int], int] = {}
    for part in parts:
        at = catalog.partitions[part.topic]
        key = (part.topic, part.partition)
        base = ends.get(key, at.ends[part.partition])
        top = tops.get(key, at.tops[part.partition])
        if part.times:
            top = tops[key] = max(part.times[1], top if top is not None else part.times[1])
        yield Block(
            topic=part.topic,
            partition=part.partition,
            schema=part.schema,
            base=base,
            count=part.count,
            index=index,
            bytes=part.bytes,
            crc=part.crc,
            start=start,
            file=part.file,
            extras=part.extras,
            times=part.times,
            top=top,
        )
        ends[key] = base + part.count
        index += part.count
        start += len(part.data)


def _check(condition: Condition, catalog: Catalog) -> None:
    match condition:
        case EndOffset(topic, partition, offset):
            check_partition(catalog.topic(topic), partition)
            found = catalog.ends(topic)[partition]
            if found != offset:
                raise ConditionFailed(
                    f'partition {partition} of "{topic}" does not end at {offset}',
                    detail=f"It ends at {found}: somebody appended meanwhile.",
                    hint="Read what is new, then try again.",
                )
        case Epoch(name, value):
            found = catalog.epochs.get(name, 0)
            if found != value:
                raise ConditionFailed(
                    f'epoch {value} of "{name}" is over',
                    detail=f"The epoch is {found}.",
                    hint="A newer owner has taken over: stop.",
                )
