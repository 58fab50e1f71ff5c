"""The log's folder: made once, safe under kill at every step and beside other processes that make it too."""

import fcntl
import json
import os
import uuid
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from penstock.errors import DamagedLog, LogError
from penstock.log.catalog import Catalog
from penstock.log.disk import Disk
from penstock.log.journal import NUMBER, Journal
from penstock.log.mark import Mark, new_cut, read_mark
from penstock.log.recovery import begin_stretch, no_open_stretch, write_mark
from penstock.log.stretch import FORMAT, read_prelude

FOLDERS = ("journal", "sealed", "staged", "aside")
FILES = ("identity.json", "committed", "lock", "sealing.lock")


def prepare(folder: Path, disk: Disk, clock: Callable[[], int], *, create: bool) -> str:
    """Makes what is missing of the folder; the log's identity."""
    made = (folder / "identity.json").exists() and Journal(folder).unsealed()
    if not made and not create:
        raise LogError(
            f'there is no log at "{folder}"',
            hint="Check the path. A log is made with its first topic: penstock log create",
        )
    if not made:
        _check_free(folder)
    missing = [name for name in FOLDERS if not (folder / name).exists()]
    for name in missing:
        (folder / name).mkdir(parents=True, exist_ok=True)
    if missing and made:
        disk.sync_folder(folder)
    if not made:
        with open(folder / "lock", "a") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            _make(folder, disk, clock)
    return _identity(folder)


def _check_free(folder: Path) -> None:
    """A new log begins in an empty folder, or in what a killed process left of one."""
    strange = sorted(path.name for path in folder.glob("*") if path.name not in (*FOLDERS, *FILES))
    if strange:
        raise LogError(
            f'the folder "{folder}" is not empty, and no log',
            detail=f'There is "{strange[0]}"{f" and {len(strange) - 1} more" if len(strange) > 1 else ""} in it.',
            hint="Choose a folder of its own for the log.",
        )


def _make(folder: Path, disk: Disk, clock: Callable[[], int]) -> None:
    if not (folder / "identity.json").exists():
        found = {"format": FORMAT, "identity": str(uuid.uuid4()), "created_at": clock()}
        disk.write_whole(folder / "identity.json", json.dumps(found).encode())
    journal = Journal(folder)
    if journal.unsealed():
        return
    mark = read_mark(folder / "committed")
    if journal.sealed() or (mark and mark.next_frame > 0):
        raise no_open_stretch(folder)
    disk.sync_folder(folder.parent)
    for parent in folder.absolute().parents:  # any of them may be as new as the log, or not ours to sync
        with suppress(OSError):
            disk.sync_folder(parent)
    end = begin_stretch(folder, _identity(folder), Catalog(), disk)
    write_mark(folder, disk, Mark(0, end, 0, new_cut()))
    disk.sync_folder(folder)


def _identity(folder: Path) -> str:
    """As the preludes have it, whose checksums hold; as identity.json does where there is none."""
    for preludes in (f"journal/{NUMBER}.journal", f"sealed/{NUMBER}/headers.journal"):
        for path in sorted(folder.glob(preludes)):
            if identity := _identity_in_prelude(path):
                return identity
    try:
        found = json.loads((folder / "identity.json").read_text())
        version, identity = found["format"], str(found["identity"])
    except (ValueError, KeyError, TypeError) as error:
        raise DamagedLog(f'"{folder / "identity.json"}" cannot be read', hint="Restore it from a copy.") from error
    if version != FORMAT:
        raise LogError(f'the log at "{folder}" has format {version}', detail=f"This version reads format {FORMAT}.")
    return identity


def _identity_in_prelude(path: Path) -> str | None:
    try:
        file = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except FileNotFoundError:  # it is being sealed
        return None
    try:
        found = read_prelude(file)
        return str(found[0]["identity"]) if found else None
    finally:
        os.close(file)
