"""The jobs by Penstock, as one view each: `python -m benchmarks.streams.with_penstock --jobs count --log FOLDER`"""

import json
import tempfile
from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
from pyspark.sql import SparkSession

from benchmarks.streams.jobs import Asked, asked, minute_of, view_text, write_answer
from benchmarks.streams.metering import Samples, figures
from penstock.engine import session
from penstock.engine.run import Run, prepared
from penstock.log import Log
from penstock.model import pipeline_of
from penstock.views import ViewReader


def run(spark: SparkSession, asked: Asked, job: str, log: Log, home: Path) -> dict[str, float]:
    pipeline = pipeline_of(view_text(job, "topic" if asked.answers else "none"), name=home.name)
    pipeline = replace(pipeline, options=replace(pipeline.options, max_records_per_batch=asked.batch))
    run = Run(spark, log, home, prepared(spark, pipeline, log, home), lambda _: None)
    with Samples() as samples:
        query = run.start(once=True)
        run.wait(query)
    return figures(query.recentProgress, samples, asked.warm, log)


def answer(job: str, log: Log, pipeline: str) -> Iterable[Sequence[int]]:
    with ViewReader.of_topic(log, pipeline, "answer") as reader:
        rows = reader.rows("answer")
    match job:
        case "map":
            return [(len(rows), sum(row["price"] for row in rows))]
        case "count":
            return [(row["auction"], row["n"], row["total"]) for row in rows]
        case _:
            minutes = minute_of(pa.chunked_array([[row["start"] for row in rows]])).to_pylist()
            return [(row["auction"], minute, row["n"]) for row, minute in zip(rows, minutes, strict=True)]


def main() -> None:
    this = asked()
    memory = {"spark.driver.memory": "4g"}
    with (
        Log.open(this.log) as log,
        tempfile.TemporaryDirectory(dir=this.log.parent) as folder,
        session("rivals", conf=memory) as spark,
    ):
        for job in this.jobs:
            home = Path(folder) / job
            print(json.dumps(run(spark, this, job, log, home)), flush=True)
            if this.answers:
                write_answer(this.answers, "penstock", job, answer(job, log, home.name))


if __name__ == "__main__":
    main()
