"""ParquetStore: the views of a pipeline that only grow, as Parquet files that anybody can read.

    files/current                  leads to the folder of the lineage that counts
    files/2/_penstock.json         the manifest: position, views, the files of the last call
    files/2/bids/day=2024-01-31/000000000123-0.parquet

A call writes its files into a staging folder, which readers pass over, and syncs them; then its manifest takes the
place of the one before, and with that the call has happened; then the files are moved to their places. Whoever dies on
the way is finished by the next one: what the manifest names is moved, what else lies in staging is removed. So every
row is in one file, once. Who lists folders while files are moved sees some of them already; none ever goes, until
another lineage becomes the current one. Files may be taken away at any time, as when they are too old.
"""

import fcntl
import os
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import chain
from pathlib import Path
from types import TracebackType
from typing import Self

from penstock.errors import ViewError
from penstock.log.disk import Disk
from penstock.views.manifest import MANIFEST, Manifest, read_manifest
from penstock.views.output import Output
from penstock.views.step import Change, Lineage, Position, Step, View

CURRENT = "current"
STAGING = "_staging"
PATIENCE_SECONDS = 10.0
POLL_SECONDS = 0.02


class ParquetStore:
    """A `Store` in a folder. Use it in a `with`, like others; one thread at a time."""

    def __init__(self, path: Path | str, *, disk: Disk | None = None) -> None:
        self.path = Path(path)
        self._disk = disk or Disk()
        self._settled: Position | None = None
        with self._alone():
            pass  # whoever wrote here last may have died

    def close(self) -> None:
        """Nothing is held between two calls."""

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def position(self) -> Position | None:
        with told(self.path):
            manifest = read_manifest(self.path / CURRENT)
        return None if manifest is None else manifest.position

    def apply(self, steps: Sequence[Step]) -> None:
        with self._alone() as before:
            if before is None:
                raise ViewError("the store has no views yet", hint="It must be switched to a lineage first.")
            fresh = [step for step in steps if step.position.frame > before.position.frame]
            if fresh:
                self._append(before, fresh)

    def switch(self, lineage: Lineage, steps: Iterable[Step]) -> None:
        with self._alone() as before:
            if before is None or before.position.frame < lineage.frame:
                self._fill(lineage, steps)
                self._point_to(lineage.number)
                self._tidy()

    def _append(self, before: Manifest, steps: Sequence[Step]) -> None:
        """Files are staged, then named by the manifest, then moved."""
        folder, last = self._folder(before.position.lineage), steps[-1].position
        output = Output(self._disk, lambda place: folder / STAGING / os.path.basename(place), name=_number(last.frame))
        _write(output, before.views, before.position, steps)
        self._make_folders(folder, output.places)  # now, while an error changes nothing yet
        self._disk.sync_folder(folder / STAGING)
        after = Manifest(last, before.views, tuple(output.places))
        self._disk.write_whole(folder / MANIFEST, after.text().encode())
        self._settle(folder, after)
        self._settled = last

    def _fill(self, lineage: Lineage, steps: Iterable[Step]) -> None:
        """The lineage's folder, at which nobody looks yet: its files are written where they belong."""
        folder, views = self._folder(lineage.number), {view.name: view for view in lineage.kept_as("files")}
        self._disk.remove(folder)
        for name in (STAGING, *views):
            (folder / name).mkdir(parents=True)

        def file_for(place: str) -> Path:
            (folder / place).parent.mkdir(parents=True, exist_ok=True)
            return folder / place

        steps = iter(steps)
        first = next(steps)
        output = Output(self._disk, file_for, name=_number(lineage.frame))
        last = _write(output, views, first.position, chain([first], steps))
        for path in _with_folders(folder, output.places):
            self._disk.sync_folder(path)
        self._disk.write_whole(folder / MANIFEST, Manifest(last, views).text().encode())
        self._disk.sync_folder(self.path)

    def _point_to(self, lineage: int) -> None:
        link = self.path / f".{CURRENT}.new"
        link.unlink(missing_ok=True)
        link.symlink_to(str(lineage))
        self._disk.rename(link, self.path / CURRENT)
        self._disk.sync_folder(self.path)

    def _folder(self, lineage: int) -> Path:
        return self.path / str(lineage)

    @contextmanager
    def _alone(self) -> Iterator[Manifest | None]:
        """Inside, nobody else writes, and what others have begun is finished or removed; what the store holds."""
        with told(self.path):
            self._make_folder(self.path)
            with open(self.path / ".lock", "a") as file:
                _lock(file.fileno(), self.path)
                yield self._tidy()

    def _tidy(self) -> Manifest | None:
        manifest = read_manifest(self.path / CURRENT)
        kept = None if manifest is None else str(manifest.position.lineage)
        for path in self.path.glob("[0-9]*"):
            if path.name != kept:
                self._disk.remove(path)
        if manifest is not None:
            self._settle(self._folder(manifest.position.lineage), manifest)
            self._settled = manifest.position
        return manifest

    def _make_folders(self, folder: Path, places: Iterable[str]) -> None:
        """The folders of the places are there, durably."""
        for path in sorted({(folder / place).parent for place in places}):
            self._make_folder(path)

    def _make_folder(self, path: Path) -> None:
        for each in (*reversed(path.parents), path):
            if not each.exists():
                each.mkdir(exist_ok=True)
                self._disk.sync_folder(each.parent)

    def _settle(self, folder: Path, manifest: Manifest) -> None:
        """The files of the manifest are in their places, durably, whoever moved them; nothing else is in staging."""
        (folder / STAGING).mkdir(exist_ok=True)
        staged = {path.name: path for path in (folder / STAGING).iterdir()}
        moved = [place for place in manifest.files if os.path.basename(place) in staged]
        self._make_folders(folder, moved)
        for place in moved:
            self._disk.rename(staged.pop(os.path.basename(place)), folder / place)
        unsure = moved if manifest.position == self._settled else manifest.files
        for path in {(folder / place).parent for place in unsure}:
            if path.exists():  # somebody may have taken it away
                self._disk.sync_folder(path)
        for path in staged.values():
            self._disk.remove(path)


