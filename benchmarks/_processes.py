"""What a process and all that it has started took of the processor."""

import os
from pathlib import Path

TICKS = os.sysconf("SC_CLK_TCK")


def cpu_seconds(process: int | None = None) -> float:
    """Of this process, or another, and of all that it has started; also of what has ended since and was waited for."""
    taken: dict[int, float] = {}
    parents: dict[int, int] = {}
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            fields = (folder / "stat").read_text().rpartition(")")[2].split()
        except OSError:  # it has ended meanwhile
            continue
        parents[int(folder.name)] = int(fields[1])
        taken[int(folder.name)] = sum(map(int, fields[11:15])) / TICKS
    found = [process or os.getpid()]
    for each in found:
        found += [child for child, parent in parents.items() if parent == each]
    return sum(taken.get(each, 0.0) for each in found)
