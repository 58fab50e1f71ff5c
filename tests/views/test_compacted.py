"""Stores and readers over change topics that were compacted: what was before is one step."""

from collections import Counter
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from random import Random

import pytest

from penstock.errors import RecordsGone, ViewError
from penstock.log import Log
from penstock.log.retention import Retention
from penstock.views import SqliteStore, ViewReader, catch_up
from penstock.views.changelog import changes
from penstock.views.parquet import ParquetStore
from tests.effort import SOAK
from tests.log.disks import QuickDisk
from tests.texts import refused
from tests.views.shop import FILES, Shop, Story, counted, folded, name, spend


@pytest.fixture
def log(tmp_path: Path) -> Iterator[Log]:
    with Log.open(tmp_path / "log", disk=QuickDisk()) as log:
        yield log


def caught_up(log: Log, path: Path) -> dict[str, Counter[str]]:
    """What a store holds after it has read on."""
    with SqliteStore(path) as store, ViewReader(path) as reader:
        catch_up(log, "shop", store)
        return {view: counted(reader.rows(view).table.to_pylist()) for view in ("spend", "names")}


def right(shop: Shop) -> dict[str, Counter[str]]:
    return {view: folded(shop.log, shop.topic(view)) for view in ("spend", "names")}


def test_a_new_store_is_filled_from_what_is_left(log: Log, tmp_path: Path) -> None:
    shop = Shop(log)
    shop.announce()
    shop.batch(spend=[(None, spend("Bern", 1)), (None, spend("Zug", 1))], names=[(None, name("a"))])
    shop.batch(spend=[(spend("Bern", 1), spend("Bern", 2))], names=[(None, name("b"))])
    last = shop.batch(spend=[(spend("Zug", 1), None)], names=[(name("a"), None)])
    log.compact([shop.topic("spend")])
    assert [entry.replaces for entry in log.read(shop.topic("spend"))] == [None, None]
    assert caught_up(log, tmp_path / "new.sqlite") == right(shop)
    shop.batch(spend=[(spend("Bern", 2), spend("Bern", 3)), (None, spend("Zug", 7))], names=[(name("b"), None)])
    assert caught_up(log, tmp_path / "new.sqlite") == caught_up(log, tmp_path / "newer.sqlite") == right(shop)
    with ViewReader(tmp_path / "newer.sqlite") as reader:
        assert (position := reader.position()) is not None and (position.batch, position.frame) == (3, last + 3)


def test_the_difference_between_lineages_is_told_in_the_same_order(log: Log) -> None:
    shop = Shop(log)
    shop.announce()
    shop.batch(spend=[(None, spend("Bern", 1)), (None, spend("Zug", 1))])
    shop.batch(spend=[(spend("Bern", 1), spend("Bern", 2))])
    shop.batch(spend=[(spend("Bern", 2), spend("Bern", 1))])  # now it is the newest
    frame = Shop(log, lineage=2).announce()
    told = list(changes(log, "shop", "spend", frame))
    assert [change.weight for change in told] == [-1, -1]
    log.compact([shop.topic("spend")])
    assert list(changes(log, "shop", "spend", frame)) == told


@pytest.mark.parametrize("taken", range(5))
def test_a_store_inside_the_compacted_stretch_is_filled_anew_in_one_step(log: Log, tmp_path: Path, taken: int) -> None:
    shop = Shop(log)
    shop.announce()
    story = Story(shop, seed=taken)
    path = tmp_path / "store.sqlite"
    story.go_on(taken)
    assert caught_up(log, path) == right(shop)
    story.go_on(6)
    log.compact([shop.topic("spend")])
    story.go_on(3)
    steps: list[int | None] = []
    with SqliteStore(path) as store:
        catch_up(log, "shop", store, on_step=lambda position: steps.append(position.batch))
    assert steps == [taken + 5, *range(taken + 6, taken + 9)]
    assert caught_up(log, path) == right(shop)


