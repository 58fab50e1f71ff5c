"""Nexmark on Penstock and on Flink: the same events, the same machine, one run.

`python -m benchmarks.nexmark [--events 10000000] [--queries q3,q5] [--systems penstock,flink_durable,flink_fastest]`.
Answers are checked first, over the first events. Then every query runs on each system in a process of its own, over
events that were written before: for Penstock into a log, for Flink into files. Both write to nothing; four queries also
run with their answers on disk.
"""

import argparse
import json
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from benchmarks.nexmark.answers import checked
from benchmarks.nexmark.events import Shape
from benchmarks.nexmark.flink import client
from benchmarks.nexmark.flink.files import write_files
from benchmarks.nexmark.journal import fill, write_side
from benchmarks.nexmark.queries import QUERIES, READ
from benchmarks.nexmark.summary import Found, recorded, written
from penstock.engine import session
from penstock.log import Log

DURABLE = {"q1": "topic", "q5": "topic", "q8": "topic", "q9": "topic", "q10": "files"}
"""Queries that also run with their answers on disk, and where Penstock puts them; Flink into its file sink."""
CHECKED = 200_000
SYSTEMS = ("penstock", "flink_durable", "flink_fastest")
Figures = dict[str, Any]


@dataclass(frozen=True)
class Place:
    """Where the events lie."""

    folder: Path
    events: int

    @property
    def log(self) -> Path:
        return self.folder / "log"

    @property
    def files(self) -> Path:
        return self.folder / "files"

    @property
    def side(self) -> Path:
        return self.folder / "side.parquet"

    def prepare(self, *, flink: bool) -> None:
        self.folder.mkdir(parents=True)
        write_side(self.side)
        with Log.open(self.log) as log:
            fill(log, self.events, Shape(), self._told("log"))
        if flink:
            write_files(self.files, self.events, Shape(), told=self._told("files"))

    def _told(self, what: str) -> Callable[[int], None]:
        def told(count: int) -> None:
            if count % max(1, self.events // 10) == 0:
                print(f"{what}: {count:,} events", flush=True)

        return told

    def measured(self, system: str, query: str, sink: str) -> Figures:
        if system == "penstock":
            return self._penstock(query, "none" if sink == "nothing" else DURABLE[query])
        settings: client.Settings = "durable" if system == "flink_durable" else "fastest"
        return client.measure(query, self.files, settings, "blackhole" if sink == "nothing" else "files", self.events)

    def _penstock(self, query: str, store: str) -> Figures:
        command = [sys.executable, "-m", "benchmarks.nexmark.penstock", "--query", query, "--store", store]
        run = subprocess.run(
            [*command, "--log", str(self.log), "--side", str(self.side)], stdout=subprocess.PIPE, text=True, check=True
        )
        found: Figures = json.loads(run.stdout.splitlines()[-1])
        return {**found, "events_per_second": self.events / found["seconds"]}


def compared(
    place: Place, names: Sequence[str], systems: Sequence[str], record: Callable[[Found], None]
) -> dict[str, dict[str, Figures]]:
    """Per query and system its figures; with answers on disk under the query's name and `durably`. What is found is
    recorded from query to query: a run takes more than an hour.
    """
    jobs = [(name, "nothing") for name in (READ, *names)] + [(name, "disk") for name in names if name in DURABLE]
    found: dict[str, dict[str, Figures]] = {}
    for number, (name, sink) in enumerate(jobs, 1):
        title = name if sink == "nothing" else f"{name} durably"
        for system in systems:
            if sink == "disk" and system == "flink_fastest":
                continue
            begun = time.perf_counter()
            figures = place.measured(system, name, sink)
            found.setdefault(title, {})[system] = figures
            rate = figures.get("events_per_second")
            said = f"{rate:,.0f} events/s" if rate else figures.get("reason", "does not run")
            taken = time.perf_counter() - begun
            print(f"{number}/{len(jobs)} {title} {system}: {said} ({taken:.0f} s in all)", flush=True)
        record(found)
    return found


def check(folder: Path, names: Sequence[str], *, flink: bool) -> None:
    """Answers over the first events: ours against Spark batch, Flink's against ours where they mean the same."""
    small = Place(folder / "checked", CHECKED)
    small.prepare(flink=flink)
    with session("nexmark", conf={"spark.driver.memory": "4g"}) as spark, Log.open(small.log) as log:
        answers = checked(spark, log, folder / "home", small.side, names, lambda name: print(f"{name}: right"))
    if flink:
        for name, said in client.agreements(answers, small.files).items():
            print(f"{name} on Flink: {said}", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--events", type=int, default=10_000_000)
    parser.add_argument("--queries", default=",".join(QUERIES))
    parser.add_argument("--systems", default=",".join(SYSTEMS))
    parser.add_argument("--unchecked", action="store_true")
    asked = parser.parse_args()
    names, systems = asked.queries.split(","), asked.systems.split(",")
    flink = any(system.startswith("flink") for system in systems)
    folder = Path(tempfile.mkdtemp(prefix="penstock-nexmark-", dir=".")).absolute()
    try:
        if not asked.unchecked:
            check(folder, names, flink=flink)
        place = Place(folder / "events", asked.events)
        place.prepare(flink=flink)
        figures = compared(place, names, systems, partial(recorded, "nexmark-quick", asked.events))
    finally:
        shutil.rmtree(folder)
    whole = set(names) == set(QUERIES) and set(systems) == set(SYSTEMS)
    written("nexmark" if whole else "nexmark-quick", asked.events, figures)


if __name__ == "__main__":
    main()
