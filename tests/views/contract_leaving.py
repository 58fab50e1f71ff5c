"""The contract of stores from which rows may leave: what `contract.py` says, and this."""

from penstock.log import Log
from tests.views.contract import Contents, Opener, steps_in, switched
from tests.views.shop import Shop, counted, name, spend


def test_rows_are_replaced_and_deleted(log: Log, shop: Shop, open_store: Opener, contents: Contents) -> None:
    store = switched(log, open_store())
    shop.batch(spend=[(None, spend("Bern", 1)), (None, spend(None, 5)), (None, spend("Zug", 1))])
    shop.batch(spend=[(spend("Bern", 1), spend("Bern", 2)), (spend(None, 5), spend(None, 6)), (spend("Zug", 1), None)])
    shop.batch(spend=[(spend(None, 6), None)])
    store.apply(steps_in(log))
    assert contents(store, "spend") == counted([spend("Bern", 2)])


def test_a_bag_keeps_equal_rows_and_loses_one_at_a_time(
    log: Log, shop: Shop, open_store: Opener, contents: Contents
) -> None:
    store = switched(log, open_store())
    shop.batch(names=[(None, name("ann", 1)), (None, name("ann", 1)), (None, name(None)), (None, name(None))])
    shop.batch(names=[(name("ann", 1), None), (name(None), None)])
    store.apply(steps_in(log))
    assert contents(store, "names") == counted([name("ann", 1), name(None)])
