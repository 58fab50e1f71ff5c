"""What a power failure leaves of a checkpoint: of what was not synced some is lost, some kept, some kept in part.

The journal of a `WatchedDisk` (kernel/test) says which bytes and which names were safe. A file that was deleted may
come back, a name that was given may be gone, bytes that were written may be zeros. What the journal does not know of
was written past the disk, and is not safe either.
"""

import json
import os
import runpy
import shutil
import subprocess
import zipfile
from collections.abc import Callable, Iterator, Mapping
from copy import copy
from pathlib import Path
from random import Random

from penstock.engine.session import KERNEL
from tests.engine.business import SETTINGS

ROOT = Path(__file__).parent.parent.parent
PAGE = 512


def compile_watched_disk(classes: Path) -> None:
    """Compiles the watched disk against the kernel."""
    build = runpy.run_path(str(ROOT / "kernel" / "build.py"))
    jars = f"{build['pyspark_jars']()}/*{os.pathsep}{KERNEL}"
    sources = map(str, (ROOT / "kernel" / "test" / "penstock" / "kernel" / "engine").glob("Watched*.scala"))
    compiler = ["scala.tools.nsc.Main", "-usejavacp", "-d", str(classes), *sources]
    subprocess.run([build["java"](), "-Xss8m", "-XX:TieredStopAtLevel=1", "-cp", jars, *compiler], check=True)


def watched(classes: Path, folder: Path) -> Mapping[str, str]:
    """The settings of runs that write to a watched disk, which keeps its journal in `folder`."""
    return {
        **SETTINGS,
        "spark.driver.extraClassPath": str(classes),
        "spark.driver.extraJavaOptions": f"{SETTINGS['spark.driver.extraJavaOptions']} -Dpenstock.watched={folder}",
        "spark.hadoop.fs.file.impl": "penstock.kernel.engine.WatchedFiles",
    }


class Watched:
    """A checkpoint, and the folder in which a watched disk keeps its journal. All that is there now is safe.

    The Java process of an earlier run may still be there, and write.
    """

    def __init__(self, checkpoint: Path, folder: Path) -> None:
        self._top = checkpoint
        self._folder = folder
        self._safe: set[int] = set()
        self._names: dict[Path, dict[str, int]] = {}
        self._before = self._safe, self._names
        folder.mkdir(exist_ok=True)
        self._journal = folder / "journal"
        self._past = self._journal.stat().st_size if self._journal.exists() else 0
        for path in [Path(folder) for folder, *_ in os.walk(checkpoint.parent)] if checkpoint.exists() else ():
            self._names[path] = _listing(path)
            self._safe.update({path.stat().st_ino, *self._names[path].values()})

    def read(self, *, honest: float = 1.0) -> None:
        """Takes in the journal. Of a disk that lies, only so much of it is true: what was synced later was not."""
        self._safe, self._names = map(copy, self._before)  # type: ignore[assignment]
        lines = self._journal.read_bytes()[self._past :].decode().splitlines()
        for line in lines[: int(len(lines) * honest)]:
            self._take(line)

    def _take(self, line: str) -> None:
        what, _, rest = line.partition(" ")
        match what:
            case "written":
                self._safe.discard(int(rest))
            case "synced":
                self._safe.add(int(rest))
            case "folder":
                path, *names = rest.split("\t")
                pairs = (name.rpartition("/") for name in names if name)
                self._names[Path(path)] = {name: int(inode) for name, _, inode in pairs}
            case _:
                raise ValueError(line)

    def is_safe(self, path: Path) -> bool:
        """Whether the file is whole after a power failure, and has its name, as have the folders above it."""
        inode = path.stat().st_ino
        named = self._names.get(path.parent, {}).get(path.name) == inode
        return named and (inode in self._safe or path.is_dir()) and (path == self._top or self.is_safe(path.parent))

    def unsafe(self) -> list[Path]:
        """What a frame relies on, and the power could take."""
        return [path for path in needed(self._top) if not self.is_safe(path) and not _is_spare(path)]

    def fail(self, random: Random) -> None:
        """Puts what the power may have left in the place of the checkpoint."""
        image = self._top.with_suffix(".image")
        self.image(image, random)
        shutil.rmtree(self._top)
        if image.exists():
            image.rename(self._top)

    def image(self, into: Path, random: Random) -> None:
        """Builds in `into` what the power may have left of the checkpoint."""
        survival = random.choice([0.0, 0.5, 0.9, 1.0])
        shutil.rmtree(into, ignore_errors=True)
        if self.is_safe(self._top) or random.random() < survival:
            self._image(self._top, into, lambda: random.random() < survival)

    def _image(self, folder: Path, into: Path, survives: Callable[[], bool]) -> None:
        into.mkdir()
        synced, now = self._names.get(folder, {}), _listing(folder)
        for name in sorted({*synced, *now}):
            inode = now.get(name) if synced.get(name) == now.get(name) or survives() else synced.get(name)
            path = folder / name if inode == now.get(name) else self._folder / "kept" / str(inode)
            if inode is not None and path.is_dir():
                self._image(path, into / name, survives)
            elif inode is not None and path.exists():
                data = path.read_bytes()
                (into / name).write_bytes(data if inode in self._safe else _torn(data, survives))


def _is_spare(path: Path) -> bool:
    """Whether it is a snapshot, made beside the batches, of a version that the changelogs lead to as well: it may have
    its name already, and the name not be safe yet.
    """
    return path.suffix == ".zip" and path.with_suffix(".changelog").exists()


def _listing(folder: Path) -> dict[str, int]:
    return {entry.name: entry.inode() for entry in os.scandir(folder)}


def _torn(data: bytes, survives: Callable[[], bool]) -> bytes:
    pages = (data[at : at + PAGE] for at in range(0, len(data), PAGE))
    torn = b"".join(page if survives() else bytes(len(page)) for page in pages)
    return torn if survives() else torn[: len(torn) // 2]


def needed(checkpoint: Path) -> Iterator[Path]:
    """What a frame relies on: every file that is finished, and of RocksDB's tables those that a snapshot names."""
    for path in checkpoint.rglob("*"):
        if path.is_file() and path.suffix not in (".tmp", ".sst"):
            yield path
        if path.suffix == ".zip":
            yield from (path.parent / "SSTs" / name for name in _tables(path))


def _tables(snapshot: Path) -> list[str]:
    with zipfile.ZipFile(snapshot) as archive:
        _version, text = archive.read("metadata").decode().split("\n", 1)
    return [each["dfsSstFileName"] for each in json.loads(text)["sstFiles"]]
