"""A small file system that really gets full: a tmpfs of a few megabytes, mounted for a test.

Where mounting is not allowed, tests that ask for it are skipped; with PENSTOCK_SERVICES=required they fail. Disks that
only say that they are full (tests/log/disks.py) are tried everywhere.
"""

import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

PIECE = 4096


class Small:
    """`path` is its root."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._ballast = path / "ballast"

    def fill(self, *, leave: int = 0) -> None:
        """Takes all room but so many bytes."""
        with open(self._ballast, "ab", buffering=0) as file, suppress(OSError):
            while True:
                file.write(bytes(PIECE))
        os.truncate(self._ballast, max(0, self._ballast.stat().st_size - leave))

    def make_room(self) -> None:
        self._ballast.unlink()


@contextmanager
def small_file_system(path: Path, megabytes: int) -> Iterator[Small]:
    path.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", f"size={megabytes}m", "penstock-test", str(path)],
        capture_output=True,
        text=True,
        check=False,
    )
    if mounted.returncode != 0:
        give_up = pytest.fail if os.environ.get("PENSTOCK_SERVICES") == "required" else pytest.skip
        give_up(f"a small file system cannot be mounted: {mounted.stderr.strip()}")
    try:
        yield Small(path)
    finally:
        subprocess.run(["umount", "--lazy", str(path)], check=True)
