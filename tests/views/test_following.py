"""Following: a store reads on from where it stands, in the order of the log, and nothing that is not its own."""

import shutil
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from threading import Event, Thread
from time import monotonic, sleep

import pytest

from penstock.errors import ViewError
from penstock.log import Limits, Log
from penstock.views import Position, SqliteStore, ViewReader, catch_up, follow
from tests.views.shop import VIEWS, Declared, Shop, Story, counted, folded, name, spend


def contents(path: Path, view: str) -> Counter[str]:
    with ViewReader(path) as reader:
        return counted(reader.rows(view))


def assert_right(log: Log, path: Path, lineage: int = 1) -> None:
    for view in VIEWS:
        assert contents(path, view) == folded(log, f"shop.{lineage}.{view}")


def refusal(act: Callable[[], object]) -> str:
    with pytest.raises(ViewError) as error:
        act()
    return str(error.value)


def test_before_anything_is_current_there_is_nothing_to_apply(log: Log, store: SqliteStore) -> None:
    assert catch_up(log, "shop", store) is None
    Shop(log).batch(spend=[(None, spend("Bern", 1))])
    assert catch_up(log, "shop", store) is None


def test_batches_before_the_announcement_count(log: Log, store: SqliteStore, path: Path) -> None:
    shop = Shop(log)
    Story(shop, seed=1).go_on(5)
    frame = shop.announce()
    assert catch_up(log, "shop", store) == Position(log.identity, 1, frame, batch=4, until=5)
    assert_right(log, path)


def test_every_position_is_told_in_order(log: Log, shop: Shop, store: SqliteStore) -> None:
    Story(shop, seed=2).go_on(7)
    told: list[Position] = []
    catch_up(log, "shop", store, on_step=told.append, together=3)
    assert [position.batch for position in told] == [None, 0, 1, 2, 3, 4, 5, 6]
    assert told[-1] == store.position()


def test_other_pipelines_and_lineages_are_passed_over(log: Log, shop: Shop, store: SqliteStore, path: Path) -> None:
    stories = [Story(shop, seed=3)]
    for pipeline, lineage in (("mall", 1), ("shop", 2)):
        other = Shop(log, pipeline=pipeline, lineage=lineage)
        stories.append(Story(other, seed=4))
        if pipeline == "mall":
            other.announce()
    for _ in range(10):
        for story in stories:
            story.go_on(2)
        catch_up(log, "shop", store)
        assert_right(log, path)


def test_records_that_others_put_into_a_change_topic_do_not_count(
    log: Log, shop: Shop, store: SqliteStore, path: Path
) -> None:
    shop.batch(names=[(None, name("ann"))])
    log.append("shop.1.names", [name("intruder")])
    shop.batch(names=[(None, name("bob"))])
    log.append("shop.1.names", [name("intruder")], producer="shop/1x", sequence=1)
    catch_up(log, "shop", store)
    assert contents(path, "names") == counted([name("ann"), name("bob")])


def test_a_store_switches_when_another_lineage_becomes_current(
    log: Log, shop: Shop, store: SqliteStore, path: Path
) -> None:
    old, second = Story(shop, seed=5), Shop(log, lineage=2)
    new = Story(second, seed=6)
    for _ in range(3):
        old.go_on(3)
        new.go_on(2)
        catch_up(log, "shop", store)
        assert_right(log, path, lineage=1)
    second.announce()
    old.go_on(2)
    new.go_on(2)
    catch_up(log, "shop", store)
    assert_right(log, path, lineage=2)


def test_lineages_that_came_and_went_are_passed_over(log: Log, shop: Shop, store: SqliteStore, path: Path) -> None:
    catch_up(log, "shop", store)
    for lineage in (2, 3, 5):
        later = Shop(log, lineage=lineage)
        Story(later, seed=lineage).go_on(4)
        later.announce()
    told: list[Position] = []
    catch_up(log, "shop", store, on_step=told.append)
    assert [position.lineage for position in told] == [5]
    assert_right(log, path, lineage=5)


def test_a_view_that_a_lineage_no_longer_has_goes(log: Log, shop: Shop, store: SqliteStore, path: Path) -> None:
    shop.batch(names=[(None, name("ann"))])
    catch_up(log, "shop", store)
    second = Shop(log, lineage=2, views={"names": Declared("name STRING"), "more": Declared("n INT")})
    second.batch(names=[(None, {"name": "bob"})])
    second.announce()
    catch_up(log, "shop", store)
    with ViewReader(path) as reader:
        assert [view.name for view in reader.views()] == ["names", "more"]
        assert list(reader.rows("names")) == [{"name": "bob"}]


