"""Persons, auctions and bids: the events of Nexmark, each a function of its number and the seed.

Of fifty events one is a person, three are auctions, the others bids. Half of the bids go to the newest hot auction and
three quarters of them come from a hot bidder; sellers are hot likewise. Times go on evenly.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

Numbers = np.ndarray[Any, Any]

PERSONS, AUCTIONS, OF = 1, 3, 50
FIRST_PERSON = FIRST_AUCTION = 1000
FIRST_CATEGORY, CATEGORIES = 10, 5
HOT_AUCTIONS, HOT_SELLERS, HOT_BIDDERS = 2, 4, 4
"""Of so many events all but one are of the hot one; which one is hot changes after every hundred."""
HOT_SPAN = 100
ACTIVE_PERSONS, IN_FLIGHT = 1000, 100
START = 1_704_067_200_000_000
NAMES = ("Peter", "Paul", "Luke", "John", "Saul", "Vicky", "Kate", "Julie", "Sarah", "Deiter", "Walter")
SURNAMES = ("Shultz", "Abrams", "Spencer", "White", "Bartels", "Walton", "Smith", "Jones", "Noris")
CITIES = (
    *("Phoenix", "Los Angeles", "San Francisco", "Boise", "Portland"),
    *("Bend", "Redmond", "Seattle", "Kent", "Cheyenne"),
)
STATES = ("AZ", "CA", "ID", "OR", "WA", "WY")
CHANNELS = ("Google", "Facebook", "Baidu", "Apple")


@dataclass(frozen=True)
class Shape:
    seed: int = 1
    events_per_second: int = 10_000


class Dice:
    """Random numbers that depend on the event's number alone: the same for every way to cut the events."""

    def __init__(self, numbers: Numbers, seed: int) -> None:
        self._numbers = numbers.astype(np.uint64) * np.uint64(0x9E3779B97F4A7C15) + np.uint64(seed)
        self._throw = 0

    def bits(self) -> Numbers:
        self._throw += 1
        x = self._numbers + np.uint64((self._throw * 0xD1B54A32D192ED03) & 0xFFFFFFFFFFFFFFFF)
        x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        return x ^ (x >> np.uint64(31))

    def below(self, most: int | Numbers) -> Numbers:
        return (self.bits() % np.asarray(most, dtype=np.uint64)).astype(np.int64)

    def price(self) -> Numbers:
        """Most are small: ten to the power of zero to six, in cents."""
        return np.round(10 ** (self.bits() / 2.0**64 * 6) * 100).astype(np.int64)


def events(first: int, count: int, shape: Shape) -> dict[str, pa.Table]:
    """The events from number `first` on, by kind; each has its number, so that their order is known."""
    numbers = np.arange(first, first + count, dtype=np.int64)
    at = START + numbers * 1_000_000 // shape.events_per_second
    offset = numbers % OF
    kinds = {"person": offset < PERSONS, "auction": (offset >= PERSONS) & (offset < PERSONS + AUCTIONS)}
    kinds["bid"] = offset >= PERSONS + AUCTIONS
    makers = {"person": persons, "auction": auctions, "bid": bids}
    return {kind: makers[kind](numbers[mask], at[mask], shape) for kind, mask in kinds.items()}


def last_person(numbers: Numbers) -> Numbers:
    """The number of the last person up to an event, from 0 on."""
    return np.floor_divide(numbers, OF)


def last_auction(numbers: Numbers) -> Numbers:
    before, within = numbers // OF * AUCTIONS, np.clip(numbers % OF - PERSONS, -1, AUCTIONS - 1)
    found: Numbers = before + within
    return found


def persons(numbers: Numbers, at: Numbers, shape: Shape) -> pa.Table:
    dice = Dice(numbers, shape.seed)
    name, surname, city = dice.below(len(NAMES)), dice.below(len(SURNAMES)), dice.below(len(CITIES))
    cards = [f"{n:016d}" for n in dice.below(10**16)]
    return pa.table(
        {
            "id": FIRST_PERSON + last_person(numbers),
            "name": [f"{NAMES[a]} {SURNAMES[b]}" for a, b in zip(name, surname, strict=True)],
            "email": [f"{NAMES[a].lower()}@{SURNAMES[b].lower()}.com" for a, b in zip(name, surname, strict=True)],
            "credit_card": [" ".join(card[i : i + 4] for i in range(0, 16, 4)) for card in cards],
            "city": [CITIES[each] for each in city],
            "state": [STATES[each] for each in dice.below(len(STATES))],
            "at": times(at),
        }
    )


def auctions(numbers: Numbers, at: Numbers, shape: Shape) -> pa.Table:
    dice = Dice(numbers, shape.seed)
    newest = last_person(numbers)
    hot = dice.below(HOT_SELLERS) > 0
    seller = np.where(hot, newest // HOT_SPAN * HOT_SPAN, newest - dice.below(np.minimum(newest, ACTIVE_PERSONS) + 1))
    first = dice.price()
    # It lasts as long as it takes until so many auctions were opened, up to twice that.
    span = IN_FLIGHT * OF // AUCTIONS * 1_000_000 // shape.events_per_second
    ids = FIRST_AUCTION + last_auction(numbers)
    return pa.table(
        {
            "id": ids,
            "item_name": [f"item {each}" for each in dice.below(100_000)],
            "description": [f"what auction {each} sells" for each in ids],
            "initial_bid": first,
            "reserve": first + dice.price(),
            "at": times(at),
            "expires": times(at + 1000 + dice.below(2 * span)),
            "seller": FIRST_PERSON + seller,
            "category": FIRST_CATEGORY + dice.below(CATEGORIES),
        }
    )


def bids(numbers: Numbers, at: Numbers, shape: Shape) -> pa.Table:
    dice = Dice(numbers, shape.seed)
    newest, person = last_auction(numbers), last_person(numbers)
    hot = dice.below(HOT_AUCTIONS) > 0
    auction = np.where(hot, newest // HOT_SPAN * HOT_SPAN, newest - dice.below(np.minimum(newest, IN_FLIGHT) + 1))
    eager = dice.below(HOT_BIDDERS) > 0
    other = person - dice.below(np.minimum(person, ACTIVE_PERSONS) + 1)
    bidder = np.where(eager, person // HOT_SPAN * HOT_SPAN + 1, other)
    channel = dice.below(10_000)
    hot_channel = dice.below(2) > 0
    names = np.where(hot_channel, channel % len(CHANNELS), len(CHANNELS) + channel)
    return pa.table(
        {
            "auction": FIRST_AUCTION + auction,
            "bidder": FIRST_PERSON + bidder,
            "price": dice.price(),
            "channel": [CHANNELS[n] if n < len(CHANNELS) else f"channel-{n - len(CHANNELS)}" for n in names],
            "url": [f"https://www.nexmark.com/a/b/{n % 997}/item.htm?query=1&channel_id={n}" for n in names],
            "at": times(at),
        }
    )


def times(micros: Numbers) -> pa.Array:
    return pa.array(micros, pa.timestamp("us", tz="UTC"))


def cut(count: int, size: int) -> Iterator[tuple[int, int]]:
    """The first number and the length of each stretch of at most `size` events."""
    for first in range(0, count, size):
        yield first, min(size, count - first)
