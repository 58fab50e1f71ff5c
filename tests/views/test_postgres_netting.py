"""Netting: the changes of many frames add up to what they do one by one, and the first that does not fit is found."""

from collections import Counter
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.schema import arrow_schema, parse_schema
from penstock.views.postgres.netting import Part, Unfit, bagged, keyed
from penstock.views.step import View

SCHEMA = parse_schema("city STRING, n INT")
TYPE = pa.struct(list(arrow_schema(SCHEMA)))
KEYED, BAG = View("spend", SCHEMA, key=("city",)), View("spend", SCHEMA)
ROWS = st.tuples(st.sampled_from(["", "Bern", "Thun", None]), st.sampled_from([None, 1, 2]))
Row = tuple[str | None, int | None]


def part(view: View, changes: list[tuple[Row | None, Row | None]]) -> Part:
    old, new = (pa.array([_named(row) for row in side], TYPE) for side in zip(*changes, strict=True))
    return Part(view, old, new, np.zeros(len(changes), int))


def _named(row: Row | None) -> dict[str, Any] | None:
    return None if row is None else dict(zip(SCHEMA.names, row, strict=True))


@st.composite
def of_keys(draw: Any) -> list[tuple[Row | None, Row | None]]:
    """Changes of keys, of which some do not fit the one before."""
    found = []
    there: dict[str | None, Row | None] = {}
    for city, n in draw(st.lists(ROWS, min_size=1, max_size=12)):
        new = draw(st.sampled_from([(city, n), (city, 3), None]))
        old = there.get(city) if draw(st.integers(0, 9)) else (city, 4)
        if old is not None or new is not None:
            found.append((old, new))
            there[city] = new
    return found or [(None, ("Bern", 1))]


def one_by_one(changes: list[tuple[Row | None, Row | None]]) -> dict[Any, tuple[Any, int]] | int:
    """For each key what must be there and the number of what comes; or the number of the first that does not fit."""
    net: dict[Any, tuple[Any, int]] = {}
    for at, (old, new) in enumerate(changes):
        city = (old or new or ("",))[0]
        before = net.get(city)
        if before is not None and (changes[before[1]][1] if before[1] >= 0 else None) != old:
            return at
        net[city] = old if before is None else before[0], at if new is not None else -1
    return {city: each for city, each in net.items() if each != (None, -1)}


@given(of_keys())
def test_changes_of_keys_add_up(changes: list[tuple[Row | None, Row | None]]) -> None:
    want = one_by_one(changes)
    if isinstance(want, int):
        with pytest.raises(Unfit) as unfit:
            keyed(part(KEYED, changes))
        assert unfit.value.at == want
        return
    net = keyed(part(KEYED, changes))
    assert net.at.tolist() == [at for _, at in want.values()]
    cities = [(changes[first][0] or changes[first][1] or ("",))[0] for first in net.firsts]
    assert cities == list(want)
    assert [changes[first][0] for first in net.firsts] == [old for old, _ in want.values()]


@given(st.lists(st.tuples(ROWS, st.booleans()), min_size=1, max_size=12))
def test_changes_of_a_bag_add_up(told: list[tuple[Row, bool]]) -> None:
    net = bagged(part(BAG, [(None, row) if comes else (row, None) for row, comes in told]))
    want: Counter[Row] = Counter()
    least: Counter[Row] = Counter()
    for row, comes in told:
        want[row] += 1 if comes else -1
        least[row] = min(least[row], want[row])
    names = {bytes(each): row for each, (row, _) in zip(net.all.tolist(), told, strict=True)}
    found: Counter[Row] = Counter()
    needs: Counter[Row] = Counter()
    for row, count, need, at in zip(net.rows.tolist(), net.counts, net.needs, net.at, strict=True):
        found[names[bytes(row)]] += int(count)
        needs[names[bytes(row)]] += int(need)
        assert at < 0 or told[at] == (names[bytes(row)], True)
    assert {row: n for row, n in found.items() if n} == {row: n for row, n in want.items() if n}
    assert {row: n for row, n in needs.items() if n} == {row: -n for row, n in least.items() if n}


def test_no_changes_add_up_to_none() -> None:
    none = pa.array([], TYPE)
    by_key = keyed(Part(KEYED, none, none, np.zeros(0, int)))
    bag = bagged(Part(BAG, none, none, np.zeros(0, int)))
    found = [by_key.keys, by_key.olds, by_key.news, by_key.at, by_key.firsts]
    found += [bag.rows, bag.counts, bag.needs, bag.at, bag.all, bag.weights]
    assert [len(each) for each in found] == [0] * 11
