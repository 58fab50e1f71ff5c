"""Tables are kept in Redis where the address of the store says so, and are read from there."""

import pytest

from penstock.app.keeping import kept
from penstock.app.stores import position_of, reader_of
from penstock.errors import PenstockError
from penstock.log import Log
from penstock.model import declaration_text, pipeline_of
from penstock.model.stores import OnRedis
from services.redis import Server
from tests.views.shop import Shop, name, spend

PIPELINE = "SET store = '{url}?prefix={prefix}'; CREATE STREAM orders (id BIGINT);"


def failed(error: PenstockError) -> None:
    pytest.fail(str(error))


def test_tables_are_kept_in_redis_and_read_with_their_position(
    log: Log, shop: Shop, redis: Server, prefix: str
) -> None:
    where = pipeline_of(PIPELINE.format(url=redis.url, prefix=prefix)).options.store
    assert where == OnRedis(redis.url, prefix)
    with kept(log, "shop", where, failed):
        frame = shop.batch(spend=[(None, spend("Bern", 2)), (None, spend("Zug", 1))], names=[(None, name("ann"))] * 2)
    found = position_of(where, "shop")
    assert found is not None and found.frame == frame
    with reader_of(where, "shop", "spend") as reader:
        answer = reader.rows("spend", order=["city"])
        assert answer.position == found
        assert [row["city"] for row in answer] == ["Bern", "Zug"]
    with reader_of(where, "shop", "names") as reader:
        assert list(reader.rows("names")) == [name("ann")] * 2


def test_the_password_may_stand_in_the_environment(
    log: Log, shop: Shop, redis: Server, prefix: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    where = OnRedis(redis.url.replace(f":{redis.password}@", ""), prefix)
    monkeypatch.setenv("REDISCLI_AUTH", redis.password)
    with kept(log, "shop", where, failed):
        shop.batch(spend=[(None, spend("Bern", 2))])
    monkeypatch.setenv("REDISCLI_AUTH", "another")
    with pytest.raises(PenstockError, match="cannot be used") as error:
        position_of(where, "shop")
    assert "another" not in str(error.value)


def test_a_declaration_is_told_without_the_password() -> None:
    pipeline = pipeline_of(PIPELINE.format(url="redis://:hunter2@cache/0", prefix="shop"))
    assert "hunter2" not in declaration_text(pipeline)
    assert "redis://:***@cache/0" in declaration_text(pipeline)
