"""Right answers first: every query as a view of one pipeline, against Spark batch over the same events."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import duckdb
import pyarrow as pa
from pyspark.sql import SparkSession

from benchmarks.nexmark.queries import pipeline_text
from penstock.engine.oracle import Oracle
from penstock.engine.run import Run, prepared
from penstock.log import Log
from penstock.model import pipeline_of
from penstock.views.lineage import current
from penstock.views.steps import steps_until

CHANGING = {"q4", "q5", "q6", "q7", "q9", "q11", "q12", "q15", "q16", "q17", "q18", "q19"}
"""Queries whose rows leave again when more events come: a check in which none does has shown nothing."""
Answers = dict[str, pa.Table | str]


def checked(spark: SparkSession, log: Log, home: Path, side: Path, names: Sequence[str], *, batch: int) -> Answers:
    """Runs the log through all the queries at once, at most `batch` records at a time; of each query its answer, which
    is Spark's, or what is wrong with it.
    """
    pipeline = pipeline_of(pipeline_text(names, side, "topic"), name="answers")
    pipeline = replace(pipeline, options=replace(pipeline.options, max_records_per_batch=batch))
    run = Run(spark, log, home, prepared(spark, pipeline, log, home), lambda _: None)
    run.wait(run.start(once=True))
    oracle = Oracle(spark, pipeline, log.folder, log.mark().next_frame)
    return {name: _answer(log, pipeline.name, name, oracle.rows(name)) for name in names}


def _answer(log: Log, pipeline: str, name: str, expected: pa.Table) -> pa.Table | str:
    came, left = changes(log, pipeline, name)
    found = without(came, left) if len(left) else came
    if name in CHANGING and not len(left):
        return "no row has left, though some must"
    return difference(expected, found) or found


def changes(log: Log, pipeline: str, view: str) -> tuple[pa.Table, pa.Table]:
    """The rows that came into a view, and those that left it, in all batches together."""
    lineage = current(log, pipeline)
    assert lineage is not None
    alone = replace(lineage, views=(replace(lineage.view(view), kept="table"),))
    steps = steps_until(log, alone, log.mark().next_frame - 1)
    found = [change for step in steps for change in step.changes]
    return rows_of([change.new for change in found]), rows_of([change.old for change in found])


def rows_of(arrays: list[pa.StructArray]) -> pa.Table:
    return pa.Table.from_batches([pa.RecordBatch.from_struct_array(each.filter(each.is_valid())) for each in arrays])


def without(held: pa.Table, taken: pa.Table) -> pa.Table:
    """The rows of a table, each as often as it was not taken away."""
    with duckdb.connect() as connection:
        connection.register("held", held)
        connection.register("taken", taken)
        return connection.sql("SELECT * FROM held EXCEPT ALL SELECT * FROM taken").to_arrow_table()


def difference(expected: pa.Table, found: pa.Table) -> str:
    """What is to be said of two answers that are not the same; of equal ones nothing."""
    missing, more = without(expected, found), without(found, expected)
    if not len(missing) and not len(more):
        return ""
    return (
        f"{len(missing)} rows are missing, {len(more)} should not be there: "
        f"{missing.slice(0, 3).to_pylist()} {more.slice(0, 3).to_pylist()}"
    )
