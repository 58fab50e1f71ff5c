"""What a process and all that it has started took of the processor and of the memory."""

import os
import re
from pathlib import Path

TICKS = os.sysconf("SC_CLK_TCK")


def cpu_seconds(process: int | None = None) -> float:
    """Of this process, or another, and of all that it has started; also of what has ended since and was waited for."""
    stats = _stats()
    return sum(sum(map(int, stats[each][11:15])) for each in _family(process, stats) if each in stats) / TICKS


def peak_memory() -> int:
    """The most bytes that this process, and all that it has started, ever had at once, each by itself."""
    return sum(_peak(each) for each in _family(None, _stats()))


def _stats() -> dict[int, list[str]]:
    """What the system says of every process, from its state on."""
    found = {}
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            found[int(folder.name)] = (folder / "stat").read_text().rpartition(")")[2].split()
        except OSError:  # it has ended meanwhile
            continue
    return found


def _family(process: int | None, stats: dict[int, list[str]]) -> list[int]:
    found = [process or os.getpid()]
    for each in found:
        found += [child for child, fields in stats.items() if int(fields[1]) == each]
    return found


def _peak(process: int) -> int:
    try:
        found = re.search(r"VmHWM:\s+(\d+) kB", Path(f"/proc/{process}/status").read_text())
    except OSError:
        return 0
    return int(found[1]) * 1024 if found else 0
