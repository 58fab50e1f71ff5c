"""The contract, third part: an append is one transaction, done once, under the conditions that it names."""

from threading import Thread
from typing import Any

import numpy as np
import pytest

from penstock.errors import ConditionFailed, LogError
from penstock.log import EndOffset, Epoch, Log
from penstock.log.records import Span
from tests.log.contract import Opener, orders, read_ids
from tests.texts import refused


def test_one_append_to_several_topics_is_one_transaction(shop: Log) -> None:
    shop.create_topic("payments", "id INT")
    done = shop.append_all({"orders": orders(1), "payments": [{"id": 1}, {"id": 2}]})
    assert done.spans == (Span("orders", 0, base=0, count=1), Span("payments", 0, base=0, count=2))
    assert min(e.appended_at for name in ("orders", "payments") for e in shop.read(name)) == done.appended_at


def test_a_misfit_in_one_topic_keeps_all_topics_as_they_were(shop: Log) -> None:
    shop.create_topic("payments", "id INT")
    with refused("log/misfit-in-second-topic"):
        shop.append_all({"orders": orders(1), "payments": [{"id": 1}, {"id": "two"}]})
    assert shop.ends("orders") == shop.ends("payments") == (0,)


def test_an_append_of_nothing_is_refused(shop: Log) -> None:
    with refused("log/append-of-nothing"):
        shop.append("orders", [])


def test_a_repeated_sequence_of_a_producer_is_not_appended_again(shop: Log, open_log: Opener) -> None:
    first = shop.append("orders", orders(1), producer="shop", sequence=7)
    shop.append("orders", orders(2), producer="other", sequence=7)
    shop.append("orders", orders(3), producer="shop", sequence=9)
    for log in (shop, open_log()):
        again = log.append("orders", orders(1), producer="shop", sequence=7)
        assert again.repeated
        assert (again.spans, again.appended_at) == (first.spans, first.appended_at)
    assert read_ids(shop) == [1, 2, 3]


def test_a_sequence_that_the_producer_skipped_is_refused(shop: Log) -> None:
    shop.append("orders", orders(1), producer="shop", sequence=9)
    with refused("log/sequence-skipped"):
        shop.append("orders", orders(2), producer="shop", sequence=8)


def test_an_empty_append_is_remembered_for_its_producer(shop: Log) -> None:
    assert shop.append_all({}, producer="shop", sequence=1).spans == ()
    assert shop.append_all({}, producer="shop", sequence=1).repeated


def test_a_producer_without_a_sequence_is_refused(shop: Log) -> None:
    with refused("log/producer-without-sequence"):
        shop.append("orders", orders(1), producer="shop")


@pytest.mark.parametrize(
    ("producer", "sequence", "primary"),
    [
        (5, 1, "a producer is named by a str, not by 5"),
        ("", 1, "a producer needs a name"),
        ("\ud800", 1, "a producer cannot be named"),
        ("shop", -1, "-1 is not a sequence"),
        ("shop", True, "True is not a sequence"),
        ("shop", 2**63, "9223372036854775808 is not a sequence"),
        ("shop", "1", "'1' is not a sequence"),
    ],
)
def test_a_producer_or_sequence_that_cannot_be_kept_is_refused(
    shop: Log, producer: Any, sequence: Any, primary: str
) -> None:
    with pytest.raises(LogError, match=primary):
        shop.append("orders", orders(1), producer=producer, sequence=sequence)
    assert shop.ends("orders") == (0,)


def test_a_sequence_may_be_any_kind_of_integer(shop: Log) -> None:
    shop.append("orders", orders(1), producer="shop", sequence=np.int64(3))  # type: ignore[arg-type]
    assert shop.append("orders", orders(1), producer="shop", sequence=3).repeated


def test_names_and_notes_that_no_reader_could_read_are_refused(shop: Log) -> None:
    with pytest.raises(LogError, match="an epoch is named by a str"):
        shop.raise_epoch(5)  # type: ignore[arg-type]
    for note in ({"lag": float("nan")}, {"name": "\ud800"}):
        with pytest.raises(LogError, match="the note cannot be written as JSON"):
            shop.append_all({"orders": orders(1)}, note=note)


def test_an_append_can_depend_on_where_a_partition_ends(shop: Log) -> None:
    shop.create_topic("payments", "id INT")
    shop.append("orders", orders(1), expect=[EndOffset("orders", 0, 0)])
    with pytest.raises(ConditionFailed, match='partition 0 of "orders" does not end at 0'):
        shop.append_all({"orders": orders(2), "payments": [{"id": 1}]}, expect=[EndOffset("orders", 0, 0)])
    assert read_ids(shop) == [1] and read_ids(shop, "payments") == []
    shop.append("orders", orders(3), expect=[EndOffset("orders", 0, shop.ends("orders")[0])])
    assert read_ids(shop) == [1, 3]


def test_an_append_of_an_old_epoch_is_refused_as_a_whole(shop: Log) -> None:
    assert shop.epoch("owner") == 0
    mine = shop.raise_epoch("owner")
    shop.append("orders", orders(1), expect=[Epoch("owner", mine)])
    assert shop.raise_epoch("owner") == shop.epoch("owner") == mine + 1
    with refused("log/epoch-over"):
        shop.append("orders", orders(2), expect=[EndOffset("orders", 0, shop.ends("orders")[0]), Epoch("owner", mine)])
    assert read_ids(shop) == [1]


def test_a_refused_append_does_not_use_up_its_sequence(shop: Log) -> None:
    with pytest.raises(ConditionFailed):
        shop.append("orders", orders(1), producer="shop", sequence=1, expect=[EndOffset("orders", 0, 5)])
    assert not shop.append("orders", orders(1), producer="shop", sequence=1).repeated


def test_threads_append_side_by_side(wide: Log) -> None:
    def append(name: int) -> None:
        for sequence in range(10):
            wide.append("orders", orders(name * 10 + sequence), producer=f"p{name}", sequence=sequence)

    threads = [Thread(target=append, args=(name,)) for name in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(read_ids(wide)) == list(range(40))
