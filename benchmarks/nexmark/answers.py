"""Right answers first: every query as a view of one pipeline, against Spark batch over the same events."""

from collections.abc import Callable, Sequence
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


def checked(
    spark: SparkSession, log: Log, home: Path, side: Path, names: Sequence[str], told: Callable[[str], None]
) -> dict[str, pa.Table]:
    """Runs the log through all the queries at once; their answers, each of which is Spark's, or an error."""
    pipeline = pipeline_of(pipeline_text(names, side, "topic"), name="answers")
    run = Run(spark, log, home, prepared(spark, pipeline, log, home), lambda _: None)
    run.wait(run.start(once=True))
    oracle, found = Oracle(spark, pipeline, log.folder, log.mark().next_frame), {}
    for name in names:
        found[name] = folded(log, pipeline.name, name)
        compare(name, oracle.rows(name), found[name])
        told(name)
    return found


def folded(log: Log, pipeline: str, view: str) -> pa.Table:
    """What a view's changes amount to, all at once: the rows that came without those that left."""
    lineage = current(log, pipeline)
    assert lineage is not None
    alone = replace(lineage, views=(replace(lineage.view(view), kept="table"),))
    changes = [change for step in steps_until(log, alone, log.mark().next_frame - 1) for change in step.changes]
    came, left = (_rows([getattr(change, side) for change in changes]) for side in ("new", "old"))
    return without(came, left) if len(left) else came


def _rows(arrays: list[pa.StructArray]) -> pa.Table:
    return pa.Table.from_batches([pa.RecordBatch.from_struct_array(each.filter(each.is_valid())) for each in arrays])


def without(held: pa.Table, taken: pa.Table) -> pa.Table:
    """The rows of a table, each as often as it was not taken away."""
    with duckdb.connect() as connection:
        connection.register("held", held)
        connection.register("taken", taken)
        return connection.sql("SELECT * FROM held EXCEPT ALL SELECT * FROM taken").to_arrow_table()


def compare(name: str, expected: pa.Table, found: pa.Table) -> None:
    missing, more = without(expected, found), without(found, expected)
    if len(missing) or len(more):
        raise AssertionError(
            f"{name}: {len(missing)} rows are missing, {len(more)} should not be there: "
            f"{missing.slice(0, 3).to_pylist()} {more.slice(0, 3).to_pylist()}"
        )
