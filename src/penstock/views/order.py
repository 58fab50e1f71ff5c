"""Order: in which order rows are read, and where reading goes on after a page.

Rows are ordered by columns, then by their place in the table, so that no two have the same rank. NULL is the smallest
value and NaN the largest, as in Spark. A page ends with a *cursor*: the rank of its last row, as text.
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from penstock.errors import ViewError, did_you_mean
from penstock.schema import Column, Decimal
from penstock.views.step import View
from penstock.views.tables import Table, quoted
from penstock.views.values import Values

EXACT_DIGITS = 15
"""Decimals with so many digits are floating-point numbers without loss, which SQLite sorts faster."""


@dataclass(frozen=True)
class Term:
    """One column to sort by."""

    column: Column
    descending: bool

    def expression(self, operand: str) -> str:
        """What is compared, of the column or of a value for it."""
        if isinstance(self.column.type, Decimal) and self.column.type.precision <= EXACT_DIGITS:
            return f"CAST({operand} AS REAL)"
        return operand if isinstance(self.column.type, Decimal) else f"{operand} COLLATE BINARY"

    @property
    def sorted(self) -> str:
        return self.expression(quoted(self.column.name)) + (" DESC" if self.descending else "")

    def beyond(self, parameter: str, value: Any) -> str:
        """The condition that a row comes after those with this value."""
        name = quoted(self.column.name)
        if value is None:
            return "FALSE" if self.descending else f"{name} IS NOT NULL"
        sign = "<" if self.descending else ">"
        compared = f"{self.expression(name)} {sign} {self.expression(parameter)}"
        return f"({compared} OR {name} IS NULL)" if self.descending else compared


@dataclass(frozen=True)
class Order:
    view: View
    terms: tuple[Term, ...]

    @property
    def sql(self) -> str:
        return ", ".join([*(term.sorted for term in self.terms), Table(self.view).rowid])

    def cursor(self, row: Values, rowid: int, lineage: int) -> str:
        names = self.view.schema.names
        values = [_json(row[names.index(term.column.name)]) for term in self.terms]
        return json.dumps([lineage, rowid, [term.sorted for term in self.terms], values])

    def after(self, cursor: str, lineage: int) -> tuple[str, dict[str, Any]]:
        """The condition that a row comes after the cursor, and its parameters."""
        rowid, values = self._read(cursor, lineage)
        parameters = {f"after{at}": value for at, value in enumerate(values)} | {"rowid": rowid}
        beyond = f"{Table(self.view).rowid} > :rowid"
        for at in reversed(range(len(values))):
            same = f"{quoted(self.terms[at].column.name)} COLLATE BINARY IS :after{at}"
            beyond = f"({self.terms[at].beyond(f':after{at}', values[at])} OR ({same} AND {beyond}))"
        return beyond, parameters

    def _read(self, cursor: str, lineage: int) -> tuple[int, list[Any]]:
        try:
            of, rowid, terms, values = json.loads(cursor)
            rest = _number(rowid), [_plain(value) for value in values]
            if len(values) != len(terms):
                raise ValueError
        except (ValueError, TypeError, KeyError, RecursionError):
            raise ViewError(f"this is not where a page has ended: {cursor[:80]}") from None
        if of != lineage or terms != [term.sorted for term in self.terms]:
            raise ViewError(
                f'the rows of view "{self.view.name}" cannot go on from there',
                detail="The page before was of another lineage, or in another order.",
                hint="Begin again, without `after`.",
            )
        return rest


def order_of(view: View, columns: Sequence[str]) -> Order:
    """`["spend desc", "city"]`  =>  Order"""
    return Order(view, tuple(_term(view, text) for text in columns))


def _term(view: View, text: str) -> Term:
    words = text.rsplit(maxsplit=1)
    if len(words) == 2 and words[1].lower() in ("asc", "desc"):
        return Term(_column(view, words[0]), words[1].lower() == "desc")
    return Term(_column(view, text.strip()), descending=False)


def _column(view: View, name: str) -> Column:
    for column in view.schema.columns:
        if column.name.lower() == name.lower():
            return column
    raise ViewError(
        f'column "{name}" does not exist in view "{view.name}"',
        detail=f"The columns are {', '.join(view.schema.names)}.",
        hint=did_you_mean(name, view.schema.names),
    )


def _json(value: Any) -> Any:
    return {"hex": value.hex()} if isinstance(value, bytes) else value


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return bytes.fromhex(value["hex"])
    if isinstance(value, str):
        value.encode()  # half a character is none
    return value if value is None or isinstance(value, str | float) else _number(value)


def _number(value: Any) -> int:
    if type(value) is not int or not -(1 << 63) <= value < 1 << 63:
        raise ValueError
    return value
