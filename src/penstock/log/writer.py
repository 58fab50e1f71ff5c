"""The writer: appends become frames, one after the other, durable and all or nothing.

Writers in several processes take turns by a file lock. Appends of several threads that wait for the same turn are
written and synced together (one *group*). An append is acknowledged after the sync and after the mark has moved. A
failed write leaves the journal as it was; after a failed sync, which leaves nobody knowing what is on the disk, the
writer refuses to go on until the log is opened again. Who asks for the catalog waits for no append.
"""

import errno
import fcntl
import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from threading import Lock
from typing import TypeVar

from penstock.errors import DamagedLog, LogError
from penstock.log.admission import admitted, blocks_of, check_condition
from penstock.log.catalog import Catalog
from penstock.log.disk import Disk
from penstock.log.draft import Draft
from penstock.log.frame import Header, encode
from penstock.log.journal import Journal
from penstock.log.known import Known
from penstock.log.mark import Mark, read_mark
from penstock.log.records import Appended, appended
from penstock.log.recovery import begin_stretch, recover, write_mark
from penstock.log.stretch import read_back

T = TypeVar("T")
MAYBE = "The append may or may not be kept."


@dataclass(frozen=True)
class Limits:
    """When a stretch is closed and the next one begun."""

    stretch_bytes: int = 64 << 20
    stretch_frames: int = 16_384


@dataclass(frozen=True)
class _Earlier:
    """The answer to a sequence that its producer has used or gone past, to be looked up after the turn. Here is the
    producer's last one."""

    sequence: int
    frame: int


@dataclass(frozen=True)
class _Frame:
    """A draft, ready to be written."""

    header: Header
    pieces: list[bytes]
    answer: Appended