def test_sealed_frames_are_applied_like_others(tmp_path: Path, path: Path) -> None:
    with Log.open(tmp_path / "short", limits=Limits(stretch_frames=7)) as log, SqliteStore(path) as store:
        shop = Shop(log)
        shop.announce()
        story = Story(shop, seed=7)
        for _ in range(4):
            story.go_on(9)
            log.seal()
            story.go_on(2)
            catch_up(log, "shop", store)
            assert_right(log, path)


def test_a_frame_with_more_rows_than_are_taken_at_once_is_one_step(
    log: Log, shop: Shop, store: SqliteStore, path: Path
) -> None:
    many = [name(f"n{at}", at) for at in range(30_000)]
    shop.batch(names=[(None, row) for row in many])
    shop.batch(names=[(row, None) for row in many[:-1]])
    told: list[Position] = []
    catch_up(log, "shop", store, on_step=told.append)
    assert [position.batch for position in told] == [None, 0, 1]
    assert contents(path, "names") == counted(many[-1:])


def test_following_keeps_up_until_it_is_stopped(log: Log, shop: Shop, tmp_path: Path, path: Path) -> None:
    stop, told = Event(), list[Position]()

    def work() -> None:
        with Log.open(tmp_path / "log") as own, SqliteStore(path) as store:
            follow(own, "shop", store, stop=stop.is_set, on_step=told.append)

    thread = Thread(target=work)
    thread.start()
    story = Story(shop, seed=8)
    try:
        for batches in range(1, 20):
            story.go_on(1)
            deadline = monotonic() + 30
            while not told or told[-1].batch != batches - 1:
                assert monotonic() < deadline
                sleep(0.002)
            assert_right(log, path)
    finally:
        stop.set()
        thread.join()
    assert [position.batch for position in told] == [None, *range(19)]


def test_two_followers_of_one_store_do_no_harm(log: Log, shop: Shop, path: Path) -> None:
    story = Story(shop, seed=9)
    with SqliteStore(path) as one, SqliteStore(path) as other:
        for store in (one, other, other, one, one):
            story.go_on(3)
            catch_up(log, "shop", store)
            assert_right(log, path)


# What does not belong together


def test_a_store_of_another_log_is_refused(tmp_path: Path, shop: Shop, log: Log, path: Path) -> None:
    with SqliteStore(path) as store, Log.open(tmp_path / "other") as other:
        catch_up(log, "shop", store)
        Shop(other).announce()
        assert refusal(lambda: catch_up(other, "shop", store)) == (
            'the store is not one of pipeline "shop" in this log\n'
            f"  detail: It was filled from log {log.identity}; this one is {other.identity}.\n"
            "  hint:   Use the store that belongs to it, or take this one away: a new one fills itself from the log."
        )


def test_a_store_of_another_pipeline_is_refused(shop: Shop, log: Log, store: SqliteStore) -> None:
    shop.batch()
    catch_up(log, "shop", store)
    mall = Shop(log, pipeline="mall")
    mall.announce()
    assert "It has taken frame 3, which is not what the log holds there." in refusal(
        lambda: catch_up(log, "mall", store)
    )


def test_a_store_that_is_ahead_of_its_log_is_refused(tmp_path: Path, shop: Shop, log: Log, path: Path) -> None:
    shutil.copytree(log.folder, tmp_path / "older")
    shop.batch()
    with SqliteStore(path) as store, Log.open(tmp_path / "older") as older:
        catch_up(log, "shop", store)
        assert "It stands at frame 3; the log ends before frame 3." in refusal(lambda: catch_up(older, "shop", store))


def test_a_missing_batch_is_told(log: Log, shop: Shop, store: SqliteStore) -> None:
    shop.batch(names=[(None, name("ann"))])
    catch_up(log, "shop", store)
    shop.batches = 2
    frame = shop.batch(names=[(None, name("bob"))])
    assert refusal(lambda: catch_up(log, "shop", store)).startswith(
        f'batch 1 of "shop" is missing in the log\n  detail: Frame {frame} holds batch 2 of lineage 1.'
    )
    position = store.position()
    assert position is not None
    assert position.batch == 0
