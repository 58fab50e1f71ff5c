"""The log's folder: made once, safe under kill at every step and beside other processes that make it too."""

import fcntl
import json
import os
import uuid
from collections.abc import Callable
from pathlib import Path

from penstock.errors import DamagedLog, LogError
from penstock.log.catalog import Catalog
from penstock.log.disk import Disk
from penstock.log.journal import Journal
from penstock.log.mark import Mark
from penstock.log.recovery import begin_stretch, write_mark
from penstock.log.stretch import FORMAT, read_prelude

FOLDERS = ("journal", "sealed", "staged", "aside")


def prepare(folder: Path, disk: Disk, clock: Callable[[], int], *, create: bool) -> str:
    """Makes what is missing of the folder; the log's identity."""
    made = (folder / "identity.json").exists() and Journal(folder).unsealed()
    if not made and not create:
        raise LogError(
            f'there is no log at "{folder}"', hint="Check the path; Log.open(path) and `penstock log create` make one."
        )
    if not made:
        for name in FOLDERS:
            (folder / name).mkdir(parents=True, exist_ok=True)
        with open(folder / "lock", "a") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            _make(folder, disk, clock)
    return _identity(folder)


def _make(folder: Path, disk: Disk, clock: Callable[[], int]) -> None:
    if not (folder / "identity.json").exists():
        found = {"format": FORMAT, "identity": str(uuid.uuid4()), "created_at": clock()}
        disk.write_whole(folder / "identity.json", json.dumps(found).encode())
        disk.sync_folder(folder.parent)
    journal = Journal(folder)
    if journal.sealed() and not journal.unsealed():
        raise DamagedLog(f'the open stretch of the log at "{folder}" is missing', hint="Restore journal/ from a copy.")
    if not journal.unsealed():
        end = begin_stretch(folder, _identity(folder), Catalog(), disk)
        write_mark(folder, disk, Mark(0, end, 0))
        disk.sync_folder(folder)


def _identity(folder: Path) -> str:
    try:
        found = json.loads((folder / "identity.json").read_text())
        version, identity = found["format"], str(found["identity"])
    except (ValueError, KeyError):
        version, identity = FORMAT, _identity_in_preludes(folder)
    if version != FORMAT:
        raise LogError(f'the log at "{folder}" has format {version}', detail=f"This version reads format {FORMAT}.")
    return identity


def _identity_in_preludes(folder: Path) -> str:
    for path in sorted((folder / "journal").glob("[0-9]*.journal")):
        file = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        try:
            if found := read_prelude(file):
                return str(found[0]["identity"])
        finally:
            os.close(file)
    raise DamagedLog(f'"{folder / "identity.json"}" cannot be read', hint="Restore it from a copy.")
