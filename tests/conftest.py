"""What all tests share: one Spark session, and random cases that are the same in every run."""

import os
from collections.abc import Iterator

import pytest
from hypothesis import settings
from pyspark.sql import SparkSession

from penstock.engine import session

settings.register_profile("ci", derandomize=True, deadline=None)
settings.register_profile("soak", max_examples=2_000, deadline=None)
settings.load_profile("soak" if os.environ.get("PENSTOCK_SOAK") else "ci")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """A test that asks for the session is a `spark` test without saying so."""
    for item in items:
        if "spark" in getattr(item, "fixturenames", ()):
            item.add_marker(pytest.mark.spark)


SHORT_LIVED = {"spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"}
"""Most of a test's time would go into compiling code that is hardly ever run again."""


@pytest.fixture(scope="session")
def spark() -> Iterator[SparkSession]:
    """The one session of the whole run."""
    with session("tests", master="local[2]", conf=SHORT_LIVED) as spark:
        yield spark
