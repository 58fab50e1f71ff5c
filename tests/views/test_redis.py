"""RedisStore keeps the contract, passes the kit, and survives its server's death."""

import shutil
from collections import Counter
from collections.abc import Callable, Iterable
from contextlib import suppress
from itertools import count
from pathlib import Path
from random import Random
from threading import Timer
from typing import Any

import pytest
import redis as client

from penstock.errors import ViewError
from penstock.log import Log
from penstock.views import Position, Store, catch_up
from penstock.views.redis import RedisStore, rows_in
from penstock.views.testing import check_store
from services.redis import Server
from tests.effort import SOAK
from tests.texts import refused
from tests.views.contract import *  # noqa: F403
from tests.views.contract_leaving import *  # noqa: F403
from tests.views.redis import rows_of
from tests.views.shop import VIEWS, Declared, Shop, Story, counted, folded, spend

KILLS = 60 if SOAK else 4


@pytest.fixture
def open_store(redis: Server, prefix: str) -> Callable[[], RedisStore]:
    return lambda: RedisStore(redis.url, prefix)


@pytest.fixture
def contents(redis: Server, prefix: str) -> Callable[[Store, str], Counter[str]]:
    return lambda _, view: counted(rows_of(redis, prefix, view))


def test_the_kit_is_passed(redis: Server, prefix: str) -> None:
    def rows(_: Store, view: str) -> Iterable[Any]:
        return rows_of(redis, prefix, view)

    check_store(lambda: RedisStore(redis.url, prefix), rows, kills=KILLS)


def test_a_row_is_found_by_its_key(log: Log, shop: Shop, redis: Server, prefix: str) -> None:
    shop.batch(spend=[(None, spend("Bern", 2, "2.50")), (None, spend(None, 1))])
    catch_up(log, "shop", RedisStore(redis.url, prefix))
    with client.Redis.from_url(redis.url, decode_responses=True) as asked:
        found = asked.hgetall(f'{prefix}:spend:"Bern"')
        assert {**found, "_penstock": ""} == {"city": "Bern", "orders": "2", "spend": "2.50", "_penstock": ""}
        assert asked.hget(f"{prefix}:spend:null", "city") is None
        assert asked.hget(f"{prefix}:spend:null", "orders") == "1"


def test_names_that_the_store_needs_are_refused(log: Log, redis: Server, prefix: str) -> None:
    Shop(log, views={"v": Declared("id INT, _penstock INT", key=("id",))}).announce()
    with RedisStore(redis.url, prefix) as store:
        with pytest.raises(ViewError, match='column "_penstock" of view "v" cannot be kept in Redis'):
            catch_up(log, "shop", store)
        assert store.position() is None
    with pytest.raises(ViewError, match='cannot begin with "shop~eu"'):
        RedisStore(redis.url, "shop~eu")


def test_strings_of_any_bytes_and_numbers_beyond_numbers_are_kept(log: Log, redis: Server, prefix: str) -> None:
    shop = Shop(log, views={"v": Declared("s STRING, d DOUBLE, b BINARY, t ARRAY<STRING>, y BOOLEAN", key=("s",))})
    shop.announce()
    rows: list[dict[str, Any]] = [
        {"s": "a\0b", "d": float("inf"), "b": b"\x00\xff", "t": ["x", None], "y": True},
        {"s": "5", "d": float("nan"), "b": None, "t": [], "y": False},
        {"s": None, "d": -1.5, "b": b"", "t": None, "y": None},
    ]
    shop.batch(v=[(None, row) for row in rows])
    catch_up(log, "shop", RedisStore(redis.url, prefix))
    assert counted(rows_of(redis, prefix, "v")) == counted(rows)


