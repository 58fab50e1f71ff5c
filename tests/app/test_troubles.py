"""Troubles of whole pipelines, in the words that people read."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from penstock.app.beginning import begin
from penstock.app.keeping import kept
from penstock.app.pipelines import HERE, Opened
from penstock.app.place import place_of
from penstock.app.verifying import check_same
from penstock.engine.lineage import begun
from penstock.log import Log
from penstock.model import pipeline_of
from penstock.views import SqliteStore, catch_up
from tests.texts import refused
from tests.views.shop import Shop

FINGERPRINT: dict[str, Any] = {"log": "the log's"}


@pytest.fixture
def shop(tmp_path: Path) -> Iterator[Shop]:
    with Log.open(tmp_path / "log") as log:
        shop = Shop(log)
        shop.announce()
        shop.batch()
        yield shop


def at(folder: Path) -> Opened:
    return Opened(place_of(folder), pipeline_of("CREATE TABLE bag (x BIGINT);", name="shop"), HERE)


def test_a_folder_that_cannot_be_made_is_told(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with refused("app/init-not-written", folder=tmp_path):
        begin(tmp_path / "file" / "shop")


def test_a_store_that_fails_in_a_new_way_is_told_as_it_is(
    shop: Shop, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object, **__: object) -> None:
        raise RuntimeError("something new")

    monkeypatch.setattr("penstock.app.keeping.catch_up", fail)
    with refused("app/store-failed", folder=tmp_path), kept(shop.log, "shop", tmp_path / "views", lambda _: None):
        pass


def test_a_pipeline_that_was_reset_is_verified_when_it_has_caught_up(shop: Shop, tmp_path: Path) -> None:
    store = place_of(tmp_path).store
    store.parent.mkdir()
    with SqliteStore(store) as views:
        catch_up(shop.log, "shop", views)
    begun(place_of(tmp_path).home, shop.log, "shop", FINGERPRINT)
    with refused("app/verify-not-caught-up", folder=tmp_path):
        check_same(at(tmp_path), shop.log, FINGERPRINT)


def test_a_store_of_another_log_is_not_verified(shop: Shop, tmp_path: Path) -> None:
    store = place_of(tmp_path).store
    store.parent.mkdir()
    with SqliteStore(store) as views:
        catch_up(shop.log, "shop", views)
    with Log.open(tmp_path / "other") as other:
        begun(place_of(tmp_path).home, other, "shop", FINGERPRINT)
        with refused("app/verify-other-log", this=other.identity, that=shop.log.identity):
            check_same(at(tmp_path), other, FINGERPRINT)
