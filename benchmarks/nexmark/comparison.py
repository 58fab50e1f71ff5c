"""The measurements of a run, one after the other; what was found so far, so that a run that was cut off can go on.

A query that fails on a system is noted with the reason, and the next one is measured. It is recorded
after every single measurement: a run takes more than an hour.
"""

import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from benchmarks.nexmark.place import DURABLE, Figures
from benchmarks.nexmark.queries import READ
from penstock.errors import PenstockError

SYSTEMS = ("penstock", "flink_durable", "flink_fastest")
FAILURES = (PenstockError, subprocess.SubprocessError, OSError, ValueError, LookupError)
"""What may become of another process and of what it says."""
Found = dict[str, dict[str, Figures]]
"""Per query and system its figures; with answers on disk under the query's name and `durably`."""
Measure = Callable[[str, str, str], Figures]
"""Of a system, a query and a sink, `nothing` or `disk`."""


@dataclass(frozen=True)
class Job:
    """One measurement."""

    query: str
    sink: str
    system: str

    @property
    def title(self) -> str:
        return self.query if self.sink == "nothing" else f"{self.query} durably"


def jobs(names: Sequence[str], systems: Sequence[str]) -> list[Job]:
    """Reading alone first; Flink's fastest settings keep nothing durably."""
    nothing = [Job(name, "nothing", system) for name in (READ, *names) for system in systems]
    disk = [Job(name, "disk", system) for name in names if name in DURABLE for system in systems]
    return nothing + [job for job in disk if job.system != "flink_fastest"]


def missing(wanted: Sequence[Job], found: Found) -> list[Job]:
    """What was not measured yet, or failed."""
    return [job for job in wanted if "failed" in found.get(job.title, {}).get(job.system, {"failed": ""})]


def compare(
    wanted: Sequence[Job],
    found: Found,
    measure: Measure,
    wrong: Mapping[tuple[str, str], str],
    record: Callable[[], object],
) -> None:
    """Adds the figures of the jobs to what was found. A query to which a system has a `wrong`
    answer is not measured.
    """
    for number, job in enumerate(wanted, 1):
        begun = time.perf_counter()
        reason = wrong.get((job.query, job.system))
        try:
            figures = {"failed": reason} if reason else measure(job.system, job.query, job.sink)
        except FAILURES as error:
            figures = {"failed": " ".join(str(error).split())}
        found.setdefault(job.title, {})[job.system] = figures
        record()
        taken = time.perf_counter() - begun
        print(f"{number}/{len(wanted)} {job.title} {job.system}: {said(figures)} ({taken:.0f} s in all)", flush=True)


def said(figures: Figures) -> str:
    if "failed" in figures:
        return f"failed: {figures['failed']}"
    rate = figures.get("events_per_second")
    return f"{rate:,.0f} events/s" if rate else str(figures.get("reason", "does not run"))
