"""Latency: from an event's append to the log until its change can be read, at steady rates.

`python -m benchmarks.latency [--quick] [--seconds 300] [--only filter,join] [--rates 10000]`. One process appends, one
runs the pipeline with its default options, one looks. A record counts from the moment at which it was handed to the log
until the first batch that has read it is committed and readable, in the log and in the store's SQLite file. What was
handed over while the run warmed up is left out. Figures are written as they come, to latency-partial.json.
"""

import argparse
import json
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks._processes import cpu_seconds
from benchmarks._report import keep, report
from benchmarks.visibility.pipelines import PIPELINES, prepare
from penstock.errors import PenstockError
from penstock.log import Log

RATES = (1_000, 10_000)
GOALS = {f"{name}_10000_{place}p99_ms": "<= 300" for name in PIPELINES for place in ("", "store_")}
"""A change is visible in the log, for whoever follows the view there, and in the view's table."""
MILLISECOND = 1e6
SHOWN = ("p50_ms", "p99_ms", "p999_ms", "store_p99_ms")
Figures = dict[str, float]


@dataclass(frozen=True)
class Case:
    """A pipeline at a rate, in a folder of its own."""

    pipeline: str
    rate: int
    folder: Path
    seconds: float
    warm: float
    trigger: str

    @property
    def log(self) -> Path:
        return self.folder / ".penstock" / "log"

    @property
    def store(self) -> Path:
        return self.folder / ".penstock" / "views.sqlite"

    def run(self) -> Figures:
        self.folder.mkdir(parents=True)
        trigger = f"SET trigger_interval = '{self.trigger}';\n" if self.trigger else ""
        (self.folder / "pipeline.sql").write_text(trigger + PIPELINES[self.pipeline])
        with ExitStack() as held:
            runner = held.enter_context(Part("runner", self.folder, {"pipeline": self.folder}, out="batches.json"))
            with Log.open(self.log) as log:
                prepare(self.pipeline, log)
            where = {"log": self.log, "store": self.store, "pipeline": self.folder.name}
            follower = held.enter_context(Part("follower", self.folder, where, out="seen.npz"))
            begun = time.monotonic(), cpu_seconds(runner.pid)
            flow = {"log": self.log, "rate": self.rate, "seconds": self.seconds + self.warm}
            with Part("producer", self.folder, flow, out="sent.npy", ready=False) as producer:
                producer.wait()
            cores = (cpu_seconds(runner.pid) - begun[1]) / (time.monotonic() - begun[0])
            follower.tell(str(np.load(self.folder / "sent.npy")[-1, 0]))
            follower.wait()
            runner.wait()
        return figures(self.folder, self.warm) | {"cores_of_the_run": cores}


class Part:
    """One of the processes; killed if it still runs when the block is left."""

    def __init__(self, name: str, folder: Path, options: Mapping[str, object], *, out: str, ready: bool = True) -> None:
        self._name = name
        self._errors = folder / f"{name}.txt"
        given = [text for key, value in options.items() for text in (f"--{key}", str(value))]
        command = [sys.executable, "-m", f"benchmarks.visibility.{name}", *given, "--out", str(folder / out)]
        pipe = subprocess.PIPE
        with self._errors.open("w") as errors:
            self._process = subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=errors, text=True)
        assert self._process.stdout
        if ready and self._process.stdout.readline() != "ready\n":
            self.wait()

    def __enter__(self) -> "Part":
        return self

    def __exit__(self, *_: object) -> None:
        self._process.kill()
        self._process.wait()

    @property
    def pid(self) -> int:
        return self._process.pid

    def tell(self, line: str) -> None:
        assert self._process.stdin
        self._process.stdin.write(f"{line}\n")
        self._process.stdin.flush()

    def wait(self) -> None:
        """Ends its input and waits; raises what it has said if it fails."""
        self._process.communicate()
        if self._process.returncode:
            raise RuntimeError(f"the {self._name} failed:\n{self._errors.read_text()}")


def figures(folder: Path, warm: float) -> Figures:
    sent, seen = np.load(folder / "sent.npy"), np.load(folder / "seen.npz")
    frame, count, due, handed = sent[handed_after(sent, warm)].T
    found: Figures = {}
    for place, prefix in (("in_log", ""), ("in_store", "store_")):
        waited = np.repeat(shown_at(frame, seen[place]) - handed, count) / MILLISECOND
        for name, share in (("p50", 50), ("p99", 99), ("p999", 99.9)):
            found[f"{prefix}{name}_ms"] = float(np.percentile(waited, share))
    found["handed_late_p99_ms"] = float(np.percentile(np.repeat(handed - due, count), 99)) / MILLISECOND
    found["records_per_s"] = float(count.sum() / (handed[-1] - handed[0]) * 1e9)
    batches = np.searchsorted(seen["in_log"][:, 0], frame, side="right")
    found["records_per_batch"] = float(np.median(np.bincount(batches - batches[0], weights=count)))
    return found | batch_times(json.loads((folder / "batches.json").read_text()), int(handed[0]))


