"""One query of Nexmark on Flink, in Flink's own environment: the files are read to their end, figures go to stdout.

`python -m benchmarks.nexmark.flink.run --data FOLDER --query q3 --settings durable --sink blackhole --out FOLDER
--events N`. Flink runs inside the Java process that its Python package starts. Seconds are those of the job, as Flink
counts them: neither Java's start nor the planning of the query is among them, nor is `waited_seconds` (see
checkpoints.py). Progress goes to stderr.
"""

import argparse
import json
import os
import re
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from pyflink.common import Configuration  # type: ignore[import-not-found]
from pyflink.java_gateway import get_gateway  # type: ignore[import-not-found]
from pyflink.table import (  # type: ignore[import-not-found]
    EnvironmentSettings,
    FormatDescriptor,
    TableDescriptor,
    TableEnvironment,
)

from benchmarks.nexmark.flink.changes import completed, folded
from benchmarks.nexmark.flink.checkpoints import LOGGING, checkpoints
from benchmarks.nexmark.flink.queries import QUERIES, READS, UPDATING, Source
from benchmarks.nexmark.flink.settings import JAVA, configuration

TICKS = os.sysconf("SC_CLK_TCK")


def main() -> None:
    begun = time.perf_counter()
    asked = arguments()
    out = Path(asked.out).absolute()
    out.mkdir(parents=True, exist_ok=True)
    start_java(out, asked.settings)
    for query in asked.query.split(","):
        home = out / query
        print(json.dumps(measured(query, home, begun, asked)), flush=True)
        begun = time.perf_counter()


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", required=True, type=Path)
    parser.add_argument("--query", required=True, help="q0 to q22 or read; answers may be asked of several: q0,q1")
    parser.add_argument("--settings", choices=list(JAVA), default="durable")
    parser.add_argument("--sink", choices=["blackhole", "files", "print-json"], default="blackhole")
    parser.add_argument("--out", required=True)
    parser.add_argument("--events", required=True, type=int)
    return parser.parse_args()


def start_java(out: Path, settings: str) -> None:
    """Its options and its log are those of the first call; all later ones share the process."""
    (out / "log4j.properties").write_text(LOGGING.format(file=out / "flink.log"))
    os.environ |= {"JVM_ARGS": JAVA[settings], "LOG4J_PROPERTIES": str(out / "log4j.properties")}
    get_gateway()


def measured(query: str, home: Path, begun: float, asked: argparse.Namespace) -> dict[str, Any]:
    tables = environment(configuration(asked.settings, home), asked.data)
    statements = tables.create_statement_set()
    for name, text in (READS if query == "read" else {query: QUERIES[query]}).items():
        statements.add_insert(sink(asked.sink, name, home), tables.sql_query(text))
    java = Java()
    job = statements.execute().get_job_client()
    before, started = java.cpu_seconds(), time.perf_counter()
    with progress(query, java, asked.data):
        ran = job.get_job_execution_result().result().get_net_runtime() / 1000
    kept = checkpoints(home.parent / "flink.log", str(job.get_job_id()))
    seconds = ran - kept.waited_seconds
    return {
        "query": query,
        "settings": asked.settings,
        "sink": asked.sink,
        "seconds": seconds,
        "waited_seconds": kept.waited_seconds,
        "start_seconds": started - begun,
        "events_per_second": asked.events / seconds,
        "cpu_seconds": java.cpu_seconds() - before,
        "peak_memory_bytes": java.peak_memory(),
        "state_bytes": kept.last_bytes,
        "checkpoints": kept.number,
        "rows_out": None if asked.sink == "blackhole" else written(query, home, asked.sink),
    }


def environment(settings: dict[str, str], data: Path) -> Any:
    chosen = Configuration()
    for key, value in settings.items():
        chosen.set_string(key, value)
    made = EnvironmentSettings.new_instance().in_streaming_mode().with_configuration(chosen).build()
    tables = TableEnvironment.create(made)
    form = next((data / "bid").iterdir()).suffix[1:]
    for statement in Source(data, form).statements():
        tables.execute_sql(statement)
    return tables


def sink(kind: str, name: str, home: Path) -> Any:
    """Files hold rows, or where rows change, every change, in a format that Flink has for them; all exactly once."""
    if kind == "blackhole":
        return TableDescriptor.for_connector("blackhole").build()
    form = "debezium-json" if name in UPDATING else "json"
    made = TableDescriptor.for_connector("filesystem").option("path", (home / "rows" / name).as_uri())
    if name == "q10":
        made = made.partitioned_by("day", "minute").option("sink.partition-commit.policy.kind", "success-file")
    return made.format(FormatDescriptor.for_format(form).build()).build()


class Java:
    """The process that Flink runs in, as the system sees it."""

    def __init__(self) -> None:
        self._place = Path("/proc") / str(get_gateway().jvm.java.lang.ProcessHandle.current().pid())

    def cpu_seconds(self) -> float:
        fields = (self._place / "stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / TICKS

    def peak_memory(self) -> int:
        found = re.search(r"VmHWM:\s+(\d+) kB", (self._place / "status").read_text())
        return int(found[1]) * 1024 if found else 0

    def open_files(self) -> dict[Path, int]:
        """How far each open file has been read."""
        found = {}
        for link in (self._place / "fd").iterdir():
            try:
                position = re.search(r"pos:\s+(\d+)", (self._place / "fdinfo" / link.name).read_text())
                found[link.readlink()] = int(position[1]) if position else 0
            except OSError:
                continue  # closed meanwhile
        return found


@contextmanager
def progress(query: str, java: Java, data: Path) -> Iterator[None]:
    """Says every two seconds how much of the files has been read."""
    ended = threading.Event()
    thread = threading.Thread(target=report, args=(query, java, data.absolute(), ended))
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()


def report(query: str, java: Java, data: Path, ended: threading.Event) -> None:
    sizes = {path: path.stat().st_size for path in data.rglob("*") if path.is_file() and path.parent.name != "side"}
    read: dict[Path, int] = {}
    begun = time.perf_counter()
    while not ended.wait(2):
        now = {path: position for path, position in java.open_files().items() if path in sizes}
        read = {path: sizes[path] for path in read} | now
        share = sum(read.values()) / max(sum(sizes[path] for path in read), 1)
        print(f"flink {query}: {share:4.0%} read, {time.perf_counter() - begun:.0f} s", file=sys.stderr, flush=True)


def written(query: str, home: Path, kind: str) -> int:
    """The number of rows in files; for answers, the rows themselves go to `answer.json` beside them."""
    lines = (line for path in sorted((home / "rows" / query).rglob("part-*")) for line in completed(path))
    if kind == "files":
        return sum(1 for _ in lines)
    rows = folded(lines) if query in UPDATING else list(lines)
    (home / "answer.json").write_text("".join(rows))
    return len(rows)


if __name__ == "__main__":
    main()
