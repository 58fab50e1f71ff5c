"""Handles are opened, closed and forked: what is in the way is named, and nothing is left behind."""

import os
import shutil
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from penstock.errors import LogError
from penstock.log import Limits, Log
from penstock.log.journal import Journal, Stretch
from tests.log.disks import QuickDisk
from tests.log.dying import in_child
from tests.texts import refused

Opener = Callable[..., Log]


def open_files(folder: Path) -> list[str]:
    links = [f"/proc/self/fd/{each}" for each in os.listdir("/proc/self/fd")]
    return [os.readlink(link) for link in links if os.path.islink(link) and str(folder) in os.readlink(link)]


# Opening


def test_a_file_in_the_place_of_a_log_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    for path in (tmp_path / "file", tmp_path / "file" / "log"):
        with pytest.raises(LogError, match="cannot be opened: Not a directory"):
            Log.open(path)


def test_a_folder_that_cannot_be_opened_is_named_and_let_go(folder: Path) -> None:
    Log.open(folder).close()
    (folder / "committed").unlink()
    (folder / "committed").mkdir()
    with pytest.raises(LogError, match="cannot be opened: Is a directory"):
        Log.open(folder)
    assert open_files(folder) == []


def test_stray_files_in_the_folders_of_a_log_are_let_be(open_log: Opener, folder: Path) -> None:
    with open_log() as log:
        log.create_topic("t", "id INT")
    for name in (f"{0:020} copy.journal", "7.journal", "notes"):
        shutil.copy(folder / "journal" / f"{0:020}.journal", folder / "journal" / name)
        shutil.copytree(folder / "journal", folder / "sealed" / name)
    log = open_log()
    log.append("t", [{"id": 0}])
    assert log.seal() == 0 and log.ends("t") == (1,)


def test_a_missing_folder_for_what_is_set_aside_is_made(open_log: Opener, folder: Path) -> None:
    open_log().close()
    shutil.rmtree(folder / "aside")
    with open(folder / "journal" / f"{0:020}.journal", "ab") as file:
        file.write(b"torn")
    assert len(open_log().set_aside()) == 1


def test_handles_that_append_once_each_go_round_the_partitions(open_log: Opener) -> None:
    open_log(disk=QuickDisk()).create_topic("t", "id INT", partitions=3)
    for each in range(6):
        with open_log(disk=QuickDisk()) as log:
            log.append("t", [{"id": each}])
    assert open_log().ends("t") == (2, 2, 2)


# Closing


def test_a_closed_log_refuses_to_be_used(log: Log) -> None:
    log.create_topic("t", "id INT")
    log.close()
    uses: list[Callable[[], object]] = [
        lambda: log.append("t", [{"id": 0}]),
        lambda: list(log.read("t")),
        lambda: list(log.batches("t")),
        lambda: list(log.frames()),
        lambda: log.topics(),
        lambda: log.mark(),
        lambda: log.seal(),
    ]
    for use in uses:
        with refused("log/closed"):
            use()


def test_a_closed_log_holds_no_files(open_log: Opener, folder: Path) -> None:
    log = open_log(disk=QuickDisk(), limits=Limits(stretch_frames=1))
    log.create_topic("t", "id INT")
    for each in range(6):
        log.append("t", [{"id": each}])
        list(log.read("t"))
    log.seal()
    list(log.read("t"))
    assert not any("journal/" in path and "deleted" in path for path in open_files(folder))
    log.close()
    assert open_files(folder) == []


# Forking


def test_a_forked_process_must_open_the_log_for_itself(log: Log) -> None:
    log.create_topic("t", "id INT")

    def use(_: Callable[[int], None]) -> None:
        for act in (lambda: log.append("t", [{"id": 0}]), log.topics, log.seal, lambda: log.read("t")):
            with pytest.raises(LogError, match="was opened by another process"):
                act()
        log.close()
        with Log.open(log.folder) as own:
            own.append("t", [{"id": 1}])

    assert in_child(use) == (0, False)
    log.append("t", [{"id": 2}])
    assert [entry.value["id"] for entry in log.read("t")] == [1, 2]  # type: ignore[index,call-overload]


# After the commit


def test_an_append_that_is_committed_does_not_fail_over_what_comes_after(open_log: Opener, folder: Path) -> None:
    class Losing(QuickDisk):
        loses = False

        def write(self, file: int, pieces: Sequence[bytes], at: int) -> None:
            super().write(file, pieces, at)
            if self.loses and os.readlink(f"/proc/self/fd/{file}").endswith("committed"):
                (folder / "committed").unlink()

    disk = Losing()
    log = open_log(disk=disk)
    log.create_topic("t", "id INT")
    disk.loses = True
    assert log.append("t", [{"id": 0}]).spans[0].base == 0


# Repetitions


def test_an_old_sequence_is_looked_for_in_one_stretch_only(open_log: Opener, folder: Path) -> None:
    class Counting(Journal):
        def stretch(self, first: int) -> Stretch:
            looked.add(first)
            return super().stretch(first)

    log = open_log(disk=QuickDisk(), limits=Limits(stretch_frames=3))
    for each in range(40):
        log.append_all({}, producer="pq"[each % 2], sequence=each)
    for each in range(40):
        looked: set[int] = set()
        header = Counting(folder).find("pq"[each % 2], each)
        assert header and header.frame == each and len(looked) == 1
        assert log.append_all({}, producer="pq"[each % 2], sequence=each).frame == each
    assert log.find("p", 3) is None and log.find("nobody", 0) is None
