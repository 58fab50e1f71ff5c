"""Where tests write: into memory, where there is enough of it.

A batch syncs dozens of files, and a test waits for the disk more than for anything else; what it writes is gone after
it. Where TMPDIR is set, or memory is short or cannot hold programs, files are where they always are.
"""

import os
import shutil
import tempfile
from pathlib import Path

MEMORY = Path("/dev/shm")
ROOM_NEEDED = 4 << 30
TOLD = ("TMPDIR", "SPARK_LOCAL_DIRS")
"""Who else is to write there: the processes that tests start, and Spark."""


def moved_into_memory() -> Path | None:
    """A new folder in memory, where from now on everything temporary goes; None where all stays as it is."""
    if "TMPDIR" in os.environ or not _is_fit():
        return None
    folder = tempfile.mkdtemp(prefix="penstock-tests-", dir=MEMORY)
    tempfile.tempdir = folder
    os.environ |= dict.fromkeys(TOLD, folder)
    return Path(folder)


def _is_fit() -> bool:
    if not os.access(MEMORY, os.W_OK):
        return False
    return shutil.disk_usage(MEMORY).free > ROOM_NEEDED and not os.statvfs(MEMORY).f_flag & os.ST_NOEXEC
