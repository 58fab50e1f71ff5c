"""Netting: what the changes of many frames add up to, so that each row is written once.

Rows and keys are known by their identity. What one frame brings and a later one takes away again never reaches
PostgreSQL. That each change fits the one before it is seen here; that the first one
fits what the table holds is seen there.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from penstock.views.postgres.identities import Runs, hashed, identities, identity, is_row
from penstock.views.postgres.wires import Numbers, valid
from penstock.views.step import Change, View


@dataclass(frozen=True)
class Part:
    """Changes of a view in the order of the log, each with its frame."""

    view: View
    old: pa.StructArray
    new: pa.StructArray
    frames: Numbers

    @staticmethod
    def of(view: View, changes: Sequence[tuple[int, Change]]) -> "Part":
        """The changes; in a bag, of a frame's rows those that come go first: one that comes and leaves does no harm."""
        old = pa.concat_arrays([change.old for _, change in changes])
        new = pa.concat_arrays([change.new for _, change in changes])
        frames = np.repeat([frame for frame, _ in changes], [len(change) for _, change in changes])
        if not view.key and old.null_count < len(old):
            order = np.lexsort((valid(old), frames))
            chosen = pa.array(order)
            return Part(view, old.take(chosen), new.take(chosen), frames[order])
        return Part(view, old, new, frames)


class Unfit(Exception):
    """A change that does not fit: its number in the part, and the row that is there instead, if that is known."""

    def __init__(self, at: int, there: int | None = None) -> None:
        super().__init__(at)
        self.at = at
        self.there = there


class OtherKey(Unfit):
    """A row is replaced by one with another key."""


class Nameless(Unfit):
    """A deletion that does not say which row leaves."""


@dataclass(frozen=True)
class Keyed:
    """For each key: its identity, that of the row that must be there, that of the row that comes, the number of the
    latter (-1: none comes), and the number of the key's first change.
    """

    keys: Numbers
    olds: Numbers
    news: Numbers
    at: Numbers
    firsts: Numbers

    def first_of(self, key: bytes) -> int:
        return int(self.firsts[self.keys == identity(key)][0])


def keyed(part: Part) -> Keyed:
    olds, old_keys = identities(part.view, part.old)
    news, new_keys = identities(part.view, part.new)
    named = [old or new or b"" for old, new in zip(old_keys, new_keys, strict=True)]
    keys = hashed(named)
    runs = Runs.of(keys)
    _check_fit(olds, news, runs, _misnamed(named, new_keys))
    firsts, lasts = runs.firsts, runs.lasts
    there = is_row(olds[firsts]) | is_row(news[lasts])
    firsts, lasts = firsts[there], lasts[there]
    at = np.where(is_row(news[lasts]), lasts, -1)
    return Keyed(keys[firsts], olds[firsts], news[lasts], at, firsts)


def _misnamed(named: Sequence[bytes], new_keys: Sequence[bytes | None]) -> Unfit | None:
    """The first change that has no key, or two."""
    if named == new_keys:
        return None
    for at, (key, new) in enumerate(zip(named, new_keys, strict=True)):
        if not key:
            return Nameless(at)
        if new is not None and new != key:
            return OtherKey(at)
    return None


def _check_fit(olds: Numbers, news: Numbers, runs: Runs, misnamed: Unfit | None) -> None:
    """Refuses the first change that has no one key, or that does not fit the change of its key before it."""
    after, before = runs.neighbours()
    unfit = np.flatnonzero(olds[after] != news[before])
    if len(unfit):
        least = unfit[np.argmin(after[unfit])]
        at, last = int(after[least]), int(before[least])
        if misnamed is None or at < misnamed.at:
            raise Unfit(at, last if is_row(news[[last]])[0] else -1)
    if misnamed is not None:
        raise misnamed


@dataclass(frozen=True)
class Bagged:
    """For each row, once for each time that it comes: its identity, by how much it is more or less, how many must be
    there, the number of its row (-1: it leaves); and the identities of all changes, with their weights.
    """

    rows: Numbers
    counts: Numbers
    needs: Numbers
    at: Numbers
    all: Numbers
    weights: Numbers

    def first_too_much(self, row: bytes, there: int) -> int:
        """The number of the change that takes away one that is not there, of so many that are."""
        left = there + np.cumsum(np.where(self.all == identity(row), self.weights, 0))
        return int(np.flatnonzero(left < 0)[0])


def bagged(part: Part) -> Bagged:
    came = valid(part.new)
    weights = np.where(came, 1, -1)
    rows, _ = identities(part.view, part.new if came.all() else _either(part, came))
    runs = Runs.of(rows)
    sums = _sums(weights[runs.order], runs)
    counts = sums[runs.ends - 1]
    needs = -np.minimum(np.minimum.reduceat(sums, runs.starts), 0)
    values = np.maximum.reduceat(np.where(came[runs.order], runs.order, -1), runs.starts)
    comes, leaves = np.repeat(np.arange(len(counts)), np.maximum(counts, 0)), np.flatnonzero(needs)
    return Bagged(
        rows[runs.firsts[np.concatenate([comes, leaves])]],
        np.concatenate([np.ones_like(comes), np.minimum(counts[leaves], 0)]),
        np.concatenate([np.zeros_like(comes), needs[leaves]]),
        np.concatenate([values[comes], np.full_like(leaves, -1)]),
        rows,
        weights,
    )


def _sums(weights: Numbers, runs: Runs) -> Numbers:
    """Running sums, in each run anew."""
    whole: Numbers = np.cumsum(weights)
    before = whole[runs.starts] - weights[runs.starts]
    found: Numbers = whole - np.repeat(before, runs.ends - runs.starts)
    return found


def _either(part: Part, came: Numbers) -> pa.StructArray:
    both = pa.concat_arrays([part.new, part.old])
    return both.take(pa.array(np.arange(len(came)) + np.where(came, 0, len(came))))
