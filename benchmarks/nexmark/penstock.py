"""One query of Nexmark on Penstock, in a process of its own: the log is read to its end, figures go to stdout.

`python -m benchmarks.nexmark.penstock --log FOLDER --side FILE --query q3 [--store none] [--home FOLDER]`
"""

import argparse
import json
import tempfile
import time
from dataclasses import replace
from pathlib import Path

from benchmarks._processes import cpu_seconds, peak_memory
from benchmarks.nexmark.queries import pipeline_text
from benchmarks.windows import state_bytes
from penstock.engine import session
from penstock.engine.run import Run, prepared
from penstock.log import Log
from penstock.model import pipeline_of
from penstock.views import catch_up
from penstock.views.parquet import ParquetStore

RECORDS_PER_BATCH = 2_000_000
"""A batch of so many takes about as long as Flink has between two checkpoints, or less."""


def measured(name: str, log: Log, home: Path, side: Path, store: str, conf: dict[str, str]) -> dict[str, float]:
    pipeline = pipeline_of(pipeline_text([name], side, store), name=name)
    pipeline = replace(pipeline, options=replace(pipeline.options, max_records_per_batch=RECORDS_PER_BATCH))
    with session("nexmark", conf=conf) as spark:
        run = Run(spark, log, home, prepared(spark, pipeline, log, home), lambda _: None)
        before, begun = cpu_seconds(), time.perf_counter()
        query = run.start(once=True)
        run.wait(query)
        if store == "files":
            catch_up(log, name, ParquetStore(home / "files"), kept="files")
        taken = time.perf_counter() - begun
        return {
            "seconds": taken,
            "cpu_seconds": cpu_seconds() - before,
            "peak_memory_bytes": peak_memory(),
            "state_bytes": state_bytes(home),
            "batches": len([p for p in query.recentProgress if p["numInputRows"]]),
        }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    for name in ("log", "side", "query"):
        parser.add_argument(f"--{name}", required=True)
    parser.add_argument("--store", default="none")
    parser.add_argument("--memory", default="6g")
    parser.add_argument("--conf", action="append", default=[], help="NAME=VALUE for Spark")
    asked = parser.parse_args()
    log = Log.open(Path(asked.log))
    with tempfile.TemporaryDirectory(prefix="penstock-nexmark-", dir=Path(asked.log).parent) as home:
        conf = {"spark.driver.memory": asked.memory} | dict(each.split("=", 1) for each in asked.conf)
        print(json.dumps(measured(asked.query, log, Path(home), Path(asked.side), asked.store, conf)), flush=True)
    log.close()


if __name__ == "__main__":
    main()
