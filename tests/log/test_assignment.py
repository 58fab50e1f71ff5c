"""Assignment: every partition to one member, fairly, and as few as possible change hands."""

from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from penstock.log.consumers.assignment import Partition, assigned

TOPICS = ("a", "b", "c")
members = st.integers(0, 6).map(lambda count: [f"m{each}" for each in range(count)])
partitions = st.lists(st.tuples(st.sampled_from(TOPICS), st.integers(0, 9)), unique=True)
subscriptions = st.dictionaries(st.sampled_from([f"m{each}" for each in range(6)]), st.sets(st.sampled_from(TOPICS)))


@given(
    subscriptions,
    partitions,
    st.dictionaries(
        partitions.flatmap(lambda p: st.sampled_from(p or [("a", 0)])),
        st.sampled_from([f"m{each}" for each in range(6)]),
    ),
)
def test_every_partition_goes_to_one_who_asked_for_its_topic(
    asked: dict[str, set[str]], every: list[Partition], before: dict[Partition, str]
) -> None:
    found = assigned({member: sorted(topics) for member, topics in asked.items()}, every, before)
    wanted = {each for each in every if any(each[0] in topics for topics in asked.values())}
    assert found.keys() == wanted
    assert all(each[0] in asked[member] for each, member in found.items())
    load = Counter(found.values())
    for each, member in found.items():
        assert all(load[member] - load[other] <= 1 for other, topics in asked.items() if each[0] in topics)


@given(members, partitions)
def test_who_asks_for_the_same_gets_as_much(who: list[str], every: list[Partition]) -> None:
    load = Counter(dict.fromkeys(who, 0))
    load.update(assigned(dict.fromkeys(who, TOPICS), every, {}).values())
    assert not who or max(load.values()) - min(load.values()) <= 1


@given(members, partitions)
def test_nothing_moves_when_nobody_comes_or_goes(who: list[str], every: list[Partition]) -> None:
    asked = dict.fromkeys(who, TOPICS)
    found = assigned(asked, every, {})
    assert assigned(asked, every, found) == found


@given(members.filter(bool), partitions)
def test_when_one_goes_only_its_own_move(who: list[str], every: list[Partition]) -> None:
    before = assigned(dict.fromkeys(who, TOPICS), every, {})
    after = assigned(dict.fromkeys(who[1:], TOPICS), every, before)
    assert all(after[each] == member for each, member in before.items() if member != who[0])


@given(members, partitions)
def test_when_one_comes_only_its_own_move(who: list[str], every: list[Partition]) -> None:
    before = assigned(dict.fromkeys(who, TOPICS), every, {})
    after = assigned(dict.fromkeys([*who, "new"], TOPICS), every, before)
    assert all(member in ("new", before.get(each)) for each, member in after.items())
