"""The diary of a lineage: its plan, what its last batches did, and what its run has done in all.

Files in the lineage's folder that a run writes and others read, also meanwhile (docs/formats/diary.md). They are for
people to see: nothing depends on them, so nothing waits for the disk. Two are replaced as wholes; batches are lines at
the end of a file, of which the last may be torn and counts for nothing.
"""

import json
import os
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

FORMAT = 1
PLAN = "plan.json"
RUN = "run.json"
BATCHES = "batches.jsonl"
KEPT = 500
"""So many batches are kept; the file is cut when there are twice as many."""
Facts = Mapping[str, Any]


class Diary:
    """Of one lineage, written by the one run that holds it. A disk that is full stops the log, which says so."""

    def __init__(self, folder: Path, kept: int = KEPT) -> None:
        self._folder = folder
        self._kept = kept
        self._lines = 2 * kept  # how many there are is not known: the first batch has the file cut, and its torn end

    def describe(self, plan: Facts) -> None:
        self._replace(PLAN, _line({"format": FORMAT, **plan}))

    def sum_up(self, run: Facts) -> None:
        self._replace(RUN, _line({"format": FORMAT, **run}))

    def add(self, batches: Sequence[Facts]) -> None:
        lines = [_line(each) for each in batches]
        with suppress(OSError):
            if self._lines + len(lines) > 2 * self._kept:
                before = _whole_lines(self._folder / BATCHES)
                lines = [*before, *lines][-self._kept :]
                self._replace(BATCHES, b"".join(lines))
                self._lines = len(lines)
            else:
                with open(self._folder / BATCHES, "ab", buffering=0) as file:
                    file.write(b"".join(lines))
                self._lines += len(lines)

    def _replace(self, name: str, data: bytes) -> None:
        """Whoever reads sees the old file or the new one."""
        with suppress(OSError):
            unfinished = self._folder / f".{name}.new"
            unfinished.write_bytes(data)
            os.replace(unfinished, self._folder / name)


def lineage_with_plan(home: Path) -> Path | None:
    """The folder of the newest lineage that a run has described; readers may not see its answers yet."""
    found = [path.parent for path in home.glob(f"lineages/[0-9]*/{PLAN}")]
    return max(found, key=lambda folder: int(folder.name), default=None)


def plan_in(folder: Path) -> dict[str, Any] | None:
    return _read(folder / PLAN)


def run_in(folder: Path) -> dict[str, Any] | None:
    """What its run has done so far, or the last one did."""
    return _read(folder / RUN)


def batches_in(folder: Path, most: int) -> list[dict[str, Any]]:
    """The last batches, the oldest first; one that was run again counts as it was the last time."""
    found: dict[int, dict[str, Any]] = {}
    for line in _whole_lines(folder / BATCHES)[-most:]:
        with suppress(ValueError):  # two that were torn, on a disk that was full
            one = json.loads(line)
            found[one["batch"]] = one
    return list(found.values())


def _whole_lines(path: Path) -> list[bytes]:
    try:
        data = path.read_bytes()
    except FileNotFoundError:
        return []
    return [line for line in data.splitlines(keepends=True) if _is_whole(line)]


def _is_whole(line: bytes) -> bool:
    """A power failure may leave the file longer than what was written into it."""
    return line.startswith(b'{"batch":') and line.endswith(b"}\n")


def _read(path: Path) -> dict[str, Any] | None:
    try:
        found: dict[str, Any] = json.loads(path.read_bytes())
    except (FileNotFoundError, ValueError):
        return None
    return found if found.get("format") == FORMAT else None


def _line(facts: Facts) -> bytes:
    return json.dumps(facts, ensure_ascii=False, separators=(",", ":")).encode(errors="backslashreplace") + b"\n"
