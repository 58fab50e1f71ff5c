"""The contract of groups: what every log promises to groups of readers, whichever technology keeps them.

Used as contract.py is. Sessions are short here; what takes a rebalance is awaited.
"""

import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from penstock.errors import Fenced, LogError
from penstock.log import Log
from penstock.log.consumers import Group, Member, Terms
from tests.texts import refused

Opener = Callable[..., Log]
PATIENCE_SECONDS = 30
LONG = timedelta(seconds=PATIENCE_SECONDS)
PARTITIONS = 4


@pytest.fixture
def stock(log: Log) -> Log:
    """A log with the topic `items`, of four partitions, each with the records 0 to 4."""
    log.create_topic("items", "n BIGINT", partitions=PARTITIONS)
    for partition in range(PARTITIONS):
        log.append("items", [{"n": partition * 100 + each} for each in range(5)], partition=partition)
    return log


ALL = [partition * 100 + each for partition in range(PARTITIONS) for each in range(5)]


def polled(member: Member, count: int) -> list[int]:
    """So many records, awaited."""
    found: list[int] = []
    until = time.monotonic() + PATIENCE_SECONDS
    while len(found) < count and time.monotonic() < until:
        found += [entry.value["n"] for entry in member.poll(wait=timedelta(milliseconds=50))]  # type: ignore[index,call-overload]
    assert len(found) == count
    return sorted(found)


def settled(*members: Member) -> list[int]:
    """Polls all until every partition is read by one of them; how many each has."""
    until = time.monotonic() + PATIENCE_SECONDS
    while True:
        for member in members:
            member.poll(1)
        counts = [len(member.partitions) for member in members]
        if sum(counts) == PARTITIONS and max(counts) - min(counts) <= 1:
            return counts
        assert time.monotonic() < until, counts


def test_a_lone_member_reads_everything(stock: Log) -> None:
    with stock.group("g").join("items") as member:
        assert polled(member, 20) == ALL
        assert member.poll() == []
        assert member.partitions == [("items", each) for each in range(PARTITIONS)]


def test_records_of_a_partition_come_in_their_order(stock: Log) -> None:
    with stock.group("g").join("items") as member:
        found = [entry for _ in range(10) for entry in member.poll(3)]
    for partition in range(PARTITIONS):
        assert [entry.offset for entry in found if entry.partition == partition] == [0, 1, 2, 3, 4]


def test_no_poll_gives_more_than_its_limit(stock: Log) -> None:
    with stock.group("g").join("items") as member:
        sizes = [len(member.poll(7)) for _ in range(4)]
    assert sizes == [7, 7, 6, 0]


def test_a_poll_waits_for_records(stock: Log) -> None:
    with stock.group("g").join("items", terms=Terms(start="latest")) as member:
        begun = time.monotonic()
        assert member.poll(wait=timedelta(milliseconds=100)) == []
        assert time.monotonic() - begun >= 0.1
        stock.append("items", [{"n": 7}])
        assert polled(member, 1) == [7]


def test_members_share_the_partitions(stock: Log, open_log: Opener) -> None:
    group = stock.group("g")
    with group.join("items") as one, open_log().group("g").join("items") as other:
        assert settled(one, other) == [2, 2]
        assert {*one.partitions}.isdisjoint(other.partitions)
        with group.join("items") as third:
            assert sorted(settled(one, other, third)) == [1, 1, 2]


def test_what_a_member_leaves_goes_to_the_others(stock: Log) -> None:
    group = stock.group("g")
    with group.join("items") as stays:
        with group.join("items") as leaves:
            settled(stays, leaves)
        assert settled(stays) == [PARTITIONS]


def test_more_members_than_partitions_leave_some_idle(stock: Log) -> None:
    group = stock.group("g")
    members = [group.join("items") for _ in range(PARTITIONS + 1)]
    assert sorted(settled(*members)) == [0, 1, 1, 1, 1]
    for member in members:
        member.leave()


def test_a_group_goes_on_after_what_it_has_committed(stock: Log, open_log: Opener) -> None:
    with stock.group("g").join("items") as member:
        polled(member, 20)
        member.commit()
    stock.append("items", [{"n": 9}], partition=2)
    with open_log().group("g").join("items") as member:
        assert polled(member, 1) == [9]


