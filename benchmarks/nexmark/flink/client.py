"""Flink as seen from Penstock's environment: a query runs in Flink's own, in a process of its own."""

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path
from threading import Timer
from typing import IO, Any, Literal

import pyarrow as pa

from benchmarks.nexmark.flink.agreement import Row, verdict
from benchmarks.nexmark.flink.queries import UNSUPPORTED
from penstock.errors import PenstockError

ROOT = Path(__file__).parents[3]
PYTHON = ROOT / ".venv-flink" / "bin" / "python"
CAUSE = re.compile(r"(?:Caused by: )?(?:[\w.$]+(?:Exception|Error): )+(.+)")
"""An exception and what it says, without the classes of those that it is wrapped in."""
LIMIT = timedelta(hours=1)
Settings = Literal["durable", "fastest"]
Sink = Literal["blackhole", "files"]


class FlinkError(PenstockError):
    """Flink is missing, or it failed."""


def version() -> str:
    """Of the Flink that is installed."""
    asks = "from importlib.metadata import version; print(version('apache-flink'))"
    return subprocess.run([str(PYTHON), "-c", asks], capture_output=True, text=True, check=True).stdout.strip()


def measure(query: str, data: Path, settings: Settings, sink: Sink, events: int) -> dict[str, Any]:
    """The figures of one run; of a query that Flink does not run, its reason."""
    if query in UNSUPPORTED:
        return {"query": query, "settings": settings, "reason": UNSUPPORTED[query]}
    with temporary(data.parent) as out:
        options = {"settings": settings, "sink": sink, "events": str(events)}
        figures: dict[str, Any] = json.loads(ran([query], data, out, options)[-1])
        return figures


def answer(query: str, data: Path) -> list[Row]:
    return answers([query], data)[query]


def answers(queries: Sequence[str], data: Path) -> dict[str, list[Row]]:
    """The rows that are left at the end, of all queries by one process; none of those that Flink does not run."""
    names = [name for name in queries if name not in UNSUPPORTED]
    found: dict[str, list[Row]] = {name: [] for name in queries}
    if names:
        with temporary(data.parent) as out:
            ran(names, data, out, {"settings": "fastest", "sink": "print-json", "events": "1"})
            found |= {name: rows(out / name / "answer.json") for name in names}
    return found


def agreement(query: str, data: Path, ours: pa.Table) -> str:
    return agreements({query: ours}, data)[query]


def agreements(ours: Mapping[str, pa.Table], data: Path) -> dict[str, str]:
    """Of each query what is to be said of Flink's answer and ours; an error where they differ and should not."""
    found = answers(list(ours), data)
    return {query: verdict(query, table, found[query]) for query, table in ours.items()}


def rows(file: Path) -> list[Row]:
    return [json.loads(line) for line in file.read_text().splitlines()]


@contextmanager
def temporary(parent: Path) -> Iterator[Path]:
    out = Path(tempfile.mkdtemp(prefix="flink-", dir=parent)).absolute()
    try:
        yield out
    finally:
        shutil.rmtree(out)


def ran(queries: Sequence[str], data: Path, out: Path, options: Mapping[str, str]) -> list[str]:
    """What the process wrote to stdout, line by line; its progress goes to our stderr."""
    if not PYTHON.exists():
        raise FlinkError("Flink is not installed", detail=f"There is no {PYTHON}.", hint="make flink")
    given = {"data": str(data.absolute()), "query": ",".join(queries), "out": str(out)} | dict(options)
    command = [str(PYTHON), "-m", "benchmarks.nexmark.flink.run", *(f"--{name}={given[name]}" for name in given)]
    with (out / "figures").open("w") as figures:
        code, said = attended(command, figures)
    if code:
        raise FlinkError(f"Flink failed at {given['query']}", detail=reason(said))
    return (out / "figures").read_text().splitlines()


def attended(command: list[str], figures: IO[str]) -> tuple[int, list[str]]:
    """The process's exit code and what it said on stderr; it ends with us, or when its time is over."""
    with subprocess.Popen(
        command, cwd=ROOT, stdout=figures, stderr=subprocess.PIPE, text=True, start_new_session=True
    ) as process:
        timer = Timer(LIMIT.total_seconds(), end, [process])
        timer.start()
        try:
            assert process.stderr is not None
            said = [line for line in process.stderr if not progress(line)]
            return process.wait(), said
        finally:
            timer.cancel()
            end(process)


def end(process: subprocess.Popen[str]) -> None:
    """Java, which it started, is of its group."""
    if process.poll() is None:
        os.killpg(process.pid, signal.SIGKILL)


def progress(line: str) -> bool:
    """Whether a line tells of progress, which is shown; all others are kept for the error."""
    if tells := line.startswith("flink "):
        print(line, end="", file=sys.stderr, flush=True)
    return tells


def reason(said: Sequence[str]) -> str:
    """The innermost cause that Flink names, or the end of what was said."""
    causes = [found[1] for line in said if (found := CAUSE.match(line))]
    return causes[-1] if causes else "".join(said[-3:]).strip()