@dataclass(eq=False)
class _Ticket:
    """A draft waiting for its turn, then its answer."""

    draft: Draft
    answer: Appended | _Earlier | BaseException | None = None
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
        self._lock_file = self._mark_file = self._file = -1
        self._file_of: tuple[int, int] | None = None
        self._mine = Known(journal)  # takes frames in before they are committed
        self._told = Known(journal)
        self._told_lock = Lock()
        self._broken = False

    def open(self) -> None:
        self._lock_file = os.open(self._folder / "lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        self._mark_file = self._disk.open(self._folder / "committed", create=True)

    def close(self) -> None:
        if self._journal.is_inherited:  # a thread that the fork left behind may hold the turn
            self._close()
        else:
            with self._turn:
                self._close()

    def _close(self) -> None:
        self._file_of = None
        for file in (self._lock_file, self._mark_file, self._file):
            if file >= 0:
                os.close(file)
        self._lock_file = self._mark_file = self._file = -1

    def commit(self, draft: Draft) -> Appended | None:
        """Appends the draft durably; None if there was nothing to write."""
        self._journal.check_usable()
        ticket = _Ticket(draft)
        try:
            with self._queue_lock:
                self._queue.append(ticket)
            with self._turn:
                if not ticket.done:
                    self._write_group()
        except BaseException:
            self._withdraw(ticket)
            raise
        if isinstance(ticket.answer, BaseException):
            raise ticket.answer
        return self._looked_up(draft, ticket.answer) if isinstance(ticket.answer, _Earlier) else ticket.answer

    def _withdraw(self, ticket: _Ticket) -> None:
        """Whoever waits for it was interrupted: it must not be written at some later time."""
        with self._queue_lock:
            if ticket in self._queue:
                self._queue.remove(ticket)

    def ask(self, question: Callable[[Catalog], T]) -> T:
        """What the catalog up to the mark says. Nobody who writes or waits for the writers' lock is waited for."""
        while True:
            self._journal.check_usable()
            with self._told_lock:
                mark = read_mark(self._folder / "committed")
                if mark is not None:
                    return question(self._told.at(mark))
            self.settle(wait=True)  # its writer died over it

    def settle(self, *, wait: bool) -> bool:
        """Recovers if the last run left something to recover, or if the last frame is gone to damage. Without `wait`,
        not while another process is writing: it has.
        """
        self._journal.check_usable()
        with self._turn, self._locked(wait=wait) as held:
            if held:
                mark = self._settled_mark()
                if mark.next_frame > mark.stretch and not read_back(self._opened(mark), 0, mark.end):
                    self._recovered()
            return held

    def roll(self) -> None:
        """Closes the open stretch, if it holds any frames, so that it can be sealed."""
        self._journal.check_usable()
        with self._turn, self._locked():
            mark = self._settled_mark()
            if mark.next_frame > mark.stretch:
                self._begin_stretch(self._mine.at(mark), mark)

    @contextmanager
    def _locked(self, *, wait: bool = True) -> Iterator[bool]:
        if self._lock_file < 0:
            raise LogError("the log is closed")
        try:
            yield self._takes_lock(wait=wait)
        finally:  # also where it was not taken, which does nothing
            fcntl.flock(self._lock_file, fcntl.LOCK_UN)

    def _takes_lock(self, *, wait: bool) -> bool:
        try:
            fcntl.flock(self._lock_file, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
            return True
        except BlockingIOError:
            return False

    def _write_group(self) -> None:
        with self._queue_lock:
            group, self._queue = self._queue, []
        try:
            with self._locked():
                self._write(group)
        except BaseException as raised:
            self._mine.forget()  # it may be ahead of the disk: it is read anew
            error = _told_to_all(raised)
            for ticket in group:
                if not ticket.done and not isinstance(ticket.answer, Exception):
                    ticket.answer = error
            if not isinstance(raised, Exception):
                raise
        finally:
            for ticket in group:
                ticket.done = True

    def _write(self, tickets: Sequence[_Ticket]) -> None:
        try:
            mark, catalog = self._ready()
        except OSError as error:
            raise _refused(error, kept="Nothing of this append was kept.") from error
        frames = self._frames(tickets, catalog)
        if not frames:
            return
        pieces = [piece for frame in frames for piece in frame.pieces]
        self._write_durably(pieces, mark)
        fresh = replace(mark, end=mark.end + sum(map(len, pieces)), next_frame=catalog.next_frame)
        self._disk.write(self._mark_file, [fresh.encode()], 0)
        for ticket in tickets:
            ticket.done = True
        self._mine.move(mark, fresh, ())
        with self._told_lock:
            self._told.move(mark, fresh, [frame.header for frame in frames])

    def _frames(self, tickets: Sequence[_Ticket], catalog: Catalog) -> list[_Frame]:
        """The frames of all drafts that can be written, taken into the catalog; every ticket gets its answer."""
        frames: list[_Frame] = []
        for ticket in tickets:
            try:
                found = self._prepared(ticket.draft, catalog, frames[0].header.frame if frames else catalog.next_frame)
            except Exception as error:  # is this draft's alone
                ticket.answer = error
                continue
            if isinstance(found, _Frame):
                catalog.apply(found.header)
                frames.append(found)
            ticket.answer = found.answer if isinstance(found, _Frame) else found
        return frames

    def _ready(self) -> tuple[Mark, Catalog]:
        """The mark and the catalog, in a stretch that has room."""
        mark = self._settled_mark()
        catalog = self._mine.at(mark)
        return self._begin_stretch(catalog, mark) if self._is_full(mark) else mark, catalog

    def _is_full(self, mark: Mark) -> bool:
        frames = mark.next_frame - mark.stretch
        return frames >= self._limits.stretch_frames or (frames > 0 and mark.end >= self._limits.stretch_bytes)

    def _write_durably(self, pieces: Sequence[bytes], mark: Mark) -> None:
        file = self._opened(mark)
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
            raise LogError(f"the log could not be synced: {error.strerror}", detail=MAYBE) from error

    def _prepared(self, draft: Draft, catalog: Catalog, group: int) -> _Frame | _Earlier | None:
        """The draft's frame; None where there is nothing to write."""
        last = catalog.producers.get(draft.producer) if draft.producer is not None else None
        if last is not None and draft.sequence is not None and draft.sequence <= last[0]:
            return _Earlier(*last)
        for condition in draft.expect:
            check_condition(condition, catalog)
        draft, dropped = admitted(draft, catalog)
        control = (*draft.control(catalog), *dropped)
        if not (draft.parts or control or draft.punctuation or draft.note or draft.producer):
            return None
        header = self._header(draft, catalog, group, control)
        return _Frame(header, encode(header, [part.data for part in draft.parts]), appended(header))

    def _header(self, draft: Draft, catalog: Catalog, group: int, control: Sequence[object]) -> Header:
        at = max(catalog.appended_at, self._clock())
        return Header(
            frame=catalog.next_frame,
            group=group,
            at=at,
            blocks=tuple(blocks_of(draft.parts, catalog, at)),
            producer=draft.producer,
            sequence=draft.sequence,
            note=draft.note,
            punctuation=draft.punctuation,
            control=tuple(control),  # type: ignore[arg-type]
        )

    def _looked_up(self, draft: Draft, last: _Earlier) -> Appended:
        assert draft.producer is not None and draft.sequence is not None
        is_last = draft.sequence == last.sequence
        found = self._journal.header(last.frame) if is_last else self._journal.find(draft.producer, draft.sequence)
        if found is not None:
            return appended(found, repeated=True)
        if is_last:
            raise DamagedLog(
                f'sequence {draft.sequence} of producer "{draft.producer}" was appended and cannot be read',
                detail=f"It is frame {last.frame}, which is damaged.",
            )
        raise LogError(
            f'producer "{draft.producer}" went past sequence {draft.sequence} without using it',
            detail=f"Its last sequence is {last.sequence}.",
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
        self._mine.forget()
        return recover(self._journal, self._identity, self._disk)

    def _ends_at(self, mark: Mark) -> bool:
        """Whether the mark is where the journal ends. After a power failure it may point into a stretch long closed,
        even sealed."""
        if mark.end == 0 or (mark.next_frame > mark.stretch and self._journal.has(mark.next_frame)):
            return False
        try:
            return os.fstat(self._opened(mark)).st_size == mark.end
        except FileNotFoundError:
            return False

    def _opened(self, mark: Mark) -> int:
        """The file of the mark's stretch; after a cut it may be another one."""
        if self._file_of != (mark.stretch, mark.cut):
            self._file_of = None
            old, self._file = self._file, -1
            if old >= 0:
                os.close(old)
            self._file = self._disk.open(self._folder / "journal" / f"{mark.stretch:020}.journal")
            self._file_of = mark.stretch, mark.cut
        return self._file

    def _begin_stretch(self, catalog: Catalog, mark: Mark) -> Mark:
        end = begin_stretch(self._folder, self._identity, catalog, self._disk)
        fresh = Mark(catalog.next_frame, end, catalog.next_frame, mark.cut)
        write_mark(self._folder, self._disk, fresh)
        self._mine.move(mark, fresh, ())
        self._opened(fresh)  # the old file is let go: once it is sealed, its room on the disk is to be free
        return fresh


def _told_to_all(raised: BaseException) -> BaseException:
    """What the other appends of a group are told, when one of their threads could not write it."""
    if isinstance(raised, OSError):
        error: LogError = _refused(raised, kept=MAYBE)
    elif not isinstance(raised, Exception):
        error = LogError("the log was interrupted while it wrote", detail=MAYBE, hint="Read whether it is there.")
    else:
        return raised
    error.__cause__ = raised
    return error


def _refused(error: OSError, *, kept: str) -> LogError:
    room = "Make room on the disk." if error.errno == errno.ENOSPC else ""
    return LogError(f"the log could not be written: {error.strerror}", detail=kept, hint=room)