def test_what_was_not_committed_comes_again(stock: Log) -> None:
    group = stock.group("g")
    with group.join("items") as member:
        polled(member, 20)
        member.commit({("items", 1): 5, ("items", 3): 2})
    with group.join("items") as member:
        assert polled(member, 13) == [0, 1, 2, 3, 4, 200, 201, 202, 203, 204, 302, 303, 304]


def test_every_group_gets_every_record(stock: Log) -> None:
    with stock.group("one").join("items") as one, stock.group("two").join("items") as two:
        assert polled(one, 20) == polled(two, 20) == ALL
        one.commit()
    assert sum(lag.records for lag in stock.group("one").lag()) == 0
    assert sum(lag.records for lag in stock.group("two").lag()) == 20


def test_a_group_may_begin_with_what_comes_next(stock: Log) -> None:
    with stock.group("g").join("items", terms=Terms(start="latest")):
        pass
    stock.append("items", [{"n": 7}])
    with stock.group("g").join("items", terms=Terms(start="latest")) as member:
        assert polled(member, 1) == [7]


def test_a_member_may_read_several_topics(stock: Log) -> None:
    stock.create_topic("others", "n BIGINT")
    stock.append("others", [{"n": -1}])
    with stock.group("g").join(["items", "others"]) as member:
        assert polled(member, 21) == [-1, *ALL]


def test_members_may_ask_for_different_topics(stock: Log) -> None:
    stock.create_topic("others", "n BIGINT")
    stock.append("others", [{"n": -1}])
    group = stock.group("g")
    with group.join(["items", "others"]) as both, group.join("items") as one:
        until = time.monotonic() + PATIENCE_SECONDS
        while len(both.partitions) + len(one.partitions) < 5 and time.monotonic() < until:
            both.poll(1)
            one.poll(1)
        assert ("others", 0) in both.partitions
        assert abs(len(both.partitions) - len(one.partitions)) == 1


def test_lag_is_what_is_after_the_committed_offset(stock: Log) -> None:
    group = stock.group("g")
    with group.join("items") as member:
        polled(member, 20)
        member.commit({("items", 0): 3})
        found = group.lag()
        assert [(lag.partition, lag.committed, lag.end, lag.records) for lag in found] == [
            (0, 3, 5, 2),
            (1, 0, 5, 5),
            (2, 0, 5, 5),
            (3, 0, 5, 5),
        ]
        assert {lag.member for lag in found} == {member.name}
        assert group.members() == {member.name: member.partitions}
    assert {lag.member for lag in group.lag()} == {None}


def test_a_member_is_asked_before_it_gives_partitions_up(stock: Log) -> None:
    group, revoked = stock.group("g"), list[Any]()

    def commit(partitions: Any) -> None:
        revoked.extend(partitions)
        one.commit()

    with group.join("items", revoked=commit) as one:
        polled(one, 20)
        with group.join("items") as other:
            settled(one, other)
            assert sorted([*revoked, *one.partitions]) == [("items", each) for each in range(PARTITIONS)]
            assert other.poll() == []
    assert sum(lag.records for lag in group.lag()) == 0


def test_nobody_reads_a_partition_before_it_was_given_up(stock: Log) -> None:
    group = stock.group("g")
    with group.join("items") as one:
        polled(one, 20)
        with group.join("items") as other:
            assert other.poll(wait=timedelta(milliseconds=100)) == []
            one.commit()
            settled(one, other)
            assert other.poll() == []


# Zombies


def quick_death(group: Group) -> tuple[Member, Member]:
    """A member that hangs, and one that has taken over what it had."""
    hangs = group.join("items", terms=Terms(session=timedelta(milliseconds=100), patience=timedelta(milliseconds=10)))
    polled(hangs, 20)
    other = group.join("items")
    settled(other)
    return hangs, other


def test_a_member_that_does_not_poll_for_too_long_loses_its_partitions(stock: Log) -> None:
    hangs, other = quick_death(stock.group("g"))
    with hangs, other:
        assert len(other.partitions) == PARTITIONS


def test_a_commit_of_a_member_that_lost_its_partitions_is_refused(stock: Log) -> None:
    hangs, other = quick_death(stock.group("g"))
    with hangs, other:
        since = f"since generation {stock.group('g').generation}"
        with refused("log/fenced-commit", hangs=hangs.name, other=other.name, since=since):
            hangs.commit({("items", 0): 5})
        with pytest.raises(Fenced):
            hangs.commit()
    assert sum(lag.records for lag in stock.group("g").lag()) == 20