def handed_after(sent: np.ndarray, warm: float) -> np.ndarray:
    after: np.ndarray = sent[:, 3] >= sent[0, 3] + warm * 1e9
    return after


def shown_at(frames: np.ndarray, seen: np.ndarray) -> np.ndarray:
    """When the first batch was seen that has read each of the frames."""
    until, at = seen.T
    shown: np.ndarray = at[np.searchsorted(until, frames, side="right")]
    return shown


def batch_times(notes: Mapping[str, Any], since: int) -> Figures:
    """What a batch takes from its start to the next one's, and its parts: our own stages, and what Spark says."""
    reached: dict[str, dict[int, int]] = {}
    for stage, batch, at in notes["stages"]:
        if at >= since:
            reached.setdefault(stage, {})[batch] = at
    found = {
        "batch_ms": spans(reached["PLANNED"], reached["PLANNED"], 1),
        "batch_computing_ms": spans(reached["PLANNED"], reached["STATE_COMMITTED"]),
        "batch_appending_ms": spans(reached["STATE_COMMITTED"], reached["FRAMED"]),
        "batch_storing_ms": spans(reached["FRAMED"], reached["STORED"]),
        "batch_between_ms": spans(reached["COMMITTING"], reached["PLANNED"], 1),
    }
    medians = {name: float(np.median(each)) for name, each in found.items()}
    medians["batch_p99_ms"] = float(np.percentile(found["batch_ms"], 99))
    for name in ("latestOffset", "queryPlanning", "walCommit", "addBatch", "commitOffsets", "triggerExecution"):
        medians[f"spark_{name}_ms"] = float(np.median([each.get(name, 0) for each in notes["spark"]]))
    return medians


def spans(start: Mapping[int, int], end: Mapping[int, int], later: int = 0) -> Sequence[float]:
    """From one stage of a batch to another, of the same batch or a later one."""
    return [(end[batch + later] - at) / MILLISECOND for batch, at in start.items() if batch + later in end]


@dataclass(frozen=True)
class Plan:
    """What a run measures, for so many seconds each."""

    pipelines: tuple[str, ...] = tuple(PIPELINES)
    rates: tuple[int, ...] = RATES
    seconds: float = 300.0
    warm: float = 30.0
    trigger: str = ""

    @property
    def file(self) -> str:
        """Only the whole of it is for the record."""
        return "latency" if self == Plan() else "latency-quick"

    def cases(self, folder: Path) -> list[Case]:
        return [
            Case(name, rate, folder / f"{name}_{rate}", self.seconds, self.warm, self.trigger)
            for name in self.pipelines
            for rate in self.rates
        ]


def planned(arguments: Sequence[str]) -> Plan:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="20 seconds each")
    parser.add_argument("--seconds", type=float, default=Plan.seconds, help="each")
    parser.add_argument("--only", default=",".join(PIPELINES), help=f"some of: {', '.join(PIPELINES)}")
    parser.add_argument("--rates", default=",".join(map(str, RATES)), help="events a second")
    parser.add_argument("--trigger", default="", help="a trigger interval other than the default")
    given = parser.parse_args(arguments)
    seconds, warm = (20.0, 10.0) if given.quick else (given.seconds, Plan.warm)
    return Plan(tuple(given.only.split(",")), tuple(map(int, given.rates.split(","))), seconds, warm, given.trigger)


def measured(cases: Sequence[Case]) -> Figures:
    """One case after the other. What is found is written from case to case; one that fails is told, and left out."""
    found: Figures = {}
    for case in cases:
        name = f"{case.pipeline}_{case.rate}"
        print(f"{name}, {case.seconds + case.warm:g} s ...", flush=True)
        try:
            one = case.run()
        except (RuntimeError, PenstockError, OSError, LookupError) as error:
            print(f"  failed: {error}", file=sys.stderr, flush=True)
            continue
        finally:
            shutil.rmtree(case.folder, ignore_errors=True)
        print("  " + ", ".join(f"{key} {one[key]:.0f}" for key in SHOWN), flush=True)
        found |= {f"{name}_{key}": value for key, value in one.items()}
        keep("latency", found)
    return found


def main() -> None:
    plan = planned(sys.argv[1:])
    folder = Path(tempfile.mkdtemp(prefix="penstock-bench-", dir=".")).resolve()
    cases = plan.cases(folder)
    try:
        found = measured(cases)
    finally:
        shutil.rmtree(folder)
    failed = [case for case in cases if f"{case.pipeline}_{case.rate}_p99_ms" not in found]
    report("latency-quick" if failed else plan.file, found, GOALS)
    sys.exit(bool(failed))


if __name__ == "__main__":
    main()
