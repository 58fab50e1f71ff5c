"""The guide to stores does what it says."""

import re
from collections import Counter
from pathlib import Path
from typing import Any

from redis import Redis

from penstock.app.keeping import kept
from penstock.log import Log
from penstock.model import pipeline_of
from penstock.model.stores import OnPostgres, OnRedis
from penstock.views import catch_up
from services.postgres import Server
from services.redis import Server as RedisServer
from tests.views.postgres import asked
from tests.views.shop import Declared, Shop, Story, folded, spend

PAGE = (Path(__file__).parents[2] / "docs/guide-stores.md").read_text()
BLOCKS = re.findall(r"^```(sql|python)\n(.*?)^```$", PAGE, re.DOTALL | re.MULTILINE)


def test_the_pipeline_of_the_guide_has_a_store_and_an_index() -> None:
    pipeline = pipeline_of(next(text for language, text in BLOCKS if language == "sql"))
    assert pipeline.options.store == OnPostgres("postgresql://penstock@127.0.0.1:5432/postgres")
    assert pipeline.view("spend").options.index == (("orders",),)


def test_the_second_pipeline_of_the_guide_has_its_store_in_redis() -> None:
    pipeline = pipeline_of([text for language, text in BLOCKS if language == "sql"][1])
    assert pipeline.options.store == OnRedis("redis://127.0.0.1:6379/0")


def test_the_row_of_the_guide_is_found_in_redis(log: Log, shop: Shop, redis: RedisServer, prefix: str) -> None:
    shop.batch(spend=[(None, spend("Bern", 2)), (None, spend("Zug", 1))])
    with kept(log, "shop", OnRedis(redis.url, prefix), lambda _: None):
        pass
    found = re.search(r"^    HGETALL shop:(.*)$", PAGE, re.MULTILINE)
    assert found is not None
    with Redis.from_url(redis.url, decode_responses=True) as client:
        assert client.hget(f"{prefix}:{found[1]}", "orders") == "2"


def test_the_query_of_the_guide_is_answered(log: Log, postgres: Server, schema: str) -> None:
    views = {"spend": Declared("city STRING, orders BIGINT, spend DECIMAL(12,2)", key=("city",), index=(("orders",),))}
    shop = Shop(log, views=views)
    shop.announce()
    shop.batch(spend=[(None, spend("Bern", 2)), (None, spend("Zug", 1))])
    with kept(log, "shop", OnPostgres(postgres.url(), schema), lambda _: None):
        pass
    found = re.search(r"^    (SELECT .* FROM shop\.spend .*)$", PAGE, re.MULTILINE)
    assert found is not None
    assert [row[:2] for row in asked(postgres, found[1].replace("shop.", f'"{schema}".'))] == [("Bern", 2)]


def test_the_store_of_the_guide_keeps_its_promises() -> None:
    names: dict[str, object] = {}
    found = [text for language, text in BLOCKS if language == "python"]
    assert len(found) == 2
    for text in found:
        exec(text, names)


def test_the_store_of_the_guide_follows_a_log(log: Log, tmp_path: Path) -> None:
    names: dict[str, Any] = {}
    exec(next(text for language, text in BLOCKS if language == "python"), names)
    shop = Shop(log)
    shop.announce()
    Story(shop, seed=5).go_on(20)
    store = names["JsonFile"](tmp_path / "views.json")
    catch_up(log, "shop", store)
    again = names["JsonFile"](tmp_path / "views.json")
    for view in shop.views:
        assert Counter(again.held["views"][view]) == folded(log, shop.topic(view))