def test_a_server_that_is_killed_again_and_again_loses_nothing(
    log: Log, shop: Shop, redis: Server, prefix: str
) -> None:
    story, chance, store = Story(shop, seed=7), Random(7), RedisStore(redis.url, prefix)
    for kill in range(KILLS):
        if kill == KILLS // 2:
            shop = Shop(log, lineage=2)
            story = Story(shop, seed=8)
            story.go_on(20)
            shop.announce()
        story.go_on(chance.randrange(1, 30))
        catch_up(log, "shop", store, together=chance.choice([1, 7, 500]))
        redis.kill()
        story.go_on(3)
        with pytest.raises(ViewError, match="cannot be reached") as error:
            catch_up(log, "shop", store)
        assert ":penstock@" not in str(error.value)
        redis.start()
    catch_up(log, "shop", store)
    for view in VIEWS:
        assert counted(rows_of(redis, prefix, view)) == folded(log, shop.topic(view))
    with client.Redis.from_url(redis.url) as asked:
        assert not [name for name in asked.scan_iter() if name.startswith(f"{prefix}~".encode())]


def test_a_server_that_is_killed_while_it_is_written_to_holds_all_views_of_one_moment(
    log: Log, shop: Shop, redis: Server, prefix: str
) -> None:
    story, chance, store = Story(shop, seed=9), Random(9), RedisStore(redis.url, prefix)
    for _ in range(KILLS):
        story.go_on(40, rows=6)
        kill = Timer(chance.uniform(0, 0.004), redis.kill)
        with suppress(ViewError):
            catch_up(log, "shop", store, together=1, on_step=started_at(chance.randrange(1, 12), kill))
        kill.join()
        redis.start()
        position = store.position()
        for view in VIEWS if position else ():
            until = position.frame if position else 0
            assert counted(rows_of(redis, prefix, view)) == folded(log, shop.topic(view), until=until)
    catch_up(log, "shop", store)
    for view in VIEWS:
        assert counted(rows_of(redis, prefix, view)) == folded(log, shop.topic(view))


def started_at(step: int, timer: Timer) -> Callable[[Position], None]:
    """Who is told of steps starts the timer at that one."""
    left = count(1)
    return lambda _: timer.start() if next(left) == step else None


def test_a_server_that_has_lost_its_last_writes_is_told_again(
    log: Log, shop: Shop, redis: Server, prefix: str, tmp_path: Path
) -> None:
    story, store, files = Story(shop, seed=10), RedisStore(redis.url, prefix), redis.folder / "appendonlydir"
    story.go_on(10)
    catch_up(log, "shop", store)
    before = store.position()
    redis.stop()
    shutil.copytree(files, tmp_path / "before")
    redis.start()
    story.go_on(10)
    catch_up(log, "shop", store)
    redis.kill()
    shutil.rmtree(files)
    shutil.copytree(tmp_path / "before", files)
    redis.start()
    assert store.position() == before
    catch_up(log, "shop", store)
    for view in VIEWS:
        assert counted(rows_of(redis, prefix, view)) == folded(log, shop.topic(view))


def test_what_is_not_held_any_more_is_not_in_the_files_either(log: Log, shop: Shop, redis: Server, prefix: str) -> None:
    shop.batch(spend=[(None, spend("somewhere else", 1))])
    shop.batch(spend=[(spend("somewhere else", 1), None)])
    with RedisStore(redis.url, prefix) as store:
        catch_up(log, "shop", store, together=1)
        assert "somewhere else" in written_by(redis)
        store.purge()
    assert "somewhere else" not in written_by(redis)


def written_by(server: Server) -> str:
    files = [each for each in server.folder.rglob("*") if each.suffix in (".aof", ".rdb")]
    return "".join(each.read_bytes().decode(errors="replace") for each in files)


def test_a_view_that_never_stands_still_cannot_be_read(
    log: Log, shop: Shop, redis: Server, prefix: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    catch_up(log, "shop", RedisStore(redis.url, prefix))
    moving = iter(range(1000))
    monkeypatch.setattr("penstock.views.redis.reading.read_position", lambda *_: next(moving))
    with refused("views/redis-restless", url=redis.url.replace(":penstock@", ":***@")):
        rows_in(redis.url, prefix, "spend")
