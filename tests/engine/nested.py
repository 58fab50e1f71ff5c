"""Random queries out of all constructs, nested in each other.

Every query has the columns k BIGINT, v BIGINT, t STRING, so that any can stand wherever a relation can. One of some
`depth` has so many operators on its longest way; a second input is nested, too, while the query has few of them, so
that answers stay small. What there is to choose from lies in decks, which are shuffled and dealt to the end before
anything comes again: so a few tens of queries have everything.
"""

import re
from collections.abc import Callable, Sequence
from random import Random
from typing import Any

from tests.engine.nested_cards import DECKS

RELATIONS = """
CREATE STREAM s (k BIGINT, v BIGINT, t STRING);
CREATE TABLE d (id BIGINT PRIMARY KEY, k BIGINT, v BIGINT, t STRING);
CREATE TABLE g (k BIGINT, v BIGINT, t STRING);
"""
DEPTHS = (2, 3, 3, 4)
SECOND_DEPTHS = (0, 0, 1, 2)
LEAVES = 4
"""With so many relations in it, a query's further inputs are relations."""
OVER_VIEW = re.compile(r"FROM v\d")
LOOKED_UP = re.compile(r"l\.[kt]( AND r\.v > 1)?\) AS v, t FROM")


class Nest:
    """Writes the queries of one story after the other; the same for the same seed."""

    def __init__(self, random: Random) -> None:
        self._random = random
        self._decks: dict[str, list[Any]] = {}
        self._plain: list[str] = []
        self._below = self._leaves = 0
        self.told: set[tuple[str, str]] = set()
        """The decks with their cards that were dealt."""

    def story(self, views: int) -> list[str]:
        """The queries of views that are called v0, v1 and so on; a view may read one before it that reads none."""
        self._plain, queries = [], list[str]()
        for at in range(views):
            self._leaves = 0
            queries.append(self.query(self._next("depth", DEPTHS)))
            if not OVER_VIEW.search(queries[-1]):
                self._plain.append(f"v{at}")
        return queries

    def query(self, depth: int) -> str:
        if depth == 0:
            return self._relation()
        shape, q = self._next("shape", SHAPES), self.query(depth - 1)
        above, self._below = self._below, depth - 1
        made: str = shape(self, q)
        self._below = above
        return made

    def other(self) -> str:
        """A second input, nested at most as deep as the first."""
        depth = self._next("second depth", SECOND_DEPTHS) if self._leaves < LEAVES else 0
        return self.query(min(depth, self._below))

    def deal(self, deck: str, **parts: str) -> str:
        """A card; in its braces stand `parts`, a second input, or cards of other decks."""
        card: str = self._next(deck, DECKS[deck])
        self.told.add((deck, card))
        filled = {name: parts.get(name) or self._part(name) for name in re.findall(r"{(\w+)}", card)}
        return card.format(**filled)

    def several(self, deck: str) -> str:
        """Three cards as one small number."""
        return f"CAST(pmod(hash({', '.join(self.deal(deck) for _ in range(3))}), 9) AS BIGINT)"

    def _part(self, name: str) -> str:
        return self.other() if name == "other" else self.deal(name)

    def _relation(self) -> str:
        self._leaves += 1
        name = self.deal("relation")
        if name == "view":
            name = self._random.choice(self._plain or ["s"])
        return f"SELECT k, v, t FROM {name}"

    def _next(self, deck: str, cards: Sequence[Any]) -> Any:
        if not self._decks.get(deck):
            self._decks[deck] = self._random.sample(cards, len(cards))
        return self._decks[deck].pop()


def filtered(nest: Nest, q: str) -> str:
    return f"SELECT k, v, t FROM ({q}) WHERE {nest.deal('condition')}"


def projected(nest: Nest, q: str) -> str:
    return f"SELECT {nest.deal('projection')}, upper(t) AS t FROM ({q})"


def combined(nest: Nest, q: str) -> str:
    """Beneath INTERSECT ALL and EXCEPT ALL Spark 4.3 fails to plan a column that is looked up."""
    other, operation = nest.other(), nest.deal("set operation")
    planned = operation not in ("INTERSECT ALL", "EXCEPT ALL") or not LOOKED_UP.search(q + other)
    return f"({q}) {operation if planned else 'UNION ALL'} ({other})"


