"""PostgreSQL as the store of a pipeline: kept while it runs, and read by commands."""

import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from penstock.app.keeping import kept
from penstock.errors import PenstockError
from penstock.log import Log
from penstock.model.stores import OnPostgres
from services.postgres import Server
from tests.cli.conftest import Penstock
from tests.views.postgres import contents_in
from tests.views.shop import Shop, counted, spend

SQL = """
    SET store = '{url}?schema={schema}';
    CREATE TABLE people (name STRING, age INT);
    CREATE VIEW spend AS SELECT 1 AS one FROM people;
    CREATE VIEW names AS SELECT name, age FROM people;
"""


@pytest.fixture
def shop(tmp_path: Path) -> Iterator[Shop]:
    with Log.open(tmp_path / "shop" / ".penstock" / "log") as log:
        shop = Shop(log)
        shop.announce()
        yield shop


def soon(holds: Callable[[], bool]) -> bool:
    until = time.monotonic() + 20
    while not holds() and time.monotonic() < until:
        time.sleep(0.01)
    return holds()


def failed(error: PenstockError) -> None:
    pytest.fail(str(error))


def test_a_server_that_is_away_is_told_of_once_and_caught_up_with(shop: Shop, postgres: Server, schema: str) -> None:
    where, told = OnPostgres(postgres.url(), schema), list[PenstockError]()
    shop.batch(spend=[(None, spend("Bern", 1))])
    with kept(shop.log, "shop", where, failed):
        pass
    postgres.kill()
    with kept(shop.log, "shop", where, told.append):
        shop.batch(spend=[(None, spend("Genf", 1))])
        assert soon(lambda: bool(told))
        postgres.start()
    assert contents_in(postgres.url(), schema, "spend") == counted([spend("Bern", 1), spend("Genf", 1)])
    assert [error.primary for error in told] == [f'the store "{where}" cannot be reached']


def test_a_view_in_postgresql_is_printed(
    shop: Shop, postgres: Server, schema: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "shop" / "pipeline.sql").write_text(SQL.format(url=postgres.url(), schema=schema))
    shop.batch(spend=[(None, spend("Bern", 1)), (None, spend("Zug", 2))])
    with kept(shop.log, "shop", OnPostgres(postgres.url(), schema), failed):
        pass
    monkeypatch.chdir(tmp_path / "shop")
    ran = Penstock(tmp_path, monkeypatch).run("view", "spend", "--where", "orders > 1", "--format", "json")
    assert (ran.code, ran.err) == (0, "")
    assert ran.lines == ['{"city": "Zug", "orders": 2, "spend": "1.00"}']


def test_a_view_that_is_not_there_yet_says_so(
    shop: Shop, postgres: Server, schema: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "shop" / "pipeline.sql").write_text(SQL.format(url=postgres.url(), schema=schema))
    monkeypatch.chdir(tmp_path / "shop")
    ran = Penstock(tmp_path, monkeypatch).run("view", "spend")
    assert ran.code == 1 and "There are no views yet." in ran.err and ":penstock@" not in ran.err
