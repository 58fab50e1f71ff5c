"""The law: after every batch each view equals its query run by Spark in batch over what was read."""

import os
import tempfile
from pathlib import Path

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from pyspark.sql import SparkSession

from tests.engine.conftest import Bench
from tests.engine.queries import Story, stories

EXAMPLES = 40 if os.environ.get("PENSTOCK_SOAK") else 3
LENIENT = settings(
    max_examples=EXAMPLES,
    deadline=None,
    phases=[Phase.explicit, Phase.generate],
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow, HealthCheck.data_too_large],
)
pytestmark = pytest.mark.spark


@LENIENT
@given(story=stories(views=8, steps=4))
def test_random_views_equal_batch_after_every_batch(spark: SparkSession, story: Story) -> None:
    with tempfile.TemporaryDirectory() as folder:
        bench = Bench(spark, Path(folder), story.sql)
        for step in story.steps:
            bench.append(step)
            bench.drain()
            bench.check()
        bench.log.close()
