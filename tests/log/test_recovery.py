"""What recovery cuts off is noticed by every open handle; what was acknowledged is never taken for a torn write."""

import os
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from penstock.errors import LogError
from penstock.log import Log
from penstock.log.frame import Found
from penstock.log.mark import Mark, read_mark
from tests.log.disks import FailingDisk, QuickDisk
from tests.log.test_threads import held_log, waiting

Opener = Callable[..., Log]


def stretch_file(log: Log) -> Path:
    return log.folder / "journal" / f"{0:020}.journal"


def frames(log: Log) -> list[Found]:
    return log._journal.stretch(0).frames


def damage(log: Log, frame: Found) -> None:
    """Neither of the frame's headers can be read any more."""
    with open(stretch_file(log), "r+b") as file:
        for at in (frame.start, frame.end - 16):
            file.seek(at)
            file.write(bytes(16))


def found(log: Log) -> list[tuple[int, int]]:
    return [(entry.offset, entry.value["id"]) for entry in log.read("t")]  # type: ignore[index,call-overload]


@pytest.mark.parametrize("rows", [1, 40], ids=["shorter", "longer"])
def test_a_handle_notices_that_another_one_has_cut_off_the_last_frame(open_log: Opener, rows: int) -> None:
    stale = open_log()
    stale.create_topic("t", "id INT")
    for each in range(3):
        stale.append("t", [{"id": each}])
    assert len(found(stale)) == 3
    damage(stale, frames(stale)[-1])
    other = open_log()
    other.append("t", [{"id": 10}] * rows)
    want = [(0, 0), (1, 1), *((2 + at, 10) for at in range(rows))]
    assert found(stale) == want and stale.ends("t") == (2 + rows,)
    stale.append("t", [{"id": 20}])
    assert found(stale) == found(other) == found(open_log()) == [*want, (2 + rows, 20)]


def test_a_topic_whose_creation_was_cut_off_is_unknown_to_every_handle(open_log: Opener) -> None:
    stale = open_log()
    stale.create_topic("a", "id INT")
    stale.create_topic("t", "id INT")
    damage(stale, frames(stale)[-1])
    open_log().append("a", [{"id": each} for each in range(200)])
    with pytest.raises(LogError, match='topic "t" does not exist'):
        stale.append("t", [{"id": 1}])


def test_appends_keep_the_number_of_the_last_cut_and_a_cut_changes_it(open_log: Opener, folder: Path) -> None:
    log = open_log()
    before = log.mark().cut
    log.create_topic("t", "id INT")
    log.seal()
    assert log.mark().cut == before
    log.close()
    with open(max((folder / "journal").iterdir()), "ab") as file:
        file.write(b"torn")
    assert open_log().mark().cut != before


def test_damage_inside_the_last_group_does_not_make_its_other_frames_a_torn_write(open_log: Opener) -> None:
    log, disk, task = held_log(open_log)
    tasks = waiting(log, *[lambda: log.append("t", [{"id": 1}])] * 3)
    disk.release.set()
    for each in (task, *tasks):
        each.answer()
    assert [frame.header.group for frame in frames(log)[-3:]] == [2, 2, 2]
    damage(log, frames(log)[-3])
    with open(stretch_file(log), "ab") as file:
        file.write(b"torn")
    again = open_log()
    assert [report.length for report in again.set_aside()] == [4]
    assert [entry.offset for entry in again.read("t", skip_damage=True)] == [0, 2, 3]


def test_what_a_failed_sync_may_have_left_in_memory_is_written_again_before_it_is_committed(open_log: Opener) -> None:
    class Recording(QuickDisk):
        def __init__(self) -> None:
            self.written: list[tuple[int, bytes]] = []

        def write(self, file: int, pieces: Sequence[bytes], at: int) -> None:
            self.written.append((at, b"".join(pieces)))
            super().write(file, pieces, at)

    failing, recording = FailingDisk(), Recording()
    log = open_log(disk=failing)
    log.create_topic("t", "id INT")
    end = log.mark().end
    failing.fails = True
    with pytest.raises(LogError, match="could not be synced"):
        log.append("t", [{"id": 0}])
    left = stretch_file(log).read_bytes()[end:]
    assert found(open_log(disk=recording)) == [(0, 0)]
    assert (end, left) in recording.written


def test_a_recovery_killed_before_it_began_the_stretch_again_is_finished_by_the_next(
    open_log: Opener, folder: Path
) -> None:
    log = open_log()
    log.close()
    os.truncate(stretch_file(log), 0)
    (folder / "committed").write_bytes(Mark(0, 0, 0, cut=1).encode())
    log = open_log()
    log.create_topic("t", "id INT")
    log.append("t", [{"id": 0}])
    mark = read_mark(folder / "committed")
    assert mark and mark.cut != 1
    assert found(open_log()) == [(0, 0)] and log._journal.stretch(0).prelude
