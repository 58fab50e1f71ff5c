"""A store is kept up to date while something else is done, and a failing one is told of and tried again."""

import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from penstock.app.keeping import filed, kept
from penstock.errors import PenstockError
from penstock.log import Log
from penstock.views import ViewReader
from tests.views.files import contents_of
from tests.views.shop import FILES, Shop, counted, name, spend


@pytest.fixture
def shop(tmp_path: Path) -> Iterator[Shop]:
    with Log.open(tmp_path / "log") as log:
        shop = Shop(log)
        shop.announce()
        yield shop


def soon(holds: Callable[[], bool]) -> bool:
    until = time.monotonic() + 20
    while not holds() and time.monotonic() < until:
        time.sleep(0.01)
    return holds()


def cities(path: Path) -> list[str]:
    with ViewReader(path) as reader:
        return [row["city"] for row in reader.rows("spend")]


def failed(error: PenstockError) -> None:
    pytest.fail(str(error))


def holds_bern(path: Path) -> bool:
    try:
        return cities(path) == ["Bern"]
    except PenstockError:  # it is being made
        return False


def test_the_store_has_the_last_frame_when_the_work_is_done(shop: Shop, tmp_path: Path) -> None:
    with kept(shop.log, "shop", tmp_path / "views", failed):
        shop.batch(spend=[(None, spend("Bern", 1))])
    assert cities(tmp_path / "views") == ["Bern"]


def test_the_store_follows_meanwhile(shop: Shop, tmp_path: Path) -> None:
    with kept(shop.log, "shop", tmp_path / "views", failed):
        shop.batch(spend=[(None, spend("Bern", 1))])
        assert soon(lambda: holds_bern(tmp_path / "views"))


def test_a_store_that_fails_is_told_of_once_and_heals(shop: Shop, tmp_path: Path) -> None:
    path, told = tmp_path / "views", list[PenstockError]()
    path.write_bytes(b"this is no database, and long enough to say so " * 100)
    with kept(shop.log, "shop", path, told.append):
        shop.batch(spend=[(None, spend("Bern", 1))])
        assert soon(lambda: bool(told))
        path.unlink()
    assert [error.primary for error in told] == [f'the store "{path}" is damaged']
    assert cities(path) == ["Bern"]


def test_a_store_that_fails_to_the_end_is_an_error(shop: Shop, tmp_path: Path) -> None:
    path = tmp_path / "views"
    path.write_bytes(b"this is no database, and long enough to say so " * 100)
    with pytest.raises(PenstockError, match="is damaged"), kept(shop.log, "shop", path, lambda _: None):
        pass


def test_files_are_kept_beside_tables_and_their_troubles_are_told(shop: Shop, tmp_path: Path) -> None:
    second, path, told = Shop(shop.log, lineage=2, views=FILES), tmp_path / "files", list[PenstockError]()
    second.announce()
    path.write_text("in the way")
    with kept(shop.log, "shop", tmp_path / "views", failed), filed(shop.log, "shop", path, told.append):
        second.batch(names=[(None, name("ann", 3))])
        assert soon(lambda: bool(told))
        path.unlink()
    assert [error.primary for error in told] == [f'the store "{path}" cannot be used']
    assert contents_of(path, "names", FILES["names"]) == counted([name("ann", 3)])


def test_the_error_of_the_work_goes_before_that_of_the_store(shop: Shop, tmp_path: Path) -> None:
    path = tmp_path / "views"
    path.write_bytes(b"this is no database, and long enough to say so " * 100)
    with pytest.raises(KeyboardInterrupt), kept(shop.log, "shop", path, lambda _: None):
        raise KeyboardInterrupt