@pytest.mark.parametrize("seed", range(40 if SOAK else 6))
def test_whenever_a_store_reads_and_the_topic_is_compacted_it_is_right(log: Log, tmp_path: Path, seed: int) -> None:
    chance = Random(seed)
    shop = Shop(log)
    shop.announce()
    story = Story(shop, seed)
    for _ in range(25):
        what = chance.randrange(5)
        if what < 2:
            story.go_on(chance.randrange(4))
        elif what == 2:
            log.compact([shop.topic("spend")])
        elif what == 3:
            log.seal()
        else:
            assert caught_up(log, tmp_path / f"{chance.randrange(3)}.sqlite") == right(shop)
    for store in range(3):
        assert caught_up(log, tmp_path / f"{store}.sqlite") == right(shop)
    assert not any(finding.damage for finding in log.check())


def test_a_lineage_that_was_current_before_it_was_compacted_is_replaced(log: Log, tmp_path: Path) -> None:
    first, second = Shop(log), Shop(log, lineage=2)
    first.announce()
    Story(first, 1).go_on(5)
    path = tmp_path / "store.sqlite"
    assert caught_up(log, path) == right(first)
    story = Story(second, 2)
    story.go_on(3)
    second.announce()
    story.go_on(3)
    log.compact([second.topic("spend"), first.topic("spend")])
    story.go_on(1)
    assert caught_up(log, path) == caught_up(log, tmp_path / "new.sqlite") == right(second)


def test_changes_from_the_beginning_are_those_of_one_step_and_then_as_they_came(log: Log) -> None:
    shop = Shop(log)
    shop.announce()
    story = Story(shop, 3)
    story.go_on(8)
    log.compact([shop.topic("spend")])
    middle = log.mark().next_frame
    story.go_on(4)
    for view in ("spend", "names"):
        rows: Counter[str] = Counter()
        for change in changes(log, "shop", view):
            rows[repr(change.row)] += change.weight
        assert +rows == right(shop)[view]
    assert {change.position.batch for change in changes(log, "shop", "spend") if change.place.frame < middle} == {7}
    assert [c.batch for c in changes(log, "shop", "spend", middle)] == [
        c.batch for c in changes(log, "shop", "spend") if c.place.frame >= middle
    ]


def test_changes_from_the_middle_of_what_is_compacted_are_refused(log: Log) -> None:
    shop = Shop(log)
    shop.announce()
    start = shop.batch(spend=[(None, spend("Bern", 1))])
    shop.batch(spend=[(spend("Bern", 1), spend("Bern", 2))])
    log.compact([shop.topic("spend")])
    with refused("views/compacted_changes"):
        list(changes(log, "shop", "spend", start + 1))


def test_a_view_that_is_kept_as_its_topic_is_read(log: Log) -> None:
    shop = Shop(log)
    shop.announce()
    Story(shop, 4).go_on(6)
    log.compact([shop.topic("spend")])
    with ViewReader.of_topic(log, "shop", "spend") as reader:
        assert counted(reader.rows("spend").table.to_pylist()) == right(shop)["spend"]


def test_files_are_filled_but_not_filled_anew(log: Log, tmp_path: Path) -> None:
    shop = Shop(log, views=FILES)
    shop.announce()
    story = Story(shop, 5)
    story.go_on(3)
    catch_up(log, "shop", ParquetStore(tmp_path / "old"), kept="files")
    story.go_on(3)
    log.compact([shop.topic("spend")])
    catch_up(log, "shop", ParquetStore(tmp_path / "new"), kept="files")
    with pytest.raises(ViewError, match="the changes are compacted"):
        catch_up(log, "shop", ParquetStore(tmp_path / "old"), kept="files")


def test_a_store_is_told_of_changes_that_are_kept_no_longer(log: Log, tmp_path: Path) -> None:
    shop = Shop(log)
    shop.announce()
    Story(shop, 6).go_on(4)
    log.change_retention(shop.topic("spend"), Retention(age=timedelta(0)))
    log.retain()
    with pytest.raises(RecordsGone, match="partition 0, offset 0 is kept no longer"):
        caught_up(log, tmp_path / "store.sqlite")