def distinct(nest: Nest, q: str) -> str:
    return f"SELECT DISTINCT k, v, t FROM ({q})"


def joined(nest: Nest, q: str) -> str:
    left, right = (q, nest.other()) if nest.deal("place") == "first" else (nest.other(), q)
    columns = "coalesce(l.k, r.k) AS k, coalesce(l.v, 0) - coalesce(r.v, 0) AS v, concat(l.t, r.t) AS t"
    return f"SELECT {columns} FROM ({left}) l {nest.deal('join')} ({right}) r ON {nest.deal('match')}"


def crossed(nest: Nest, q: str) -> str:
    return nest.deal("crossing", q=q)


def kept_or_left_out(nest: Nest, q: str) -> str:
    return f"SELECT k, v, t FROM ({q}) l {nest.deal('half join')} ({nest.other()}) r ON {nest.deal('match')}"


def grouped(nest: Nest, q: str) -> str:
    return nest.deal("grouping", q=q, number=nest.several("number")) + nest.deal("having")


def gathered(nest: Nest, q: str) -> str:
    return f"SELECT count(*) AS k, {nest.several('number')} AS v, {nest.deal('text')} AS t FROM ({q})"


def grouped_in_sets(nest: Nest, q: str) -> str:
    return f"SELECT k, {nest.several('number')} + grouping_id() AS v, t FROM ({q}) GROUP BY {nest.deal('sets')}"


def numbered(nest: Nest, q: str) -> str:
    return f"SELECT k, {nest.several('over rows')} AS v, t FROM ({q}) WINDOW w AS ({nest.deal('window')})"


def first_of_each(nest: Nest, q: str) -> str:
    ranked = f"SELECT k, v, t, {nest.deal('rank')} OVER (PARTITION BY k {nest.deal('best')}) AS n FROM ({q})"
    return f"SELECT k, v, t FROM ({ranked}) WHERE n <= 2"


def first(nest: Nest, q: str) -> str:
    return nest.deal("first", q=q)


def compared_with_one_value(nest: Nest, q: str) -> str:
    return nest.deal("use of a value", q=q, value=nest.deal("one value"))


def looked_up(nest: Nest, q: str) -> str:
    return f"SELECT k, ({nest.deal('looked up')}) AS v, t FROM ({q}) l"


def among(nest: Nest, q: str) -> str:
    return f"SELECT k, v, t FROM ({q}) l WHERE {nest.deal('membership')}"


def beside(nest: Nest, q: str) -> str:
    return f"SELECT l.k, r.n AS v, l.t FROM {nest.deal('beside', q=q)}"


def multiplied(nest: Nest, q: str) -> str:
    return f"SELECT k, n AS v, t FROM ({q}) LATERAL VIEW {nest.deal('generator')}"


def turned(nest: Nest, q: str) -> str:
    return nest.deal("turning", q=q)


def named(nest: Nest, q: str) -> str:
    few = f"SELECT k, v, t FROM ({q}) ORDER BY v DESC NULLS LAST, k, t LIMIT 4"
    return nest.deal("by name", q=q, few=few)


def met_with_constants(nest: Nest, q: str) -> str:
    return nest.deal("constants", q=q)


SHAPES: tuple[Callable[[Nest, str], str], ...] = (
    *(filtered, distinct, crossed, crossed),
    *(projected,) * 3,
    *(combined,) * 6,
    *(joined,) * 6,
    *(kept_or_left_out,) * 4,
    *(grouped,) * 4,
    *(gathered,) * 2,
    *(grouped_in_sets,) * 3,
    *(numbered,) * 8,
    *(first_of_each,) * 3,
    *(first,) * 4,
    *(compared_with_one_value,) * 3,
    *(looked_up,) * 3,
    *(among,) * 11,
    *(beside,) * 8,
    *(multiplied,) * 8,
    *(turned,) * 3,
    *(named,) * 4,
    *(met_with_constants,) * 4,
)
"""As often as their decks need it to be dealt to the end."""
