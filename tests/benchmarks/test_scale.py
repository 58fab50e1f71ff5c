"""The model of a batch's cost is found again from what it predicts, and knows waves."""

import pytest
from pyspark.sql import SparkSession

from benchmarks.scale import LEVELS, Job, Model, fitted, jobs
from penstock.engine.compile import compiled
from penstock.engine.query import Query, Tuning
from penstock.model import pipeline_of


def test_costs_that_follow_the_model_are_found() -> None:
    costs = Model(batch=120.0, level=30.0, partition=12.0, row=0.003)
    found = fitted({job: costs.predicted(job, 1) for job in jobs(200_000)})
    wanted = (costs.batch, costs.level, costs.partition, costs.row)
    assert (found.batch, found.level, found.partition, found.row) == pytest.approx(wanted)


def test_tasks_come_in_waves_and_rows_are_spread() -> None:
    costs = Model(batch=100.0, level=10.0, partition=5.0, row=0.001)
    assert costs.predicted(Job(2, 8, 100_000), 4) == 100 + 2 * (10 + 2 * 5) + 25
    assert costs.predicted(Job(2, 9, 100_000), 4) == 100 + 2 * (10 + 3 * 5) + 25


@pytest.mark.parametrize("levels", LEVELS)
def test_a_job_has_as_many_levels_as_it_says(levels: int, spark: SparkSession) -> None:
    plan = compiled(spark, pipeline_of(Job(levels, 2, 1000).sql()))
    assert Query(spark, plan.graph, Tuning()).layout.depth == levels
