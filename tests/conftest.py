"""What all tests share: one Spark session in each process, and random cases that are the same in every run."""

import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import settings
from pyspark.sql import SparkSession

from penstock.app.testing.how import QUICK_JAVA
from penstock.engine import session
from tests.memory import moved_into_memory

settings.register_profile("ci", derandomize=True, deadline=None)
settings.register_profile("soak", max_examples=2_000, deadline=None)
settings.load_profile("soak" if os.environ.get("PENSTOCK_SOAK") else "ci")

FOLDER = pytest.StashKey[Path | None]()


def pytest_configure(config: pytest.Config) -> None:
    """For this process, and all that tests start."""
    config.stash[FOLDER] = moved_into_memory()
    # Most of a test's time would go into compiling code that is hardly ever run again.
    os.environ.setdefault("SPARK_SUBMIT_OPTS", QUICK_JAVA)


def pytest_report_header(config: pytest.Config) -> str:
    return f"temporary files: {config.stash[FOLDER] or 'on disk'}"


def pytest_sessionfinish(session: pytest.Session, exitstatus: int) -> None:
    """What failed tests have written stays to be looked at."""
    if exitstatus not in (pytest.ExitCode.OK, pytest.ExitCode.NO_TESTS_COLLECTED):
        session.config.stash[FOLDER] = None


def pytest_unconfigure(config: pytest.Config) -> None:
    if folder := config.stash[FOLDER]:
        shutil.rmtree(folder, ignore_errors=True)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """A test that asks for the session is a `spark` test without saying so."""
    for item in items:
        if "spark" in getattr(item, "fixturenames", ()):
            item.add_marker(pytest.mark.spark)


@pytest.fixture(scope="session")
def spark() -> Iterator[SparkSession]:
    """The one session of this process."""
    with session("tests", master="local[2]") as spark:
        yield spark
