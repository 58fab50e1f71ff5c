"""One query of Nexmark on Penstock, in a process of its own: the log is read to its end, figures go to stdout.

`python -m benchmarks.nexmark.penstock --log FOLDER --side FILE --query q3 [--store none] [--batch 2000000]`. Where
answers are kept as files, the store takes them beside the run, as with `penstock run`; the clock stops when it has all.
"""

import argparse
import json
import sys
import tempfile
import time
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path

import pyarrow.parquet as pq

from benchmarks._batches import records_read
from benchmarks._processes import cpu_seconds, peak_memory
from benchmarks.nexmark.queries import COLUMNS, pipeline_text
from penstock.app.keeping import filed
from penstock.engine import session
from penstock.engine.run import Run, prepared
from penstock.log import Log
from penstock.model import pipeline_of
from penstock.views.lineage import current

BATCH = 2_000_000
"""A batch of so many takes about as long as Flink has between two checkpoints, or less."""
ALL_PROGRESS = {"spark.sql.streaming.numRecentProgressUpdates": "10000"}


def measured(asked: argparse.Namespace, log: Log, home: Path, conf: dict[str, str]) -> dict[str, float]:
    """The pipeline is named for its folder, which no other run has: so its first lineage counts from its first batch
    on, and what follows its views sees every batch.
    """
    pipeline = pipeline_of(pipeline_text([asked.query], asked.side, asked.store), name=home.name)
    pipeline = replace(pipeline, options=replace(pipeline.options, max_records_per_batch=asked.batch))
    changes: list[int] = []
    with session("nexmark", conf=conf) as spark, ExitStack() as beside:
        ready = prepared(spark, pipeline, log, home)
        run = Run(spark, log, home, ready, lambda batch: changes.append(sum(batch.changes.values())))
        before, begun = cpu_seconds(), time.perf_counter()
        if asked.store == "files":
            beside.enter_context(filed(log, pipeline.name, home / "files", lambda error: print(error, file=sys.stderr)))
        query = run.start(once=True)
        run.wait(query)
        beside.close()  # after it, all rows are in files
        taken, used = time.perf_counter() - begun, cpu_seconds() - before
        read = [count for progress in query.recentProgress if (count := records_read(progress, log))]
        return {
            "seconds": taken,
            "cpu_seconds": used,
            "peak_memory_bytes": peak_memory(),
            "state_bytes": state_bytes(home),
            "batches": len(read),
            **counted(asked.store, log, home, sum(read), sum(changes)),
        }


def state_bytes(home: Path) -> int:
    """Of the files of the state in the checkpoint, as they lie on the disk."""
    return sum(path.stat().st_size for path in home.rglob("*") if path.is_file() and "state" in path.parts)


def counted(store: str, log: Log, home: Path, read: int, changes: int) -> dict[str, int]:
    """How many events went in, which must be all, and where that is kept, how many changes or rows came out."""
    there = sum(log.ends(topic)[0] for topic in COLUMNS)
    if read != there:
        raise SystemExit(f"only {read:,} of {there:,} events were read")
    if store == "none":
        return {"events": read}
    written = files_written(log, home) if store == "files" else {"rows_out": changes}
    if not written["rows_out"]:
        raise SystemExit("no row came out")
    return {"events": read} | written


def files_written(log: Log, home: Path) -> dict[str, int]:
    """The rows in files, and how many times the store has taken some: files of one time have one number, and those
    that were there when the lineage began to count are numbered for that.
    """
    lineage = current(log, home.name)
    assert lineage is not None
    files = list((home / "files" / "current").resolve().glob("q*/**/*.parquet"))
    times = {int(file.stem.partition("-")[0]) for file in files} - {lineage.frame}
    return {"rows_out": sum(pq.ParquetFile(file).metadata.num_rows for file in files), "times_applied": len(times)}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--log", required=True, type=Path)
    parser.add_argument("--side", required=True, type=Path)
    parser.add_argument("--query", required=True)
    parser.add_argument("--store", default="none")
    parser.add_argument("--batch", type=int, default=BATCH)
    parser.add_argument("--memory", default="6g")
    parser.add_argument("--conf", action="append", default=[], help="NAME=VALUE for Spark")
    asked = parser.parse_args()
    conf = ALL_PROGRESS | {"spark.driver.memory": asked.memory} | dict(each.split("=", 1) for each in asked.conf)
    with Log.open(asked.log) as log, tempfile.TemporaryDirectory(prefix="nexmark_", dir=asked.log.parent) as home:
        print(json.dumps(measured(asked, log, Path(home), conf)), flush=True)


if __name__ == "__main__":
    main()
