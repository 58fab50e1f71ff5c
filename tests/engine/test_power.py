"""The tests' own power failures: what was synced is there afterwards, what was not may be gone, torn, or back."""

from pathlib import Path
from random import Random

import pytest

from tests.engine.power import Watched

SEEDS = range(60)


class Disk:
    """Writes the journal of a watched disk by hand."""

    def __init__(self, folder: Path) -> None:
        self.checkpoint, self.folder = folder / "home" / "checkpoint", folder / "watched"
        self.checkpoint.mkdir(parents=True)
        self.watched = Watched(self.checkpoint, self.folder)
        (self.folder / "kept").mkdir()
        self.lines: list[str] = []

    def write(self, name: str, text: str, *, sync: bool) -> None:
        path = self.checkpoint / name
        path.write_text(text)
        self.lines += [f"written {path.stat().st_ino}", *([f"synced {path.stat().st_ino}"] if sync else [])]

    def sync_names(self) -> None:
        names = (f"{path.name}/{path.stat().st_ino}" for path in self.checkpoint.iterdir())
        self.lines.append("\t".join([f"folder {self.checkpoint}", *names]))

    def remove(self, name: str) -> None:
        path = self.checkpoint / name
        (self.folder / "kept" / str(path.stat().st_ino)).hardlink_to(path)
        path.unlink()

    def images(self, *, honest: float = 1.0) -> list[dict[str, str]]:
        """What may be left: the files' texts, for each of the seeds."""
        (self.folder / "journal").write_text("".join(f"{line}\n" for line in self.lines))
        self.watched.read(honest=honest)
        found, into = list[dict[str, str]](), self.folder.parent / "image"
        for seed in SEEDS:
            self.watched.image(into, Random(seed))
            found.append({path.name: path.read_text() for path in into.iterdir()})
        return found


@pytest.fixture
def disk(tmp_path: Path) -> Disk:
    return Disk(tmp_path)


def test_what_was_synced_with_its_name_is_always_there(disk: Disk) -> None:
    disk.write("a", "text", sync=True)
    disk.sync_names()
    assert all(image == {"a": "text"} for image in disk.images())
    assert disk.watched.is_safe(disk.checkpoint / "a")


def test_a_name_that_was_not_synced_may_be_gone(disk: Disk) -> None:
    disk.write("a", "text", sync=True)
    images = disk.images()
    assert {} in images and {"a": "text"} in images
    assert not disk.watched.is_safe(disk.checkpoint / "a")


def test_bytes_that_were_not_synced_may_be_torn(disk: Disk) -> None:
    disk.write("a", "x" * 2000, sync=False)
    disk.sync_names()
    images = disk.images()
    assert all(list(image) == ["a"] for image in images) and len({image["a"] for image in images}) > 2
    assert not disk.watched.is_safe(disk.checkpoint / "a")


def test_a_file_that_was_removed_may_come_back(disk: Disk) -> None:
    disk.write("a", "text", sync=True)
    disk.sync_names()
    disk.remove("a")
    images = disk.images()
    assert {} in images and {"a": "text"} in images


def test_of_a_disk_that_lies_what_was_synced_last_may_be_gone(disk: Disk) -> None:
    disk.write("a", "text", sync=True)
    disk.sync_names()
    disk.write("b", "text", sync=True)
    disk.sync_names()
    images = disk.images(honest=0.5)
    assert {"a": "text"} in images and {"a": "text", "b": "text"} in images


def test_what_the_journal_does_not_know_of_is_not_safe(disk: Disk) -> None:
    disk.sync_names()
    (disk.checkpoint / "a").write_text("text")
    assert {} in disk.images()
    assert not disk.watched.is_safe(disk.checkpoint / "a")
