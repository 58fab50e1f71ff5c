"""Lineages: the lives of a pipeline's answers.

A lineage is one run of a pipeline through its log, from the first record on, however often it is stopped and started:
a checkpoint, a fingerprint of what it computes, change topics of its own. Another query, or other settings that
matter, need another lineage. Which one readers see is a frame in the log.
"""

import hashlib
import json
import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from penstock.engine.compile import Compiled
from penstock.errors import EngineError
from penstock.log import Log
from penstock.model import Pipeline, declaration_text

STATE_FORMAT = 1


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

    def topic(self, view: str) -> str:
        return f"{self.pipeline}.{self.number}.{view}"


def newest(home: Path, pipeline: str) -> Lineage | None:
    """The lineage that was begun last, whether or not readers see it yet."""
    numbers = [int(path.name) for path in (home / "lineages").glob("[0-9]*")]
    return Lineage(pipeline, max(numbers), home / "lineages" / str(max(numbers))) if numbers else None


def begun(home: Path, log: Log, pipeline: str, fingerprint: Mapping[str, Any]) -> Lineage:
    """A new lineage, numbered after all that there have been in this folder and this log."""
    last = newest(home, pipeline)
    number = 1 + max(last.number if last else 0, current(log, pipeline) or 0)
    made = Lineage(pipeline, number, home / "lineages" / str(number))
    made.folder.mkdir(parents=True)
    (made.folder / "fingerprint.json").write_text(json.dumps(fingerprint, indent=2))
    return made


def current(log: Log, pipeline: str) -> int | None:
    """The lineage that readers see."""
    header = log.last(pipeline)
    return None if header is None else int(header.note["current"])


def make_current(log: Log, lineage: Lineage, views: Mapping[str, Mapping[str, Any]]) -> None:
    """From this frame on readers see this lineage; repeated, nothing happens."""
    note = {"pipeline": lineage.pipeline, "current": lineage.number, "views": views}
    log.append_all({}, producer=lineage.pipeline, sequence=lineage.number, note=note)


def drop_older(home: Path, lineage: Lineage) -> None:
    """Checkpoints of earlier lineages are of no use any more."""
    for path in (home / "lineages").glob("[0-9]*"):
        if int(path.name) < lineage.number:
            shutil.rmtree(path, ignore_errors=True)


def fingerprint_of(pipeline: Pipeline, compiled: Compiled, log: Log, settings: Mapping[str, str]) -> dict[str, Any]:
    """What a checkpoint depends on, part by part, so that a change can be named; the same in every process."""
    meant = {name: value for name, value in sorted(settings.items()) if name.startswith("spark.sql.")}
    return {
        "log": log.identity,
        "state format": STATE_FORMAT,
        "declarations": _digest(declaration_text(pipeline, meaning_only=True)),
        "settings": meant,
        "views": {name: _digest(plan) for name, plan in sorted(compiled.plans.items())},
    }


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def check_unchanged(lineage: Lineage, fingerprint: Mapping[str, Any]) -> None:
    """Refuses to go on with a checkpoint that was made by something else, and names what."""
    before: dict[str, Any] = json.loads((lineage.folder / "fingerprint.json").read_text())
    changed = [name for name in fingerprint if before.get(name) != fingerprint[name]]
    if not changed:
        return
    if "log" in changed:
        raise EngineError(
            f'the checkpoint of pipeline "{lineage.pipeline}" belongs to another log',
            detail=f"It was made with log {before.get('log')}; this one is {fingerprint['log']}.",
            hint=f"Use the log it was made with, or start anew: penstock reset {lineage.pipeline}",
        )
    raise EngineError(
        f'pipeline "{lineage.pipeline}" is not what it was when its answers were begun',
        detail=f"What changed: {', '.join(_named(name, before, fingerprint) for name in changed)}.",
        hint=f"To compute its answers anew from the log: penstock reset {lineage.pipeline}",
    )


def _named(name: str, before: Mapping[str, Any], after: Mapping[str, Any]) -> str:
    old, new = before.get(name), after[name]
    if not (isinstance(old, dict) and isinstance(new, dict)):
        return name
    return f"{name} ({', '.join(sorted(key for key in {*old, *new} if old.get(key) != new.get(key)))})"
