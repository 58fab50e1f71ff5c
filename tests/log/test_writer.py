"""The writer loses nothing where a stretch ends, where the disk is full, and where a sync fails."""

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from penstock.errors import LogError
from penstock.log import Limits, Log
from penstock.log.draft import MOST_BYTES, Draft, Part
from penstock.log.stretch import read_exactly
from tests.log.disks import FailingDisk, FullDisk, QuickDisk
from tests.texts import refused

Opener = Callable[..., Log]


def ids(log: Log) -> list[int]:
    return [entry.value["id"] for entry in log.read("t")]  # type: ignore[index,call-overload]


@pytest.mark.parametrize("limits", [Limits(stretch_bytes=1), Limits(stretch_frames=1), Limits(stretch_bytes=900)])
def test_stretches_of_any_size_keep_every_frame(open_log: Opener, limits: Limits) -> None:
    log = open_log(disk=QuickDisk(), limits=limits)
    log.create_topic("t", "id INT")
    for each in range(10):
        log.append("t", [{"id": each}])
        if each % 2:
            log.seal()
        assert ids(log) == list(range(each + 1))
    log.close()
    assert ids(open_log()) == list(range(10))


def test_a_log_that_does_not_exist_is_not_made_unless_asked(folder: Path) -> None:
    with pytest.raises(LogError, match="there is no log at"):
        Log.open(folder, create=False)
    assert not folder.exists()


# Large appends


def test_a_part_that_no_reader_could_hold_is_refused() -> None:
    with refused("log/part-too-large"):
        Draft((Part("t", 0, schema=0, count=1, bytes=MOST_BYTES, crc=0),))


def test_bytes_that_the_system_reads_in_several_steps_are_read_whole(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").write_bytes(bytes(range(100)))
    with open(tmp_path / "file", "rb") as file, monkeypatch.context() as patched:
        patched.setattr(os, "pread", lambda fd, length, at, pread=os.pread: pread(fd, min(length, 7), at))
        assert read_exactly(file.fileno(), 50, 3) == bytes(range(3, 53))
        assert read_exactly(file.fileno(), 50, 90) == bytes(range(90, 100))


# Full disks, failing disks


@pytest.mark.parametrize("nth", range(1, 6))
@pytest.mark.parametrize(("path", "frames"), [(r"\d.journal$", 100), (r"\d.journal$", 1), (r"\d.journal.new$", 1)])
def test_a_full_disk_refuses_clearly_and_leaves_nothing_half_written(
    open_log: Opener, path: str, frames: int, nth: int
) -> None:
    disk = FullDisk(path)
    log = open_log(disk=disk, limits=Limits(stretch_frames=frames))
    log.create_topic("t", "id INT")
    disk.nth = nth
    for each in range(6):
        if disk.nth == 1:
            with refused("log/disk-full"):
                log.append("t", [{"id": 99}])
        log.append("t", [{"id": each}])
        assert ids(log) == list(range(each + 1))
    log.close()
    assert ids(open_log()) == list(range(6)) and log.set_aside() == []


def test_an_append_whose_mark_found_no_room_is_kept_or_not_and_its_repetition_doubles_nothing(open_log: Opener) -> None:
    disk = FullDisk("committed$")
    log = open_log(disk=disk)
    log.create_topic("t", "id INT")
    disk.nth = 1
    with refused("log/disk-full-at-the-mark"):
        log.append("t", [{"id": 0}], producer="p", sequence=0)
    log.append("t", [{"id": 0}], producer="p", sequence=0)
    assert ids(log) == ids(open_log()) == [0] and log.set_aside() == []


@pytest.mark.parametrize("mark", [b"", b"PSTKMARK", bytes(40)])
def test_a_mark_that_is_lost_while_the_log_is_open_is_written_anew(open_log: Opener, folder: Path, mark: bytes) -> None:
    log = open_log()
    log.create_topic("t", "id INT")
    log.append("t", [{"id": 0}])
    (folder / "committed").write_bytes(mark)
    assert ids(log) == [0]
    log.append("t", [{"id": 1}])
    assert ids(log) == ids(open_log()) == [0, 1]


def test_after_a_failed_sync_the_handle_refuses_to_go_on_and_opening_again_helps(open_log: Opener) -> None:
    disk = FailingDisk()
    log = open_log(disk=disk)
    log.create_topic("t", "id INT")
    log.append("t", [{"id": 1}])
    disk.fails = True
    with refused("log/sync-failed"):
        log.append("t", [{"id": 2}], producer="p", sequence=1)
    disk.fails = False
    for act in (lambda: log.append("t", [{"id": 3}]), lambda: log.create_topic("u"), log.seal):
        with refused("log/sync-failed-before"):
            act()
    again = open_log()
    again.append("t", [{"id": 2}], producer="p", sequence=1)
    assert ids(again) == [1, 2]
