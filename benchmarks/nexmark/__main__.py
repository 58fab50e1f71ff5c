"""Nexmark on Penstock and on Flink: the same events, the same machine, one run.

`python -m benchmarks.nexmark [--events 10000000] [--queries q3,q5] [--systems penstock,flink_durable,flink_fastest]
[--resume]`. Answers are checked first, over other events. Then every query runs on each system in a process of its own,
over events that were written before: for Penstock into a log, for Flink into files. Both write to nothing; five queries
also run with their answers on disk.

Figures are written as they come: to nexmark-partial.json, and when all are there to nexmark.json and the README. A run
with other events, queries, systems or batches than these, or without the check, is a look: nexmark-quick.json is all
that it writes. With `--resume` a run takes what is in its file already, and measures what is missing or has failed.
"""

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from benchmarks._report import RESULTS, machine
from benchmarks.nexmark import summary
from benchmarks.nexmark.checking import Wrong, wrong_answers
from benchmarks.nexmark.comparison import SYSTEMS, Found, compare, jobs, missing
from benchmarks.nexmark.events import Shape
from benchmarks.nexmark.flink import client
from benchmarks.nexmark.penstock import BATCH
from benchmarks.nexmark.place import Place
from benchmarks.nexmark.queries import QUERIES
from penstock.errors import PenstockError

EVENTS = 10_000_000


@dataclass(frozen=True)
class Asked:
    """What a run is to do."""

    events: int
    queries: list[str]
    systems: list[str]
    batch: int
    unchecked: bool
    resume: bool
    results: Path

    def __post_init__(self) -> None:
        for given, known in ((self.queries, tuple(QUERIES)), (self.systems, SYSTEMS)):
            if unknown := [name for name in given if name not in known]:
                raise PenstockError(f"there is no {unknown[0]}", detail=f"There are {', '.join(known)}.")
        if self.flink and not client.PYTHON.exists():
            raise client.FlinkError("Flink is not installed", hint="make flink, or take --systems penstock")

    @property
    def flink(self) -> bool:
        return any(system.startswith("flink") for system in self.systems)

    @property
    def whole(self) -> bool:
        """Whether this is what the record is made of."""
        everything = set(self.queries) == set(QUERIES) and set(self.systems) == set(SYSTEMS)
        return everything and (self.events, self.batch) == (EVENTS, BATCH) and not self.unchecked

    @property
    def file(self) -> Path:
        return self.results / ("nexmark-partial.json" if self.whole else "nexmark-quick.json")


@dataclass
class Progress:
    """What is known so far, and the file where it stands."""

    asked: Asked
    machine: dict[str, str | int]
    checked: list[str]
    found: Found

    def record(self) -> summary.Record:
        record = summary.record_of(self.machine, self.asked.events, self.checked, self.found)
        summary.write(record, self.asked.file)
        return record


def taken_up(asked: Asked) -> Progress:
    """Where the run before has left off, if that was asked for; figures of other events or versions do not mix."""
    here: dict[str, str | int] = {**machine(), **versions(flink=asked.flink)}
    if not asked.resume or not asked.file.exists():
        return Progress(asked, here, [], {})
    before = json.loads(asked.file.read_text())
    if (before["machine"], before["events"]) != (here, asked.events):
        raise PenstockError(
            f"{asked.file.name} is of another run",
            detail=f"It has {before['events']:,} events on {before['machine']}; here are {asked.events:,} on {here}.",
            hint="Run without --resume: the file is then begun anew.",
        )
    return Progress(asked, here, before["checked"], before["figures"])


def versions(*, flink: bool) -> dict[str, str]:
    home = os.environ.get("JAVA_HOME")
    java = str(Path(home, "bin", "java")) if home else "java"
    said = subprocess.run([java, "-version"], capture_output=True, text=True, check=True).stderr
    return {"java": said.split('"')[1]} | ({"flink": client.version()} if flink else {})


def measured(asked: Asked, progress: Progress) -> None:
    wanted = missing(jobs(asked.queries, asked.systems), progress.found)
    print(f"{len(wanted)} measurements", flush=True)
    if not wanted:
        return
    folder = Path(tempfile.mkdtemp(prefix="penstock-nexmark-", dir=".")).absolute()
    try:
        wrong: Wrong = {}
        if unchecked := [] if asked.unchecked else [name for name in asked.queries if name not in progress.checked]:
            wrong = wrong_answers(folder, unchecked, flink=asked.flink)
            progress.checked += right(unchecked, wrong)
            progress.record()
        place = Place(folder / "events", asked.events, asked.batch, Shape())
        place.prepare(flink=asked.flink)
        compare(wanted, progress.found, place.measured, wrong, progress.record)
    finally:
        shutil.rmtree(folder)


def right(names: Iterable[str], wrong: Wrong) -> list[str]:
    return [name for name in names if not any(name == query for query, _ in wrong)]


def given(arguments: list[str]) -> Asked:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--events", type=int, default=EVENTS)
    parser.add_argument("--queries", type=lambda text: text.split(","), default=list(QUERIES))
    parser.add_argument("--systems", type=lambda text: text.split(","), default=list(SYSTEMS))
    parser.add_argument("--batch", type=int, default=BATCH, help="the most records that Penstock takes at a time")
    parser.add_argument("--unchecked", action="store_true", help="answers are taken for right")
    parser.add_argument("--resume", action="store_true", help="go on where the run before was cut off")
    parser.add_argument("--results", type=Path, default=RESULTS)
    return Asked(**vars(parser.parse_args(arguments)))


def main(arguments: list[str]) -> int:
    """0 if everything was measured."""
    try:
        asked = given(arguments)
        progress = taken_up(asked)
    except PenstockError as error:
        print(error, file=sys.stderr)
        return 2
    measured(asked, progress)
    record = progress.record()
    summary.show(record)
    if asked.whole and not record["failed"]:
        summary.write(record, asked.results / "nexmark.json")
        summary.plot(summary.rates_of(progress.found), asked.results / "nexmark.png")
        summary.put_into(summary.README, record)
    return 1 if record["failed"] else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
