"""Lineages: the lives of a pipeline's answers.

A lineage is one run of a pipeline through its log, from the first record on, however often it is stopped and started:
a checkpoint, a fingerprint of what it computes, change topics of its own. Another query, or other settings that
matter, need another lineage. Which one readers see is a frame in the log.
"""

import json
import os
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from penstock.log import Epoch
from penstock.log.protocol import OrderedLog


@dataclass(frozen=True)
class Lineage:
    pipeline: str
    number: int
    folder: Path

    @property
    def producer(self) -> str:
        return f"{self.pipeline}/{self.number}"

    @property
    def checkpoint(self) -> Path:
        return self.folder / "checkpoint"

    @property
    def fingerprint(self) -> Path:
        return self.folder / "fingerprint.json"

    def topic(self, view: str) -> str:
        return f"{self.pipeline}.{self.number}.{view}"


def newest(home: Path, pipeline: str) -> Lineage | None:
    """The lineage that was begun last, whether or not readers see it yet."""
    numbers = [int(path.name) for path in (home / "lineages").glob("[0-9]*")]
    return Lineage(pipeline, max(numbers), home / "lineages" / str(max(numbers))) if numbers else None


def begun(home: Path, log: OrderedLog, pipeline: str, fingerprint: Mapping[str, Any]) -> Lineage:
    """A new lineage, numbered after all that there have been in this folder and this log."""
    last = newest(home, pipeline)
    number = _unused(log, pipeline, after=max(last.number if last else 0, current(log, pipeline) or 0))
    made = Lineage(pipeline, number, home / "lineages" / str(number))
    _appear(made, fingerprint)
    return made


def _unused(log: OrderedLog, pipeline: str, *, after: int) -> int:
    number = after + 1
    while log.last(f"{pipeline}/{number}") is not None:  # its folder was lost before it became the current one
        number += 1
    return number


def lineage_of(pipeline: str, topic: str) -> int | None:
    """The lineage of a pipeline that a topic belongs to, by its name; none if it is not one of its topics."""
    number = topic.removeprefix(f"{pipeline}.").partition(".")[0]
    return int(number) if topic.startswith(f"{pipeline}.") and number.isdecimal() else None


def end(log: OrderedLog, pipeline: str) -> None:
    """From this frame on a lineage counts that has no views and reads nothing: the pipeline is no more."""
    known = [lineage_of(pipeline, topic.name) or 0 for topic in log.topics()]
    number = _unused(log, pipeline, after=max(current(log, pipeline) or 0, *known, 0))
    note = {"pipeline": pipeline, "current": number, "views": {}, "reads": []}
    log.append_all({}, producer=pipeline, sequence=number, note=note)


def _appear(lineage: Lineage, fingerprint: Mapping[str, Any]) -> None:
    """The folder is there with its fingerprint, durably, or not at all."""
    unfinished = lineage.folder.with_name(f".{lineage.number}.new")
    shutil.rmtree(unfinished, ignore_errors=True)
    unfinished.mkdir(parents=True)
    file = unfinished / lineage.fingerprint.name
    file.write_text(json.dumps(fingerprint, indent=2))
    for path in (file, unfinished):
        _sync(path)
    unfinished.rename(lineage.folder)
    for path in (lineage.folder.parent, lineage.folder.parent.parent, lineage.folder.parent.parent.parent):
        _sync(path)


def _sync(path: Path) -> None:
    file = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(file)
    finally:
        os.close(file)


def current(log: OrderedLog, pipeline: str) -> int | None:
    """The lineage that readers see."""
    header = log.last(pipeline)
    return None if header is None else int(header.note["current"])


def make_current(
    log: OrderedLog, lineage: Lineage, views: Mapping[str, Mapping[str, Any]], reads: Sequence[str], epoch: Epoch
) -> None:
    """From this frame on readers see this lineage, which reads these topics, unless the epoch is over; repeated,
    nothing happens.
    """
    note = {"pipeline": lineage.pipeline, "current": lineage.number, "views": views, "reads": list(reads)}
    log.append_all({}, producer=lineage.pipeline, sequence=lineage.number, expect=[epoch], note=note)


def older(home: Path, number: int) -> list[Path]:
    """The folders of lineages before this one: their checkpoints are of no use once it counts."""
    return [path for path in (home / "lineages").glob("[0-9]*") if int(path.name) < number]


def drop_older(home: Path, number: int) -> None:
    for path in older(home, number):
        shutil.rmtree(path, ignore_errors=True)  # who has them open goes on
