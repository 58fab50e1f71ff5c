"""Owners of an epoch and producers of one name: the newer fences the older, whatever the older was doing."""

import os
import subprocess
import sys
import textwrap
from collections.abc import Callable, Sequence
from typing import Any

import pytest

from penstock.errors import ConditionFailed
from penstock.log import EndOffset, Epoch
from penstock.log.kafka import Commit, KafkaLog
from penstock.log.kafka.appending import Appending, Order
from penstock.log.kafka.messages import Outgoing
from penstock.log.kafka.transaction import Landed, Overtaken, Undecided, Writer
from services.kafka import Cluster

Opener = Callable[..., KafkaLog]
Finish = Callable[[Appending, Order, Sequence[Landed], Sequence[Commit]], list[Outgoing]]


@pytest.fixture
def shop(log: KafkaLog) -> KafkaLog:
    log.create_topic("orders", "id BIGINT NOT NULL")
    return log


def ids(log: KafkaLog) -> list[int]:
    return [entry.value["id"] for entry in log.read("orders")]  # type: ignore[index,call-overload]


def before_the_commit(monkeypatch: pytest.MonkeyPatch, act: Callable[[], object]) -> None:
    """Does something once, when the records of the next append lie in Kafka and are not committed yet."""
    finished: Finish = Appending._finished
    acts = [act]

    def finish(self: Appending, order: Order, landed: Sequence[Landed], before: Sequence[Commit]) -> list[Outgoing]:
        if acts:
            acts.pop()()
        return finished(self, order, landed, before)

    monkeypatch.setattr(Appending, "_finished", finish)


def test_an_owner_that_is_overtaken_in_the_middle_of_an_append_keeps_nothing(
    shop: KafkaLog, open_log: Opener, monkeypatch: pytest.MonkeyPatch
) -> None:
    newer = open_log()
    mine = shop.raise_epoch("owner")
    before_the_commit(monkeypatch, lambda: newer.raise_epoch("owner"))
    with pytest.raises(ConditionFailed, match='epoch 1 of "owner" is over'):
        shop.append("orders", [{"id": 1}], expect=[Epoch("owner", mine)])
    newer.append("orders", [{"id": 2}], expect=[Epoch("owner", mine + 1)])
    with pytest.raises(ConditionFailed):
        shop.append("orders", [{"id": 3}], expect=[Epoch("owner", mine)])
    newer.append("orders", [{"id": 4}], expect=[Epoch("owner", mine + 1)])
    assert ids(shop) == [2, 4]


def test_two_producers_of_one_name_append_a_sequence_once(
    shop: KafkaLog, open_log: Opener, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = open_log()
    before_the_commit(monkeypatch, lambda: other.append("orders", [{"id": 1}], producer="p", sequence=1))
    assert shop.append("orders", [{"id": 1}], producer="p", sequence=1).repeated
    assert ids(shop) == [1]


def test_an_append_sees_who_came_between_its_look_and_its_records(
    shop: KafkaLog, open_log: Opener, monkeypatch: pytest.MonkeyPatch
) -> None:
    other, check = open_log(), Appending._check_ends

    def late(self: Appending, order: Order) -> None:
        check(self, order)
        if order.ends:
            other.append("orders", [{"id": 1}])

    monkeypatch.setattr(Appending, "_check_ends", late)
    with pytest.raises(ConditionFailed, match="does not end at 0"):
        shop.append("orders", [{"id": 2}], expect=[EndOffset("orders", 0, 0)])
    assert ids(shop) == [1]


DYING = """
    import os, sys
    from penstock.log.kafka import KafkaLog
    from penstock.log.kafka.appending import Appending
    from penstock.log.kafka.transaction import Writer

    setattr(*{"records": (Appending, "_finished"), "facts": (Writer, "_commit")}[sys.argv[3]], lambda *_: os._exit(7))
    log = KafkaLog.open(sys.argv[1], prefix=sys.argv[2], settings={"transaction.timeout.ms": 7000})
    log.append("orders", [{"id": 1}, {"id": 2}], producer=sys.argv[4], sequence=1)
"""


def dies_after(what: str, kafka: Cluster, prefix: str, producer: str) -> None:
    """Another process appends records 1 and 2 and dies when its records, or also its facts, have landed."""
    program = [sys.executable, "-c", textwrap.dedent(DYING), kafka.servers, prefix, what, producer]
    assert subprocess.run(program, env=dict(os.environ), check=False).returncode == 7


@pytest.mark.parametrize("what", ["records", "facts"])
def test_a_process_that_dies_before_its_commit_leaves_nothing_and_holds_nobody_up(
    shop: KafkaLog, kafka: Cluster, prefix: str, what: str
) -> None:
    dies_after(what, kafka, prefix, "p")
    shop.append("orders", [{"id": 1}, {"id": 2}], producer="p", sequence=1)
    assert ids(shop) == [1, 2]


def test_a_commit_behind_the_open_transaction_of_a_dead_process_is_not_overlooked(
    shop: KafkaLog, open_log: Opener, kafka: Cluster, prefix: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    said: list[str] = []
    other = open_log(say=said.append)
    before_the_commit(monkeypatch, lambda: dies_after("facts", kafka, prefix, "dead"))
    shop.append("orders", [{"id": 3}], producer="p", sequence=1)
    assert other.append("orders", [{"id": 3}], producer="p", sequence=1).repeated
    assert ids(shop) == [3]


def test_an_append_whose_end_is_unknown_is_looked_for_even_if_others_take_the_id_meanwhile(
    shop: KafkaLog, monkeypatch: pytest.MonkeyPatch
) -> None:
    commit, take_over, left = Writer._commit, Writer.take_over, ["commit", "take over"]

    def untold(self: Writer, producer: Any, landed: Sequence[Landed]) -> None:
        commit(self, producer, landed)
        if "commit" in left:
            left.remove("commit")
            raise Undecided(landed)

    def taken(self: Writer) -> None:
        if left == ["take over"]:
            left.clear()
            raise Overtaken
        take_over(self)

    monkeypatch.setattr(Writer, "_commit", untold)
    monkeypatch.setattr(Writer, "take_over", taken)
    assert shop.append("orders", [{"id": 1}], producer="p", sequence=1).repeated
    assert (ids(shop), left) == ([1], [])


def test_an_append_that_takes_longer_than_a_transaction_may_says_so(
    shop: KafkaLog, open_log: Opener, monkeypatch: pytest.MonkeyPatch
) -> None:
    said: list[str] = []
    slow = open_log(say=said.append, settings={"transaction.timeout.ms": 1000})
    before_the_commit(monkeypatch, lambda: shop.client.settled_end(shop.prefix + "orders", 0))
    slow.append("orders", [{"id": 1}])
    assert ids(shop) == [1]
    assert [text.partition(" was given up")[0] for text in said if "transaction.timeout.ms" in text] == [
        "an append of 1 records"
    ]
