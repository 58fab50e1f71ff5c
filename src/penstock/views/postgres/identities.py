"""Identities: rows and keys as 128 bits, a hash of their exact values. Zeros are the identity of no row.

Identities of many rows are one array. `Runs` puts those that are equal side by side.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from hashlib import blake2b

import numpy as np
import pyarrow as pa

from penstock.schema import Schema
from penstock.views.postgres.types import Sent, sent
from penstock.views.postgres.wires import Numbers, rows_of, valid
from penstock.views.step import View

IDENTITY = np.dtype("V16")


def hashed(pieces: Iterable[bytes]) -> Numbers:
    """The identity of each; a hash that is copied is made sooner than a new one."""
    fresh = blake2b(digest_size=IDENTITY.itemsize).copy
    found = []
    for piece in pieces:
        each = fresh()
        each.update(piece)
        found.append(each.digest())
    return np.frombuffer(b"".join(found), IDENTITY)


def identity(data: bytes) -> Numbers:
    """One that is given as bytes, to compare others with."""
    return np.frombuffer(data, IDENTITY)


def is_row(identities: Numbers) -> Numbers:
    halves = _halves(identities)
    found: Numbers = (halves[:, 0] | halves[:, 1]) != 0
    return found


def identities(view: View, rows: pa.StructArray) -> tuple[Numbers, list[bytes | None]]:
    """The identity of each row, and the exact bytes of its key; None where there is no row."""
    whole = np.zeros(len(rows), IDENTITY)
    keys: list[bytes | None] = [None] * len(rows)
    is_valid = valid(rows)
    if not is_valid.any():
        return whole, keys
    held = rows if is_valid.all() else rows.filter(pa.array(is_valid))
    columns = sent_columns(view.schema, held)
    names = (*view.key, *(name for name in view.schema.names if name not in view.key))
    laid = rows_of([columns[view.schema.names.index(name)].exact for name in names])
    whole[is_valid] = hashed(laid.pieces(len(names)))
    if view.key:
        found = laid.pieces(len(view.key))
        return whole, [*found] if len(found) == len(rows) else _spread(found, is_valid)
    return whole, keys


def sent_columns(schema: Schema, rows: pa.StructArray) -> list[Sent]:
    return [sent(column.type, array) for column, array in zip(schema.columns, rows.flatten(), strict=True)]


@dataclass(frozen=True)
class Runs:
    """Where equal identities stand: `order` has the numbers of those of the first one, as they came, then of the next;
    `starts` is where in it each begins.
    """

    order: Numbers
    starts: Numbers

    @staticmethod
    def of(identities: Numbers) -> "Runs":
        first = _firsts(_halves(identities))
        order = np.argsort(first, kind="stable")
        return Runs(order, np.flatnonzero(_is_new(first[order][:, None])))

    @property
    def firsts(self) -> Numbers:
        found: Numbers = self.order[self.starts]
        return found

    @property
    def lasts(self) -> Numbers:
        found: Numbers = self.order[self.ends - 1]
        return found

    @property
    def ends(self) -> Numbers:
        return np.append(self.starts, len(self.order))[1:]

    def neighbours(self) -> tuple[Numbers, Numbers]:
        """The numbers of those that have an equal one before them, and of that one."""
        after = np.delete(np.arange(len(self.order)), self.starts)
        return self.order[after], self.order[after - 1]


def _halves(identities: Numbers) -> Numbers:
    return identities.view(np.uint64).reshape(-1, 2)


def _firsts(halves: Numbers) -> Numbers:
    """For each the number of the first that is equal."""
    order = np.lexsort(halves.T)
    starts = np.where(_is_new(halves[order]), np.arange(len(order)), 0)
    found = np.empty_like(order)
    found[order] = order[np.maximum.accumulate(starts)]
    return found


def _is_new(values: Numbers) -> Numbers:
    """Whether a row of values differs from the one before it."""
    found = np.ones(len(values), bool)
    found[1:] = (values[1:] != values[:-1]).any(axis=1)
    return found


def _spread(found: list[bytes], is_valid: Numbers) -> list[bytes | None]:
    spread: list[bytes | None] = [None] * len(is_valid)
    for at, each in zip(np.flatnonzero(is_valid).tolist(), found, strict=True):
        spread[at] = each
    return spread
