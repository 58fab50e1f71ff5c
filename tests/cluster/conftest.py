"""A standalone cluster of Spark with two workers, beside the broker that holds the log."""

from collections.abc import Iterator

import pytest

from services.spark import SparkCluster, spark_cluster_in
from tests.engine.kafka.conftest import kafka, prefix, pytest_collection_modifyitems, reader

__all__ = ["kafka", "prefix", "pytest_collection_modifyitems", "reader"]


@pytest.fixture(scope="session")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkCluster]:
    """Tests may kill its workers. They leave it whole."""
    made = spark_cluster_in(tmp_path_factory.mktemp("spark"), dies_with_us=True)
    made.start()
    yield made
    made.stop()
