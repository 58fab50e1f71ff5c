"""Changes: what was there and what has changed since is what is there, at every place and across resets."""

from collections import Counter
from collections.abc import Iterator

import pytest

from penstock.errors import ViewError
from penstock.log import Log, Place
from penstock.views import changes
from penstock.views.changelog import RowChange
from tests.views.shop import Declared, Shop, Story, folded, name, spend


def told(found: Iterator[RowChange]) -> list[tuple[int | None, int, object]]:
    return [(each.batch, each.weight, next(iter(each.row.values()))) for each in found]


def summed(found: Iterator[RowChange], until: int) -> Counter[str]:
    rows: Counter[str] = Counter()
    for change in found:
        if change.position.frame <= until:
            rows[repr(change.row)] += change.weight
    assert min(rows.values(), default=0) >= 0
    return +rows


def test_a_change_of_a_key_takes_the_old_row_back_first(log: Log, shop: Shop) -> None:
    shop.batch(spend=[(None, spend("Bern", 1)), (None, spend("Zug", 1))])
    shop.batch(names=[(None, name("ann"))])
    shop.batch(spend=[(spend("Bern", 1), spend("Bern", 2)), (spend("Zug", 1), None)])
    found = list(changes(log, "shop", "spend"))
    assert [(each.batch, each.weight, each.row["city"], each.row["orders"]) for each in found] == [
        (0, +1, "Bern", 1),
        (0, +1, "Zug", 1),
        (2, -1, "Bern", 1),
        (2, +1, "Bern", 2),
        (2, -1, "Zug", 1),
    ]
    assert [each.index for each in found] == [0, 1, 0, 1, 2]


def test_reading_goes_on_after_any_change(log: Log, shop: Shop) -> None:
    Story(shop, seed=1).go_on(12)
    second = Shop(log, lineage=2)
    Story(second, seed=2).go_on(6)
    second.announce()
    everything = list(changes(log, "shop", "names"))
    for at, change in enumerate(everything):
        rest = list(changes(log, "shop", "names", Place(change.place.frame, change.place.index + 1)))
        assert rest == everything[at + 1 :]


def test_changes_before_the_lineage_was_announced_come_as_one(log: Log) -> None:
    shop = Shop(log)
    shop.batch(names=[(None, name("ann")), (None, name("bob"))])
    shop.batch(names=[(name("ann"), None)])
    assert told(changes(log, "shop", "names")) == []
    shop.announce()
    shop.batch(names=[(None, name("eve"))])
    assert told(changes(log, "shop", "names")) == [(1, +1, "bob"), (2, +1, "eve")]


def test_a_reset_is_the_difference_of_two_answers(log: Log, shop: Shop) -> None:
    shop.batch(names=[(None, name("ann")), (None, name("ann")), (None, name("bob"))])
    start = log.mark().next_frame
    second = Shop(log, lineage=2)
    second.batch(names=[(None, name("ann")), (None, name("eve"))])
    second.announce()
    shop.batch(names=[(None, name("late"))])
    assert told(changes(log, "shop", "names", start)) == [(0, -1, "ann"), (0, -1, "bob"), (0, +1, "eve")]


def test_a_reset_with_other_columns_replaces_all_rows(log: Log, shop: Shop) -> None:
    shop.batch(names=[(None, name("ann"))])
    second = Shop(log, lineage=2, views={"names": Declared("name STRING")})
    second.batch(names=[(None, {"name": "ann"})])
    second.announce()
    third = Shop(log, lineage=3, views={"other": Declared("n INT"), "names": Declared("n INT", store="topic")})
    third.announce()
    found = [(each.weight, each.row) for each in changes(log, "shop", "names")]
    assert found == [(1, name("ann")), (-1, name("ann")), (1, {"name": "ann"}), (-1, {"name": "ann"})]


@pytest.mark.parametrize("seed", range(4))
def test_the_changes_add_up_to_the_view_at_every_frame(seed: int, log: Log, shop: Shop) -> None:
    Story(shop, seed).go_on(15)
    second = Shop(log, lineage=2)
    story = Story(second, seed + 10)
    story.go_on(10)
    switch = second.announce()
    story.go_on(10)
    for view in ("spend", "names"):
        found = list(changes(log, "shop", view))
        for until in range(log.mark().next_frame):
            lineage = 2 if until >= switch else 1
            assert summed(iter(found), until) == folded(log, f"shop.{lineage}.{view}", until=until)


def test_changes_are_followed_until_stopped(log: Log, shop: Shop) -> None:
    found: list[RowChange] = []
    following = changes(log, "shop", "names", log.mark().next_frame, stop=lambda: len(found) >= 30)
    for at in range(30):
        shop.batch(names=[(None, name(f"n{at}"))])
        found.append(next(following))
    assert [each.row["name"] for each in found] == [f"n{at}" for at in range(30)]
    assert list(following) == []


def test_an_unknown_view_is_refused_at_once(log: Log, shop: Shop) -> None:
    with pytest.raises(ViewError, match="does not exist"):
        changes(log, "shop", "nams")


def test_a_pipeline_that_has_not_run_has_no_changes(log: Log) -> None:
    assert list(changes(log, "shop", "names")) == []
