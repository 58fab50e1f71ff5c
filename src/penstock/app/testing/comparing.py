"""Comparing: what a view holds, or how it changed, against what a case says; a difference as lines to read."""

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from penstock.app.testing.values import Misfit, alike, cast, comparable, shown
from penstock.schema import Schema, type_text

Row = tuple[Any, ...]
MOST_ROWS = 20


@dataclass(frozen=True)
class Late:
    """Rows of a stream that came too late for a view in a step, each as often as it missed a window."""

    stream: str
    schema: Schema
    rows: Counter[Row]


@dataclass(frozen=True)
class Seen:
    """A view after a step: how often each row occurs, and by how much that has changed; what came too late for it, from
    every stream whose rows can. Rows are comparable; arrays in the `unordered` columns are equal in any order.
    """

    schema: Schema
    rows: Counter[Row]
    changes: Counter[Row]
    unordered: Collection[str] = ()
    late: Sequence[Late] = ()


def row_of(schema: Schema, values: Sequence[Any]) -> tuple[Any, ...]:
    """The values of a case as values of the columns; `Misfit` says which one is not."""
    if len(values) != len(schema.columns):
        raise Misfit(f"a row has {len(schema.columns)} values ({', '.join(schema.names)}), not {len(values)}")
    found = []
    for column, value in zip(schema.columns, values, strict=True):
        try:
            found.append(cast(column.type, value))
        except Misfit as misfit:
            raise Misfit(f'column "{column.name}" is {type_text(column.type)}: {misfit}') from None
    return tuple(found)


def wanted(seen: Seen, rows: Iterable[Sequence[Any]]) -> Iterator[Row]:
    """The rows of a case as those of the view can be compared with them."""
    return (counted(seen.schema, row, unordered=seen.unordered) for row in rows)


def counted(schema: Schema, values: Sequence[Any], *, unordered: Collection[str]) -> Row:
    """The values as a row that can be counted."""
    cells = zip(schema.names, row_of(schema, values), strict=True)
    return tuple(comparable(value, unordered=name in unordered) for name, value in cells)


def difference(view: str, want: Counter[Row], found: Counter[Row], schema: Schema) -> list[str]:
    """Nothing where the two are equal; else a heading, and the rows: - is missing, + is too much."""
    missing, unexpected = _apart(want, found)
    if not missing and not unexpected:
        return []
    heading = f"{view}: {len(missing)} missing, {len(unexpected)} too many"
    rows = [("-", row) for row in missing[:MOST_ROWS]] + [("+", row) for row in unexpected[:MOST_ROWS]]
    more = max(len(missing), len(unexpected)) > MOST_ROWS
    ending = [f"  and more: the first {MOST_ROWS} of each are shown"] if more else []
    return [heading, *_table(schema.names, rows), *ending]


def signed(changes: Counter[Row]) -> Counter[Row]:
    """Changes as rows that can be counted: the sign goes first."""
    return Counter({(_sign(weight), *row): abs(weight) for row, weight in changes.items() if weight})


def _sign(weight: int) -> str:
    return "+1" if weight > 0 else "-1"


def _apart(want: Counter[Row], found: Counter[Row]) -> tuple[list[Row], list[Row]]:
    """What only one of the two has; rows whose floating-point numbers differ a little are the same."""
    missing, unexpected = list((want - found).elements()), list((found - want).elements())
    left = []
    for row in missing:
        twin = next((at for at, other in enumerate(unexpected) if alike(row, other)), None)
        if twin is None:
            left.append(row)
        else:
            del unexpected[twin]
    return sorted(left, key=repr), sorted(unexpected, key=repr)


def _table(names: Sequence[str], rows: Sequence[tuple[str, Row]]) -> Iterator[str]:
    """The rows in columns; those of changes have a sign before the view's own columns."""
    width = len(rows[0][1])
    heads = ["", *([""] * (width - len(names))), *names]
    cells = [heads, *([sign, *map(shown, row)] for sign, row in rows)]
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    for line in cells:
        yield "  " + "  ".join(cell.ljust(size) for cell, size in zip(line, widths, strict=True)).rstrip()
