"""ParquetStore keeps the contract, for views that only grow."""

from collections import Counter
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest

from penstock.log import Log
from penstock.views import Store
from penstock.views.parquet import ParquetStore
from tests.log.disks import QuickDisk
from tests.views.contract import *  # noqa: F403
from tests.views.files import contents_of
from tests.views.shop import FILES, Shop


@pytest.fixture
def shop(log: Log) -> Shop:
    shop = Shop(log, views=FILES)
    shop.announce()
    return shop


@pytest.fixture
def open_store(path: Path) -> Callable[[], ParquetStore]:
    return partial(ParquetStore, path, disk=QuickDisk())


@pytest.fixture
def contents(path: Path) -> Callable[[Store, str], Counter[str]]:
    return lambda _, view: contents_of(path, view, FILES[view])
