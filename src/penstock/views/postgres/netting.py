"""Netting: what the changes of many frames add up to, so that each row is written once.

Rows and keys are known by their identity, a hash of 128 bits of their exact values. What one frame brings and a later
one takes away again never reaches PostgreSQL. That each change fits the one before it is seen here; that the first one
fits what the table holds is seen there.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import blake2b

import numpy as np
import pyarrow as pa

from penstock.schema import Schema
from penstock.views.postgres.types import Sent, sent
from penstock.views.postgres.wires import Numbers, rows_of, valid
from penstock.views.step import Change, View

Identity = bytes | None


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
    """For each key: the identity that must be there, that which comes, the number of its row (-1: none does), and the
    number of its first change.
    """

    keys: list[bytes]
    olds: list[Identity]
    news: list[Identity]
    at: list[int]
    first: dict[bytes, int]


def keyed(part: Part) -> Keyed:
    olds, old_keys = identities(part.view, part.old)
    news, new_keys = identities(part.view, part.new)
    net: dict[bytes, tuple[Identity, int, int]] = {}
    for at, (old, new, old_key, new_key) in enumerate(zip(olds, news, old_keys, new_keys, strict=True)):
        key = old_key or new_key
        if key is None:
            raise Nameless(at)
        if new_key is not None and new_key != key:
            raise OtherKey(at)
        before = net.get(key)
        if before is None:
            net[key] = old, at if new is not None else -1, at
        else:
            last = before[1]
            if (news[last] if last >= 0 else None) != old:
                raise Unfit(at, last)
            net[key] = before[0], at if new is not None else -1, before[2]
    found = [(_identity(key), *each) for key, each in net.items() if each[0] is not None or each[1] >= 0]
    return Keyed(
        [key for key, _, _, _ in found],
        [old for _, old, _, _ in found],
        [news[at] if at >= 0 else None for _, _, at, _ in found],
        [at for _, _, at, _ in found],
        {key: first for key, _, _, first in found},
    )


@dataclass(frozen=True)
class Bagged:
    """For each row, once for each time that it comes: its identity, by how much it is more or less, how many must be
    there, the number of its row (-1: it leaves); and all changes of each identity.
    """

    rows: list[bytes]
    counts: list[int]
    needs: list[int]
    at: list[int]
    all: list[Identity]
    weights: list[int]


def bagged(part: Part) -> Bagged:
    came = valid(part.new)
    weights = np.where(came, 1, -1).tolist()
    rows, _ = identities(part.view, part.new if came.all() else _either(part, came))
    net: dict[bytes, list[int]] = {}
    for at, (row, weight) in enumerate(zip(rows, weights, strict=True)):
        assert row is not None
        found = net.setdefault(row, [0, 0, -1])
        found[0] += weight
        found[2] = at if weight > 0 else found[2]  # where its values stand
        found[1] = min(found[1], found[0])
    staged: list[tuple[bytes, int, int, int]] = []
    for row, (count, least, at) in net.items():
        if count > 0:
            staged += [(row, 1, 0, at)] * count
        if least < 0:
            staged.append((row, min(count, 0), -least, -1))
    lists = [list(each) for each in zip(*staged, strict=True)] or [[], [], [], []]
    return Bagged(lists[0], lists[1], lists[2], lists[3], rows, weights)


def _either(part: Part, came: Numbers) -> pa.StructArray:
    both = pa.concat_arrays([part.new, part.old])
    return both.take(pa.array(np.arange(len(came)) + np.where(came, 0, len(came))))


def identities(view: View, rows: pa.StructArray) -> tuple[list[Identity], list[bytes | None]]:
    """The identity of each row, and the exact bytes of its key; None where there is no row."""
    count = len(rows)
    is_valid = valid(rows)
    if not is_valid.any():
        return [None] * count, [None] * count
    held = rows if is_valid.all() else rows.filter(pa.array(is_valid))
    columns = sent_columns(view.schema, held)
    names = (*view.key, *(name for name in view.schema.names if name not in view.key))
    laid = rows_of([columns[view.schema.names.index(name)].exact for name in names])
    whole: list[Identity] = [_identity(each) for each in laid.pieces(len(names))]
    keys: list[bytes | None] = [*laid.pieces(len(view.key))] if view.key else [None] * len(held)
    return _spread(whole, is_valid), _spread(keys, is_valid)


def sent_columns(schema: Schema, rows: pa.StructArray) -> list[Sent]:
    return [sent(column.type, array) for column, array in zip(schema.columns, rows.flatten(), strict=True)]


def _identity(data: bytes) -> bytes:
    return blake2b(data, digest_size=16).digest()


def _spread(found: list[Identity], is_valid: Numbers) -> list[Identity]:
    if len(found) == len(is_valid):
        return found
    spread: list[Identity] = [None] * len(is_valid)
    for at, each in zip(np.flatnonzero(is_valid).tolist(), found, strict=True):
        spread[at] = each
    return spread
