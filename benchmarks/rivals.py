"""Penstock beside what Python has for streams: `transformWithState` on Spark, Bytewax, Quix Streams.

`python -m benchmarks.rivals [--quick] [--only spark,bytewax]`. Three jobs over the same bids of Nexmark: a map, a count
by auction, a count by auction and minute. Every side runs in processes of its own and writes to nothing; its answers
are held against those of Arrow first. The libraries need `.venv-rivals` (`make bench-rivals` makes it).
"""

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from benchmarks._report import keep, report
from benchmarks.streams.data import file_of, first, log_of, make
from benchmarks.streams.jobs import JOBS, Answer, closed, right_answer

LIBRARIES = ("bytewax", "quixstreams")
RIVALS = ("spark", *LIBRARIES)
PYTHON = Path(".venv-rivals/bin/python")
Figures = dict[str, float]


@dataclass(frozen=True)
class Size:
    """How many bids each side gets: Penstock `ours`, in batches of `batch`; Spark `spark`; a library as many as last
    `seconds` by its rate in the check, but at least those of the check and at most `most`, which the map goes through
    more than once if need be.
    """

    check: int
    ours: int
    spark: int
    most: int
    seconds: float
    batch: int


WHOLE = Size(check=100_000, ours=24_000_000, spark=600_000, most=6_000_000, seconds=15, batch=500_000)
QUICK = Size(check=100_000, ours=1_000_000, spark=300_000, most=200_000, seconds=2, batch=100_000)


class Wrong(Exception):
    """A side has another answer than the others."""


def on_spark(side: str, jobs: str, folder: Path, rows: int, *more: str) -> list[Figures]:
    """Penstock, or Spark with Python: one process, which uses all cores; the figures of each job."""
    log = str(log_of(folder, rows))
    return results(
        started([sys.executable, "-m", f"benchmarks.streams.with_{side}", "--jobs", jobs, "--log", log, *more])
    )


def library(side: str, job: str, folder: Path, rows: int, *more: str, answered: bool = False) -> Figures:
    """A process for each core, each with its share of the auctions; they begin together."""
    shares = os.cpu_count() or 1
    command = [str(PYTHON), "-m", f"benchmarks.streams.with_{side}", "--job", job, "--events", str(file_of(folder))]
    command += ["--rows", str(rows), *more]
    processes = []
    for share in range(shares):
        path = ["--answer", str(folder / f"{side}-{job}-{share}.json")] if answered else []
        processes.append(started([*command, "--share", f"{share}/{shares}", *path]))
    for process in processes:
        assert process.stdout
        if process.stdout.readline().strip() != "ready":
            results(process)  # raises
    for process in processes:
        assert process.stdin
        process.stdin.write("go\n")
        process.stdin.flush()
    found = [results(process)[-1] for process in processes]
    return {
        "rows": sum(each["rows"] for each in found),
        "seconds": max(each["seconds"] for each in found),
        "cpu_seconds": sum(each["cpu_seconds"] for each in found),
    }


def started(command: Sequence[str]) -> subprocess.Popen[str]:
    pipe = subprocess.PIPE
    return subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=pipe, text=True)


def results(process: subprocess.Popen[str]) -> list[Figures]:
    out, errors = process.communicate()
    if process.returncode:
        raise Wrong(f"{process.args!r} ended with {process.returncode}:\n{errors[-4000:]}")
    return [json.loads(line) for line in out.splitlines()]


def answered(side: str, folder: Path, jobs: Sequence[str], rows: int) -> dict[str, Figures]:
    """Runs the jobs over the first bids, so that their answers lie in the folder; what each took."""
    if side in LIBRARIES:
        return {job: library(side, job, folder, rows, answered=True) for job in jobs}
    return dict(zip(jobs, on_spark(side, ",".join(jobs), folder, rows, "--answers", str(folder)), strict=True))


