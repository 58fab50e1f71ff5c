"""The contract: what every store of views promises, whichever technology keeps it.

A test file that defines the fixture `open_store` (a function that opens the test's store, again and again if asked, the
way a program does that was started anew) and the fixture `contents` (a function from a store and a view's name to its
rows, counted as `counted` does) and imports everything from here proves the contract for its store. What it promises
about rows that leave is in `contract_leaving.py`: a store of views that only grow has nothing to do with that, but
refuses it.
"""

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import replace

import pytest

from penstock.errors import ViewError
from penstock.log import Log
from penstock.views import Position, Step, Store, catch_up, current
from penstock.views.lineage import batches_between
from penstock.views.step import Lineage
from penstock.views.steps import steps_of, steps_until
from tests.views.shop import Shop, Story, counted, folded, name, spend

Opener = Callable[[], Store]
Contents = Callable[[Store, str], Counter[str]]


def lineage_of(log: Log) -> Lineage:
    lineage = current(log, "shop")
    assert lineage is not None
    return lineage


def steps_in(log: Log) -> list[Step]:
    """All steps of the current lineage that come after it became current."""
    lineage = lineage_of(log)
    batches = batches_between(log, lineage, lineage.frame, log.mark().next_frame, first=None)
    return [step for steps in steps_of(log, lineage, batches, views=lineage.views) for step in steps]


def switched(log: Log, store: Store) -> Store:
    lineage = lineage_of(log)
    store.switch(lineage, steps_until(log, lineage, lineage.frame, kept=lineage.views[0].kept))
    return store


def is_right(log: Log, store: Store, contents: Contents) -> bool:
    """Whether the store holds what the change topics say, at the position that it says it has."""
    position = store.position()
    assert position is not None
    topics = {view: f"shop.{position.lineage}.{view}" for view in ("spend", "names")}
    return all(contents(store, view) == folded(log, topic, until=position.frame) for view, topic in topics.items())


def test_a_new_store_has_no_position(open_store: Opener) -> None:
    assert open_store().position() is None


def test_a_switch_makes_empty_views_of_a_lineage_without_batches(
    log: Log, shop: Shop, open_store: Opener, contents: Contents
) -> None:
    store = switched(log, open_store())
    assert store.position() == Position(log.identity, 1, lineage_of(log).frame)
    assert contents(store, "spend") == contents(store, "names") == Counter()


def test_a_step_moves_all_views_and_the_position(log: Log, shop: Shop, open_store: Opener, contents: Contents) -> None:
    store = switched(log, open_store())
    frame = shop.batch(spend=[(None, spend("Bern", 1))], names=[(None, name("ann"))])
    store.apply(steps_in(log))
    assert store.position() == Position(log.identity, 1, frame, batch=0, until=1)
    assert contents(store, "spend") == counted([spend("Bern", 1)])
    assert contents(store, "names") == counted([name("ann")])


def test_a_step_without_changes_moves_the_position(log: Log, shop: Shop, open_store: Opener) -> None:
    store = switched(log, open_store())
    frame = shop.batch()
    store.apply(steps_in(log))
    assert store.position() == Position(log.identity, 1, frame, batch=0, until=1)


def test_steps_that_were_taken_are_passed_over(log: Log, shop: Shop, open_store: Opener, contents: Contents) -> None:
    store = switched(log, open_store())
    Story(shop, seed=1).go_on(12)
    steps = steps_in(log)
    for start in (0, 0, 3, 7, 2):
        store.apply(steps[start : start + 6])
        assert is_right(log, store, contents)
    assert store.position() == steps[-1].position


def test_a_step_that_does_not_fit_changes_no_view(log: Log, shop: Shop, open_store: Opener, contents: Contents) -> None:
    store = switched(log, open_store())
    shop.batch(spend=[(None, spend("Bern", 1))], names=[(None, name("ann"))])
    store.apply(steps_in(log))
    before = store.position()
    shop.batch(spend=[(None, spend("Genf", 1))], names=[(None, name("bob")), (name("eve"), None)])
    with pytest.raises(ViewError):
        store.apply(steps_in(log))
    assert store.position() == before
    assert contents(store, "spend") == counted([spend("Bern", 1)])
    assert contents(store, "names") == counted([name("ann")])


def test_steps_given_together_are_taken_together_or_not_at_all(
    log: Log, shop: Shop, open_store: Opener, contents: Contents
) -> None:
    store = switched(log, open_store())
    before = store.position()
    shop.batch(spend=[(None, spend("Bern", 1))])
    shop.batch(spend=[(spend("Bern", 7), spend("Bern", 2))])
    with pytest.raises(ViewError):
        store.apply(steps_in(log))
    assert (store.position(), contents(store, "spend")) == (before, Counter())


def test_a_step_of_another_lineage_is_refused(log: Log, shop: Shop, open_store: Opener) -> None:
    store = switched(log, open_store())
    shop.batch(spend=[(None, spend("Bern", 1))])
    step = steps_in(log)[0]
    with pytest.raises(ViewError):
        store.apply([replace(step, position=replace(step.position, lineage=2))])
    assert store.position() == Position(log.identity, 1, lineage_of(log).frame)


def test_a_store_that_is_opened_again_goes_on(log: Log, shop: Shop, open_store: Opener, contents: Contents) -> None:
    story = Story(shop, seed=2)
    for _ in range(5):
        story.go_on(4)
        store = open_store()
        catch_up(log, "shop", store, kept=lineage_of(log).views[0].kept)
        assert is_right(log, store, contents)
        assert store.position() == steps_in(log)[-1].position


def test_a_switch_folds_what_the_lineage_did_before(
    log: Log, shop: Shop, open_store: Opener, contents: Contents
) -> None:
    store = switched(log, open_store())
    Story(shop, seed=3).go_on(5)
    store.apply(steps_in(log))
    second = Shop(log, lineage=2, views=shop.views)
    Story(second, seed=4).go_on(9)
    frame = second.announce()
    switched(log, store)
    assert store.position() == Position(log.identity, 2, frame, batch=8, until=9)
    assert is_right(log, store, contents)


def test_a_switch_that_was_done_is_passed_over_without_reading(
    log: Log, shop: Shop, open_store: Opener, contents: Contents
) -> None:
    store = switched(log, open_store())
    shop.batch(spend=[(None, spend("Bern", 1))])
    store.apply(steps_in(log))

    def never() -> Iterator[Step]:
        raise AssertionError("the steps were read")
        yield

    store.switch(lineage_of(log), never())
    assert is_right(log, store, contents)


def test_a_switch_that_fails_changes_nothing(log: Log, shop: Shop, open_store: Opener, contents: Contents) -> None:
    store = switched(log, open_store())
    Story(shop, seed=5).go_on(5)
    store.apply(steps_in(log))
    before = store.position()
    second = Shop(log, lineage=2, views=shop.views)
    second.batch(names=[(None, name("ann"))])
    second.batch(names=[(name("bob"), None)])
    second.announce()
    with pytest.raises(ViewError):
        switched(log, store)
    assert store.position() == before
    assert is_right(log, store, contents)


def test_a_store_that_is_added_later_fills_itself(log: Log, shop: Shop, open_store: Opener, contents: Contents) -> None:
    Story(shop, seed=6).go_on(30)
    store = open_store()
    assert catch_up(log, "shop", store, kept=lineage_of(log).views[0].kept) == steps_in(log)[-1].position
    assert is_right(log, store, contents)
