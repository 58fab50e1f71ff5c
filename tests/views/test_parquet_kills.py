"""Whatever kills the process or the power, at any operation: every row is in one file, once.

The story: a store takes a lineage's batches, then switches to another lineage and takes that one's.
"""

import os
import random
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from penstock.errors import ViewError
from penstock.log import Log
from penstock.log.disk import Disk
from penstock.views import catch_up
from penstock.views.parquet import ParquetStore
from penstock.views.step import Position
from tests.effort import SOAK, sample
from tests.log.disks import QuickDisk
from tests.log.dying import HOW, DyingDisk, in_child
from tests.log.power import FailingPower
from tests.views.files import contents_of
from tests.views.shop import FILES, Shop, Story, counted, folded, name

STEPS = 5
KILLS = 40 if SOAK else 3
FOLLOWER = """
import sys
from penstock.log import Log
from penstock.views import follow
from penstock.views.parquet import ParquetStore
import penstock.views.following as following
following.PACE_SECONDS = {"files": 0.0}
with Log.open(sys.argv[1], create=False) as log, ParquetStore(sys.argv[2]) as store:
    tell = lambda position: print(position.frame, flush=True)
    follow(log, "shop", store, stop=lambda: False, on_step=tell, kept="files", together=3)
"""


@pytest.fixture(scope="module")
def logs(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """The log when the first lineage was the current one, and as it is at the end."""
    folder = tmp_path_factory.mktemp("shop")
    with Log.open(folder / "log", disk=QuickDisk()) as log:
        shop = Shop(log, views=FILES)
        shop.announce()
        Story(shop, seed=1).go_on(STEPS)
        shutil.copytree(folder / "log", folder / "first")
        second = Shop(log, lineage=2, views=FILES)
        story = Story(second, seed=2)
        story.go_on(STEPS)
        second.announce()
        story.go_on(STEPS)
    return folder / "first", folder / "log"


def take_all(tell: Callable[[int], None], logs: Sequence[Path], path: Path, disk: Disk) -> None:
    """Everything that the story has for a store, three frames at a time; tells each frame that was taken."""
    store = ParquetStore(path, disk=disk)
    for folder in logs:
        with Log.open(folder, disk=QuickDisk()) as log:
            on_step: Callable[[Position], None] = lambda position: tell(position.frame)  # noqa: E731
            catch_up(log, "shop", store, kept="files", together=3, on_step=on_step)


def assert_right(log: Log, path: Path) -> int:
    """The files hold what the topics add up to at the store's position; which frame that is."""
    position = ParquetStore(path, disk=QuickDisk()).position()
    if position is None:
        return 0
    for view, declared in FILES.items():
        found = contents_of(path, view, declared)
        assert found == folded(log, f"shop.{position.lineage}.{view}", until=position.frame)
    return position.frame


def assert_goes_on(log: Log, path: Path) -> None:
    take_all(lambda _: None, (log.folder,), path, QuickDisk())
    assert_right(log, path)
    assert sorted(each.name for each in path.iterdir()) == [".lock", "2", "current"]
    assert list((path / "current" / "_staging").iterdir()) == []


def operations(logs: tuple[Path, Path], path: Path) -> int:
    disk = DyingDisk(-1)
    take_all(lambda _: None, logs, path, disk)
    return disk.done


def test_killed_at_any_operation_every_row_is_there_once(logs: tuple[Path, Path], tmp_path: Path) -> None:
    total = operations(logs, tmp_path / "whole")
    assert total > 100
    deaths = [(nth, how) for nth in range(1, total + 1) for how in HOW]
    reached = set()
    with Log.open(logs[1], disk=QuickDisk()) as log:
        for nth, how in sample(deaths, 30):
            path = tmp_path / f"{nth}-{how}"
            told, killed = in_child(take_all, logs, path, DyingDisk(nth, how))
            assert killed
            frame = assert_right(log, path)
            assert frame >= told
            reached.add(frame)
            assert_goes_on(log, path)
            shutil.rmtree(path)
    assert len(reached) > 4  # it died at different points


def test_after_a_power_failure_at_any_operation_what_was_taken_is_there_once(
    logs: tuple[Path, Path], tmp_path: Path
) -> None:
    chance, taken = random.Random(1), 0
    images: list[tuple[Path, int]] = []

    def watch(disk: FailingPower) -> None:
        if SOAK or chance.random() < 0.4:
            images.append((tmp_path / str(disk.done), taken))
            disk.image(images[-1][0], chance)

    def told(frame: int) -> None:
        nonlocal taken
        taken = frame

    (tmp_path / "disk").mkdir()
    take_all(told, logs, tmp_path / "disk" / "files", FailingPower(tmp_path / "disk", watch))
    assert len(images) > 40
    with Log.open(logs[1], disk=QuickDisk()) as log:
        for at, (image, frame) in enumerate(images):
            assert assert_right(log, image / "files") >= frame
            if SOAK or at % 4 == 0:
                assert_goes_on(log, image / "files")


def test_a_follower_that_is_killed_at_random_points_doubles_nothing(log: Log, path: Path) -> None:
    chance = random.Random(2)
    shop = Shop(log, views=FILES)
    shop.announce()
    story = Story(shop, seed=3)
    for _ in range(KILLS):
        story.go_on(30, rows=6)
        command = [sys.executable, "-c", FOLLOWER, str(log.folder), str(path)]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
            assert process.stdout is not None
            lines = [process.stdout.readline() for _ in range(chance.choice([1, 4, 8, 12]))]
            os.kill(process.pid, signal.SIGKILL)
        assert all(lines)
        assert assert_right(log, path) > 0
    catch_up(log, "shop", ParquetStore(path), kept="files")
    assert assert_right(log, path) == log.mark().next_frame - 1


class Syncing(QuickDisk):
    """Knows which folders were synced; one of them cannot be, as long as it `fails`."""

    def __init__(self, fails: str = "-") -> None:
        self.fails = fails
        self.synced: list[str] = []

    def sync_folder(self, folder: Path) -> None:
        if folder.name == self.fails:
            raise OSError(5, "Input/output error")
        self.synced.append(folder.name)


def test_whoever_finds_that_files_were_moved_sees_to_it_that_they_stay(log: Log, path: Path) -> None:
    shop = Shop(log, views=FILES)
    shop.announce()
    catch_up(log, "shop", ParquetStore(path, disk=QuickDisk()), kept="files")
    shop.batch(names=[(None, name("ann"))])
    with pytest.raises(ViewError, match="Input/output error"):
        catch_up(log, "shop", ParquetStore(path, disk=Syncing("name=ann")), kept="files")
    assert contents_of(path, "names", FILES["names"]) == counted([name("ann")])
    disk = Syncing()
    ParquetStore(path, disk=disk)
    assert disk.synced == ["name=ann"]


class FullDisk(QuickDisk):
    """Has no room for any of its operations from the `nth` on."""

    def __init__(self, nth: int) -> None:
        self._left = nth

    def write(self, file: int, pieces: object, at: int) -> None:
        self._left -= 1
        if self._left <= 0:
            raise OSError(28, "No space left on device")
        super().write(file, pieces, at)  # type: ignore[arg-type]


def test_a_full_disk_is_told_and_what_was_there_stays(logs: tuple[Path, Path], tmp_path: Path) -> None:
    with Log.open(logs[1], disk=QuickDisk()) as log:
        for nth in range(1, 90, 17):
            path = tmp_path / str(nth)
            with pytest.raises(ViewError, match=r"cannot be used\n.*No space left on device"):
                take_all(lambda _: None, logs, path, FullDisk(nth))
            assert_right(log, path)
            assert_goes_on(log, path)