def check(side: str, job: str, folder: Path, rows: int) -> None:
    """Raises unless the answer that a side gave is the right one."""
    bids = first(folder, rows)
    parts = [json.loads(path.read_text()) for path in folder.glob(f"{side}-{job}-*.json")]
    given: Answer = Counter(tuple(row) for part in parts for row in part)
    if job == "map":  # each share has counted its own
        given = Counter([tuple(map(sum, zip(*given, strict=True)))])
    if job == "window":
        given = closed(given, bids)
    wanted = right_answer(job, bids)
    if given != wanted:
        more, less = sorted(given - wanted), sorted(wanted - given)
        raise Wrong(f"{side}, {job}: {len(more)} rows too many, {len(less)} missing, such as {more[:3]}, {less[:3]}")


def compared(job: str, checks: dict[str, dict[str, Figures]], folder: Path, size: Size) -> Figures:
    found = {}
    for side in checks:
        if side in LIBRARIES:
            wanted = checks[side][job]["rows"] / checks[side][job]["seconds"] * size.seconds
            times = max(1, round(wanted / size.most)) if job == "map" else 1
            rows = int(min(max(wanted, size.check), size.most))
            found[side] = library(side, job, folder, rows, "--times", str(times))
        elif side == "spark":
            found[side] = on_spark(side, job, folder, size.spark, "--batch", "100000", "--warm", "2")[0]
        else:
            found[side] = on_spark(side, job, folder, size.ours, "--batch", str(size.batch))[0]
        rate = found[side]["rows"] / found[side]["seconds"]
        print(f"{job}, {side}: {rate:,.0f} rows/s, over {found[side]['seconds']:.1f} s", flush=True)
    return figures_of(job, found)


def figures_of(job: str, found: dict[str, Figures]) -> Figures:
    rates = {side: each["rows"] / each["seconds"] for side, each in found.items()}
    costs = {side: each["cpu_seconds"] / each["rows"] * 1e6 for side, each in found.items()}
    figures = {}
    for side in found:
        figures[f"{job}_{side}_rows"] = found[side]["rows"]
        figures[f"{job}_{side}_seconds"] = found[side]["seconds"]
        figures[f"{job}_{side}_rows_per_s"] = rates[side]
        figures[f"{job}_{side}_cpu_s_per_million"] = costs[side]
    for side in found:
        if side != "penstock":
            figures[f"{job}_against_{side}"] = rates["penstock"] / rates[side]
            figures[f"{job}_cpu_against_{side}"] = costs[side] / costs["penstock"]
    return figures


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="smaller; for a look, not for the record")
    parser.add_argument("--only", help=f"some of: {', '.join(RIVALS)}; not for the record")
    parser.add_argument("--jobs", help=f"some of: {', '.join(JOBS)}; not for the record")
    given = parser.parse_args()
    rivals = given.only.split(",") if given.only else list(RIVALS)
    jobs = given.jobs.split(",") if given.jobs else list(JOBS)
    if not PYTHON.exists() and set(rivals) & set(LIBRARIES):
        sys.exit(f"{PYTHON} is not there: make bench-rivals makes it, or take --only spark")
    folder = Path(tempfile.mkdtemp(prefix="penstock-bench-", dir=".")).resolve()
    try:
        figures = measured(folder, QUICK if given.quick else WHOLE, rivals, jobs)
    finally:
        shutil.rmtree(folder)
    report("rivals-quick" if given.quick or given.only or given.jobs else "rivals", figures, {})


def measured(folder: Path, size: Size, rivals: Sequence[str], jobs: Sequence[str]) -> Figures:
    print("making the bids", flush=True)
    make(folder, file=size.most, logs=[size.check, size.ours, size.spark])
    checks = {}
    for side in ("penstock", *rivals):
        checks[side] = answered(side, folder, jobs, size.check)
        for job in jobs:
            check(side, job, folder, size.check)
        print(f"{side}: its answers are right", flush=True)
    figures: Figures = {}
    for job in jobs:
        figures |= compared(job, checks, folder, size)
        keep("rivals", figures)
    return figures


if __name__ == "__main__":
    main()
