"""Where the events of a run lie, and how a query is measured over them, by each system in a process of its own."""

import json
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.nexmark.events import Shape
from benchmarks.nexmark.flink import client
from benchmarks.nexmark.flink.files import write_files
from benchmarks.nexmark.journal import FRAME, fill, write_side
from penstock.errors import PenstockError
from penstock.log import Log

DURABLE = {"q1": "topic", "q5": "topic", "q8": "topic", "q9": "topic", "q10": "files"}
"""Queries that also run with their answers on disk, and where Penstock puts them; Flink into its file sink."""
Figures = dict[str, Any]


class RunFailed(PenstockError):
    """A query's process ended without figures."""


@dataclass(frozen=True)
class Place:
    """The first `events` of a shape, in a folder; Penstock takes at most `batch` of them at a time."""

    folder: Path
    events: int
    batch: int
    shape: Shape

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
            fill(log, self.events, self.shape, frame=min(FRAME, self.batch), told=self._told("log"))
        if flink:
            write_files(self.files, self.events, self.shape, told=self._told("files"))

    def _told(self, what: str) -> Callable[[int], None]:
        def told(count: int) -> None:
            if count % max(1, self.events // 10) == 0:
                print(f"{what}: {count:,} events", flush=True)

        return told

    def measured(self, system: str, query: str, sink: str) -> Figures:
        """Of a query that writes to `nothing` or to `disk`."""
        if system == "penstock":
            return self._penstock(query, "none" if sink == "nothing" else DURABLE[query])
        settings: client.Settings = "durable" if system == "flink_durable" else "fastest"
        return client.measure(query, self.files, settings, "blackhole" if sink == "nothing" else "files", self.events)

    def _penstock(self, query: str, store: str) -> Figures:
        given = {"query": query, "store": store, "log": self.log, "side": self.side, "batch": self.batch}
        options = [text for name, value in given.items() for text in (f"--{name}", str(value))]
        run = subprocess.run(
            [sys.executable, "-m", "benchmarks.nexmark.penstock", *options],
            capture_output=True,
            text=True,
            timeout=client.LIMIT.total_seconds(),
        )
        if run.returncode:
            raise RunFailed(f"Penstock failed at {query}", detail=" ".join(run.stderr.splitlines()[-3:]))
        found: Figures = json.loads(run.stdout.splitlines()[-1])
        return {**found, "events_per_second": self.events / found["seconds"]}