def files_of(path: Path, view: str) -> Path | None:
    """The folder of a view's files in the store at `path`; None where it has none."""
    with told(path):
        manifest = read_manifest(path / CURRENT)
    names = [name for name in manifest.views if name.lower() == view.lower()] if manifest else []
    return path / CURRENT / names[0] if names else None


def _write(output: Output, views: Mapping[str, View], before: Position, steps: Iterable[Step]) -> Position:
    """Writes what the steps bring; the position after the last."""
    position = before
    try:
        for step in steps:
            position = step.position
            if (position.log, position.lineage) != (before.log, before.lineage):
                raise ViewError(
                    f"the store holds lineage {before.lineage}, not {position.lineage}",
                    detail=f"The step is that of frame {position.frame}.",
                )
            for change in step.changes:
                check_grows(change, position.frame)
                output.add(views[change.view], change.new)
        output.finish()
    finally:
        output.abandon()
    return position


def check_grows(change: Change, frame: int) -> None:
    """Refuses a change that takes a row away: what is in a file stays there."""
    if change.old.null_count < len(change.old):
        gone = change.old.filter(change.old.is_valid())[0].as_py()
        raise ViewError(
            f'a row leaves view "{change.view}", whose files only grow',
            detail=f"It is {gone}, in frame {frame}.",
            hint="Such a view can have store = 'table' or store = 'topic'.",
        )


def _number(frame: int) -> str:
    return f"{frame:012d}"


def _with_folders(folder: Path, places: Iterable[str]) -> list[Path]:
    """The folder and all folders in it in which the places lie, the innermost first."""
    found = {parent for place in places for parent in Path(place).parents}
    return [folder / path for path in sorted(found | {Path()}, key=lambda path: -len(path.parts))]


def _lock(file: int, path: Path) -> None:
    until = time.monotonic() + PATIENCE_SECONDS
    while True:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return
        except BlockingIOError:
            if time.monotonic() > until:
                raise ViewError(
                    f'the store "{path}" is locked',
                    detail=f"Somebody else has been writing to it for {PATIENCE_SECONDS:g} seconds.",
                    hint="Is the pipeline running twice?",
                ) from None
            time.sleep(POLL_SECONDS)


@contextmanager
def told(path: Path) -> Iterator[None]:
    """Errors of the operating system as ours."""
    try:
        yield
    except OSError as error:
        raise ViewError(f'the store "{path}" cannot be used', detail=f"{error}.") from error
