"""How much memory this process may have, and how much of it goes to what Spark keeps state in."""

import os
from pathlib import Path
from typing import Final

MEGABYTE: Final = 1 << 20
LIMITS: Final = (Path("/sys/fs/cgroup/memory.max"), Path("/sys/fs/cgroup/memory/memory.limit_in_bytes"))
"""Where Linux says what a container may have at most, by its newer and its older way."""


def usable(limits: tuple[Path, ...] = LIMITS) -> int:
    """The machine's memory in bytes, or what the container may have of it."""
    found = [path.read_text().strip() for path in limits if path.exists()]
    return min([os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"), *map(int, filter(str.isdigit, found))])


def for_state(memory: int) -> int:
    """In megabytes: an eighth, but no less than Spark itself would take and no more than four gigabytes."""
    return min(max(memory // 8 // MEGABYTE, 500), 4096)
