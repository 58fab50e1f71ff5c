"""What the tests of views share: a log, and the shop that writes into it."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from penstock.log import Log
from penstock.views import SqliteStore
from services import postgres as postgresql
from services import redis as redis_service
from tests.views import postgres as postgres_tests
from tests.views import redis as redis_tests
from tests.views.postgres import new_schema
from tests.views.redis import new_prefix
from tests.views.shop import Shop

pytest.register_assert_rewrite("tests.views.contract", "tests.views.contract_leaving")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        for service in ("postgres", "redis"):
            if service in getattr(item, "fixturenames", ()):
                item.add_marker(service)


@pytest.fixture(scope="session")
def postgres() -> Iterator[postgresql.Server]:
    """The server of this process. A test that kills it leaves it whole."""
    yield from postgres_tests.server_for_tests()


@pytest.fixture(scope="session")
def redis() -> Iterator[redis_service.Server]:
    """The server of this process. A test that kills it leaves it whole."""
    yield from redis_tests.server_for_tests()


@pytest.fixture
def schema() -> str:
    """A schema of PostgreSQL that is not there yet."""
    return new_schema()


@pytest.fixture
def prefix() -> str:
    """A name with which no key of Redis begins yet."""
    return new_prefix()


@pytest.fixture
def log(tmp_path: Path) -> Iterator[Log]:
    with Log.open(tmp_path / "log") as log:
        yield log


@pytest.fixture
def shop(log: Log) -> Shop:
    """A pipeline whose first lineage is the current one."""
    shop = Shop(log)
    shop.announce()
    return shop


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "views.db"


@pytest.fixture
def store(path: Path) -> Iterator[SqliteStore]:
    with SqliteStore(path) as store:
        yield store
