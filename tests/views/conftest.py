"""What the tests of views share: a log, and the shop that writes into it."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from penstock.log import Log
from penstock.views import SqliteStore
from tests.views.shop import Shop

pytest.register_assert_rewrite("tests.views.contract", "tests.views.contract_leaving")


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
