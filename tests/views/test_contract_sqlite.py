"""SqliteStore keeps the contract."""

from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from penstock.views import SqliteStore, Store, ViewReader
from tests.views.contract import *  # noqa: F403
from tests.views.contract_leaving import *  # noqa: F403
from tests.views.shop import counted


@pytest.fixture
def open_store(path: Path) -> Iterator[Callable[[], SqliteStore]]:
    opened: list[SqliteStore] = []

    def open_() -> SqliteStore:
        opened.append(SqliteStore(path))
        return opened[-1]

    yield open_
    for store in opened:
        store.close()


@pytest.fixture
def contents(path: Path) -> Callable[[Store, str], Counter[str]]:
    def rows(_: Store, view: str) -> Counter[str]:
        with ViewReader(path) as reader:
            return counted(reader.rows(view))

    return rows