def test_a_member_that_was_taken_for_dead_joins_again(stock: Log) -> None:
    hangs, other = quick_death(stock.group("g"))
    with hangs, other:
        assert settled(hangs, other) == [2, 2]


def test_a_partition_that_a_member_does_not_have_is_not_committed(stock: Log) -> None:
    group = stock.group("g")
    with group.join("items") as one, group.join("items") as other:
        settled(one, other)
        with pytest.raises(Fenced):
            one.commit({other.partitions[0]: 1})


@pytest.mark.parametrize(("partition", "offset"), [(0, 6), (0, -1), (9, 0)])
def test_an_offset_that_is_not_there_is_not_committed(stock: Log, partition: int, offset: int) -> None:
    with stock.group("g").join("items") as member:
        polled(member, 20)
        with pytest.raises(LogError, match="cannot be committed"):
            member.commit({("items", partition): offset})


def test_a_member_that_has_left_polls_no_more(stock: Log) -> None:
    member = stock.group("g").join("items")
    member.leave()
    member.leave()
    with pytest.raises(LogError, match="has left group"):
        member.poll()


def test_an_unknown_topic_is_not_joined(stock: Log) -> None:
    with pytest.raises(LogError, match='topic "item" does not exist'):
        stock.group("g").join("item")


# Replay


def after_reset(log: Log, *given: Any, **more: Any) -> list[int]:
    log.group("g").reset("items", *given, **more)
    return [lag.committed for lag in log.group("g").lag()]


def test_a_group_is_reset_to_the_beginning_and_the_end(stock: Log) -> None:
    assert after_reset(stock, "latest") == [5, 5, 5, 5]
    assert after_reset(stock, "earliest") == [0, 0, 0, 0]


def test_a_group_is_reset_to_an_offset_of_a_partition(stock: Log) -> None:
    after_reset(stock, "earliest")
    assert after_reset(stock, 3, partition=1) == [0, 3, 0, 0]
    with refused("log/reset-beyond"):
        stock.group("g").reset("items", 6, partition=1)


def test_a_group_is_reset_to_a_time(open_log: Opener) -> None:
    ticks = iter(range(1_000_000, 100_000_000, 1000))
    log = open_log(clock=lambda: next(ticks))
    log.create_topic("items", "n BIGINT", partitions=2)
    times = [log.append("items", [{"n": each}], partition=each % 2).appended_at for each in range(6)]
    assert after_reset(log, times[3]) == [2, 1]
    assert after_reset(log, datetime(2100, 1, 1, tzinfo=UTC)) == [3, 3]


def test_a_group_with_members_is_not_reset_nor_deleted(stock: Log) -> None:
    group = stock.group("g")
    with group.join("items") as member:
        with refused("log/reset-with-members", member=member.name):
            group.reset("items", "earliest")
        with pytest.raises(LogError, match="cannot be deleted while it has members"):
            group.delete()
    group.reset("items", "earliest")


def test_a_reset_group_reads_from_there(stock: Log) -> None:
    group = stock.group("g")
    with group.join("items") as member:
        polled(member, 20)
        member.commit()
    group.reset("items", 4, partition=2)
    with group.join("items") as member:
        assert polled(member, 1) == [204]


def test_a_deleted_group_begins_anew(stock: Log) -> None:
    group = stock.group("g")
    with group.join("items") as member:
        polled(member, 20)
        member.commit()
    group.delete()
    with refused("log/unknown-group"):
        group.lag()
    with group.join("items") as member:
        assert polled(member, 20) == ALL


def test_generations_rise(stock: Log) -> None:
    group = stock.group("g")
    found = []
    with group.join("items"):
        found.append(group.generation)
        with group.join("items"):
            found.append(group.generation)
        found.append(group.generation)
    group.reset("items", "latest")
    found.append(group.generation)
    assert found == sorted(set(found))


def test_groups_are_listed_by_name(stock: Log) -> None:
    assert stock.consumers.groups() == []
    for name in ("b", "a"):
        stock.group(name).reset("items", "earliest")
    assert [group.name for group in stock.consumers.groups()] == ["a", "b"]


@pytest.mark.parametrize("name", ["", "a b", ".x", "é", "x" * 101])
def test_a_name_that_is_no_group_name_is_refused(stock: Log, name: str) -> None:
    with pytest.raises(LogError, match="is not the name of a group"):
        stock.group(name)
