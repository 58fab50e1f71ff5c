"""The generator: events depend on their numbers alone, kinds come in their proportions, and some keys are hot."""

import numpy as np
import pytest

from benchmarks.nexmark.events import (
    ACTIVE_PERSONS,
    FIRST_AUCTION,
    FIRST_PERSON,
    HOT_SPAN,
    IN_FLIGHT,
    Shape,
    events,
    last_auction,
    last_person,
)

FIRST, COUNT = 1_000_000, 50_000
"""Far from the start, where there are few persons and auctions to choose from."""


def column(kind: str, name: str) -> np.ndarray:
    found: np.ndarray = events(FIRST, COUNT, Shape())[kind][name].to_numpy()
    return found


def numbers(kind: str) -> np.ndarray:
    """Of the events of a kind: of fifty the first is a person, three are auctions, the others bids."""
    every = np.arange(FIRST, FIRST + COUNT)
    low, high = {"auction": (1, 4), "bid": (4, 50)}[kind]
    return every[(every % 50 >= low) & (every % 50 < high)]


def test_events_depend_on_their_number_alone() -> None:
    whole, half = events(0, 1000, Shape()), events(400, 600, Shape())
    for kind, table in half.items():
        assert table.equals(whole[kind].slice(len(whole[kind]) - len(table)))
    assert not events(0, 1000, Shape(seed=2))["bid"].equals(whole["bid"])


def test_of_fifty_events_one_is_a_person_and_three_are_auctions() -> None:
    found = events(FIRST, COUNT, Shape())
    assert {kind: len(table) for kind, table in found.items()} == {"person": 1_000, "auction": 3_000, "bid": 46_000}


def test_half_of_the_bids_are_for_the_hot_auction_and_the_others_for_one_of_the_newest() -> None:
    newest, chosen = last_auction(numbers("bid")), column("bid", "auction") - FIRST_AUCTION
    hot = chosen == newest // HOT_SPAN * HOT_SPAN
    assert hot.mean() == pytest.approx(0.5, abs=0.02)
    assert (newest - chosen)[~hot].max() == IN_FLIGHT
    assert (chosen <= newest).all()


@pytest.mark.parametrize(("kind", "role", "place"), [("bid", "bidder", 1), ("auction", "seller", 0)])
def test_three_quarters_of_bidders_and_sellers_are_hot(kind: str, role: str, place: int) -> None:
    newest, chosen = last_person(numbers(kind)), column(kind, role) - FIRST_PERSON
    hot = chosen == newest // HOT_SPAN * HOT_SPAN + place
    assert hot.mean() == pytest.approx(0.75, abs=0.02)
    others = (newest - chosen)[~hot]
    assert others.min() == 0 and 0.9 * ACTIVE_PERSONS < others.max() <= ACTIVE_PERSONS


def test_prices_are_spread_evenly_over_six_powers_of_ten() -> None:
    powers = np.floor(np.log10(column("bid", "price") / 100))
    assert [float((powers == power).mean()) for power in range(6)] == pytest.approx([1 / 6] * 6, abs=0.01)
