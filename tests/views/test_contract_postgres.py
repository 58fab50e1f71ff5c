"""PostgresStore keeps the contract."""

from collections import Counter
from collections.abc import Callable, Iterator

import pytest

from penstock.views import Store
from penstock.views.postgres import PostgresStore
from services.postgres import Server
from tests.views.contract import *  # noqa: F403
from tests.views.contract_leaving import *  # noqa: F403
from tests.views.postgres import contents_in


@pytest.fixture
def open_store(postgres: Server, schema: str) -> Iterator[Callable[[], PostgresStore]]:
    opened: list[PostgresStore] = []

    def open_() -> PostgresStore:
        opened.append(PostgresStore(postgres.url(), schema))
        return opened[-1]

    yield open_
    for store in opened:
        store.close()


@pytest.fixture
def contents(postgres: Server, schema: str) -> Callable[[Store, str], Counter[str]]:
    return lambda _, view: contents_in(postgres.url(), schema, view)
