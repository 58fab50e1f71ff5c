"""Paces: what all have reached is the least of what each has, never goes back, and is the same for every delay whether
it was followed from the beginning or from any snapshot.
"""

import json
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from penstock.log.pace import NONE, Pace, Reached, pace_json, pace_of
from tests.effort import examples
from tests.log.paces import Model

MEMBERS, SCOPES, DELAYS = ("a", "b", "c"), ("", "x", "y"), (None, 0, 3, 10)
times = st.integers(0, 40)
members = st.sampled_from(MEMBERS)
events = st.one_of(
    st.tuples(st.just("bring"), members, times),
    st.tuples(st.just("announce"), members, times),
    st.tuples(st.just("join"), members, times | st.just(NONE)),
    st.tuples(st.just("leave"), members),
    st.tuples(st.just("rest"), members, st.sampled_from(SCOPES)),
)


@examples(300)
@given(st.lists(events, max_size=25), st.sets(st.integers(0, 24)))
def test_a_pace_is_the_plain_rule_for_every_delay_and_scope(happened: list[Any], snapshots: set[int]) -> None:
    pace, model = Pace(), Model(DELAYS, SCOPES)
    for number, event in enumerate(happened):
        getattr(pace, event[0])(*event[1:])
        model.take(*event)
        if number in snapshots:
            pace = pace_of(pace.members, json.loads(json.dumps(pace_json(pace))))
        assert {each: pace.level(*each) for each in model.levels} == model.levels


def test_peaks_that_were_passed_are_forgotten() -> None:
    pace = Pace({"a": Reached()})
    for time in range(100):
        pace.bring("a", time)
        pace.join(f"b{time}", time)
        pace.leave(f"b{time}")
    assert [len(peaks) for peaks in pace.peaks.values()] == [1] and pace.level(5, "any") == 94
