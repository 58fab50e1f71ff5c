"""Recovery: after a crash, the open stretch and the mark are made to agree, and what is not whole is set aside.

Runs under the writers' lock, and only there may bytes be cut off. Nothing is deleted: torn bytes are copied to
`aside/` first, with a report that says what they were. Damage that has whole, later-synced frames after it was
committed once: it stays where it is and is reported by whoever reads it.
"""

import json
import os
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from penstock.errors import DamagedLog
from penstock.log.catalog import Catalog, snapshot
from penstock.log.disk import Disk
from penstock.log.frame import Found
from penstock.log.journal import Journal
from penstock.log.mark import Mark, new_cut, read_mark
from penstock.log.records import Span
from penstock.log.stretch import Gap, encode_prelude, is_whole, next_front, read_exactly, read_prelude, scan

CHUNK = 1 << 22


@dataclass(frozen=True)
class SetAside:
    """Bytes that were cut off the journal: a torn write, or the damaged end of it, which cannot be told apart.

    `spans` are the offsets that the bytes would have held, as far as their headers can be read; `committed` says that
    they lay below the mark, and so had been acknowledged; `lost` is the range of frames that the mark promised and
    the file does not have.
    """

    stretch: int
    byte: int
    length: int
    frame: int
    spans: tuple[Span, ...]
    committed: bool
    lost: tuple[int, int] | None

    def __str__(self) -> str:
        held = "; ".join(
            f"{s.topic} partition {s.partition} offsets {s.base} to {s.base + s.count - 1}" for s in self.spans
        )
        what = "committed frames are lost" if self.committed else "a torn write was set aside"
        where = f"frame {self.frame}, {self.length} bytes at byte {self.byte} of stretch {self.stretch}"
        return f"{what}: {where}{': ' + held if held else ''}"


def begin_stretch(folder: Path, identity: str, catalog: Catalog, disk: Disk) -> int:
    """Makes the file of the stretch that begins with the catalog's next frame; its length so far."""
    prelude = encode_prelude({"identity": identity} | snapshot(catalog))
    disk.write_whole(folder / "journal" / f"{catalog.next_frame:020}.journal", prelude)
    return len(prelude)


def recover(journal: Journal, identity: str, disk: Disk) -> Mark:
    """Makes the open stretch end where its last whole frame ends, and moves the mark there."""
    folder = journal.folder
    mark = read_mark(folder / "committed")
    last = max(journal.unsealed(), default=None)
    if last is None:
        raise no_open_stretch(folder)
    file = disk.open(folder / "journal" / f"{last:020}.journal")
    try:
        fresh = _settled(folder, disk, file, last, mark)
    finally:
        os.close(file)
    if fresh.end == 0:  # not even its prelude is there: it is begun again
        write_mark(folder, disk, fresh)
        catalog = journal.catalog_before(last)
        catalog.next_frame = last
        end = begin_stretch(folder, identity, catalog, disk)
        fresh = replace(fresh, end=end, cut=new_cut(fresh.cut))
    write_mark(folder, disk, fresh)
    return fresh


def no_open_stretch(folder: Path) -> DamagedLog:
    return DamagedLog(f'the open stretch of the log at "{folder}" is missing', hint="Restore journal/ from a copy.")


def write_mark(folder: Path, disk: Disk, mark: Mark) -> None:
    file = disk.open(folder / "committed", create=True)
    try:
        disk.write(file, [mark.encode()], 0)
    finally:
        os.close(file)


def _settled(folder: Path, disk: Disk, file: int, last: int, mark: Mark | None) -> Mark:
    size = os.fstat(file).st_size
    prelude = read_prelude(file)
    start = prelude[1] if prelude else next_front(file, 24, size, after=last - 1)
    known = min(mark.end, size) if mark and mark.stretch == last else start
    end, next_frame = _whole_end(file, start=start, known=known, size=size, first=last)
    if not prelude and next_frame == last:
        end = 0
    promised = max(next_frame, mark.next_frame) if mark and mark.stretch == last else next_frame
    committed = mark is not None and mark.stretch == last and mark.end > end
    cut = mark.cut if mark else new_cut()
    if end < size or committed:
        frame, lost = (next_frame, (next_frame, promised)) if committed else (promised, None)
        _set_aside(folder, disk, file, _report(file, last, end, frame, lost=lost))
        cut = new_cut(cut)
    _write_again(file, disk, known, end)
    disk.sync(file)
    return Mark(last, end, promised, cut)


def _write_again(file: int, disk: Disk, start: int, end: int) -> None:
    """Writes the bytes once more that are there: a sync of theirs that failed may have left them in memory alone, and
    the next sync would not know.
    """
    for at in range(start, end, CHUNK):
        disk.write(file, [read_exactly(file, min(CHUNK, end - at), at)], at)


def _whole_end(file: int, *, start: int, known: int, size: int, first: int) -> tuple[int, int]:
    """Where the last whole frame ends, and the number after it. Frames below `known` were acknowledged: nothing of
    them is in doubt, even where others of their group are damaged.
    """
    end, next_frame = start, first
    doubtful: Found | Gap | None = None
    for each in scan(file, start, size, after=first - 1):
        if isinstance(each, Gap) or (each.end > known and not is_whole(file, each)):
            doubtful = each
            continue
        header = each.header
        last_doubtful = header.frame - 1 if isinstance(doubtful, Gap) else doubtful.header.frame if doubtful else -1
        if each.end > known and header.group <= last_doubtful:
            continue  # written together with the doubtful one: neither was ever acknowledged
        end, next_frame, doubtful = each.end, header.frame + 1, None
    return end, next_frame


def _report(file: int, stretch: int, end: int, frame: int, *, lost: tuple[int, int] | None) -> SetAside:
    size = os.fstat(file).st_size
    found = scan(file, end, size, after=frame - 1)
    headers = [each.header if isinstance(each, Found) else each.torn for each in found]
    blocks = [block for header in headers if header for block in header.blocks]
    return SetAside(
        stretch=stretch,
        byte=end,
        length=max(0, size - end),
        frame=frame,
        spans=tuple(Span(block.topic, block.partition, block.base, block.count) for block in blocks),
        committed=lost is not None,
        lost=lost,
    )


def _set_aside(folder: Path, disk: Disk, file: int, report: SetAside) -> None:
    aside = folder / "aside"
    if not aside.exists():
        aside.mkdir()
        disk.sync_folder(folder)
    name = f"{report.stretch:020}-{report.byte}"
    while (aside / f"{name}.torn").exists():
        name += "+"
    torn = read_exactly(file, report.length, report.byte)
    disk.write_whole(aside / f"{name}.json", json.dumps(asdict(report)).encode())
    disk.write_whole(aside / f"{name}.torn", torn)
    disk.truncate(file, report.byte)


def reports(journal: Journal) -> list[SetAside]:
    """What has been set aside since the log was made."""
    return [_report_in(path) for path in sorted((journal.folder / "aside").glob("*.json"))]


def _report_in(path: Path) -> SetAside:
    try:
        found = json.loads(path.read_text())
        spans = tuple(Span(**span) for span in found.pop("spans"))
        lost = found.pop("lost")
        return SetAside(**found, spans=spans, lost=tuple(lost) if lost else None)
    except (ValueError, LookupError, TypeError) as error:
        raise DamagedLog(f'the report "{path}" cannot be read', hint="The bytes are in the file beside it.") from error
