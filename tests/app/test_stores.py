"""Stores by where they are."""

from pathlib import Path

import pytest

from penstock.app.stores import position_of, remove
from penstock.model.stores import OnPostgres, OnRedis, store_of
from penstock.views import SqliteStore
from tests.texts import refused


def test_without_the_driver_postgresql_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("penstock.app.stores.find_spec", lambda _: None)
    with refused("app/no-psycopg"):
        position_of(OnPostgres("postgresql://ann:hunter2@db/views"), "shop")


def test_an_address_names_a_schema_and_hides_its_password() -> None:
    where = store_of("postgresql://ann:hunter2@db:5432/views?schema=shop&sslmode=require")
    assert where == OnPostgres("postgresql://ann:hunter2@db:5432/views?sslmode=require", "shop")
    assert str(where) == "postgresql://ann:***@db:5432/views?sslmode=require"
    assert "hunter2" not in repr(where)


def test_without_the_client_redis_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("penstock.app.stores.find_spec", lambda _: None)
    with refused("app/no-redis"):
        position_of(OnRedis("redis://:hunter2@cache/0"), "shop")


def test_an_address_of_redis_names_a_prefix_and_hides_its_password() -> None:
    where = store_of("rediss://:hunter2@cache:6379/3?prefix=shop:views&socket_timeout=5")
    assert where == OnRedis("rediss://:hunter2@cache:6379/3?socket_timeout=5", "shop:views")
    assert str(where) == "rediss://:***@cache:6379/3?socket_timeout=5"
    assert "hunter2" not in repr(where)


def test_a_store_in_a_file_is_taken_away_whole(tmp_path: Path) -> None:
    with SqliteStore(tmp_path / "views"):
        remove(tmp_path / "views")
    assert list(tmp_path.iterdir()) == []
