"""Random views of everything that the engine supports, over the relations of `rows`.

What there is to choose from lies in decks of `cards`, which are shuffled for every pipeline and dealt in turn: so each
pipeline has nearly every construct, and their combinations are random.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import cycle
from random import Random
from typing import Any, Literal

from tests.engine import cards
from tests.engine.rows import COLUMNS

RELATIONS = ("s", "d", "e", "g", "view")
JOINS = {
    "join": ("JOIN",),
    "residual": ("JOIN",),
    "self-join": ("JOIN", "JOIN", "LEFT JOIN"),
    "outer": ("LEFT JOIN", "RIGHT JOIN", "FULL JOIN"),
    "semi": ("LEFT SEMI JOIN", "LEFT ANTI JOIN"),
}
INPUTS = ("plain", "filter", "computed", "union", *JOINS, "three-way", "groups")
SHAPES = ("rows", "rows", "global", "grouped", "grouped", "having", "twice", "distinct", "growing", "recounted")
LARGEST = 3
"""How many relations are multiplied with each other: answers stay small."""
Kind = Literal["rows", "groups", "other"]


@dataclass(frozen=True)
class Query:
    """A query, whether its answer only grows, how many relations are joined in it, and what it is made of.

    The answer of `rows` has the columns of every relation, that of `groups` has `k0` and `n`.
    """

    sql: str
    kind: Kind
    tags: frozenset[str]
    grows: bool = False
    factors: int = 1


class Author:
    """Writes one view after the other; a later one may read those before."""

    def __init__(self, random: Random) -> None:
        self.views: list[tuple[str, Query]] = []
        self._random = random
        decks: dict[str, Sequence[Any]] = {
            "relation": RELATIONS,
            "input": INPUTS,
            "key": cards.KEYS,
            "function": cards.FUNCTIONS,
            "other function": cards.OTHER_FUNCTIONS,
            "condition": cards.CONDITIONS,
            "computed": cards.COMPUTED,
            "match": cards.MATCHES,
            "residual": cards.RESIDUALS,
            "having": cards.HAVINGS,
        }
        self._decks = {name: cycle(random.sample(deck, len(deck))) for name, deck in decks.items()}

    def write(self, shape: str) -> None:
        query = self._over() if shape == "over" else self._shaped(shape, self._input(grows=shape == "growing"))
        self.views.append((f"v{len(self.views)}", query))

    def _deal(self, deck: str) -> Any:
        return next(self._decks[deck])

    # What a view reads: queries with the columns of every relation

    def _relation(self, *, most: int = LARGEST, grows: bool = False) -> Query:
        """A relation, or a view that was written before."""
        name = self._deal("relation")
        known = [(v, q) for v, q in self.views if q.kind == "rows" and q.factors <= most and q.grows >= grows]
        if name == "view" and known:
            view, query = self._random.choice(known)
            tags = frozenset({"view over view"})
            return Query(f"SELECT * FROM {view}", "rows", tags, query.grows, query.factors)
        name = "s" if grows or name == "view" else name
        columns = _listed(computed="map(coalesce(t, 'a'), k) AS m") if name == "g" else _listed()
        return Query(f"SELECT {columns} FROM {name}", "rows", frozenset({f"relation {name}"}), grows=name == "s")

    def _input(self, *, grows: bool) -> Query:
        shape = self._deal("input")
        match shape:
            case shape if shape in JOINS:
                return self._join(shape, grows=grows)
            case "groups" if not grows:
                return self._join_with_groups()
            case "three-way":
                return self._three_way(grows=grows)
            case "union":
                one, two = self._relation(grows=grows), self._relation(grows=grows)
                return self._made(
                    f"{one.sql} UNION ALL {two.sql}", shape, one, two, factors=max(one.factors, two.factors)
                )
        one = self._relation(grows=grows)
        match shape:
            case "filter":
                sql = f"SELECT * FROM ({one.sql}) WHERE {self._deal('condition')}"
            case "computed":
                sql = f"SELECT {_listed(computed=self._deal('computed'))} FROM ({one.sql})"
            case _:
                sql = one.sql
        return self._made(sql, shape, one, factors=one.factors)

    def _made(self, sql: str, shape: str, *parts: Query, factors: int) -> Query:
        tags = frozenset({shape}).union(*(part.tags for part in parts))
        return Query(sql, "rows", tags, all(part.grows for part in parts), factors)

    def _join(self, shape: str, *, grows: bool) -> Query:
        left = self._relation(most=1 if shape == "self-join" else 2, grows=grows)
        right = left if shape == "self-join" else self._relation(most=LARGEST - left.factors, grows=grows)
        join, on = "JOIN" if grows else self._random.choice(JOINS[shape]), self._deal("match")
        if shape == "residual" or (shape != "join" and self._random.random() < 0.5):
            on = f"{on} AND {self._residual(on)}"
        columns = _listed() if shape == "semi" and not grows else _listed(right="vto")
        made = self._made(
            f"SELECT {columns} FROM ({left.sql}) l {join} ({right.sql}) r ON {on}",
            shape,
            left,
            right,
            factors=left.factors + right.factors,
        )
        return made if join == "JOIN" else replace(made, grows=False)

    def _residual(self, beside: str) -> str:
        """A condition on other columns than those that are compared already: Catalyst sees what can never hold."""
        while columns_of(residual := self._deal("residual")) & columns_of(beside):
            pass
        return str(residual)

    def _join_with_groups(self) -> Query:
        """A join with an aggregate whose groups are the join's keys."""
        left, right = self._relation(), self._relation()
        groups = f"SELECT k, sum(v) AS v, max(t) AS t, max(o) AS o FROM ({right.sql}) GROUP BY k"
        sql = f"SELECT {_listed(right='vto')} FROM ({left.sql}) l JOIN ({groups}) r ON l.k = r.k"
        return replace(self._made(sql, "groups", left, right, factors=left.factors), grows=False)

    def _three_way(self, *, grows: bool) -> Query:
        one, two, three = (self._relation(most=1, grows=grows) for _ in range(3))
        first, second = self._deal("match").replace("r.", "c."), self._deal("match").replace("l.", "c.")
        where = f" WHERE {self._residual(first + second)}" if self._random.random() < 0.5 else ""
        joined = f"({one.sql}) l JOIN ({two.sql}) c ON {first} JOIN ({three.sql}) r ON {second}{where}"
        return self._made(f"SELECT {_listed(right='vto')} FROM {joined}", "three-way", one, two, three, factors=3)

    # What it makes of it

    def _shaped(self, shape: str, source: Query) -> Query:
        tags, keys = source.tags | {shape}, self._deal("key")
        match shape:
            case "rows":
                return Query(source.sql, "rows", tags, source.grows, source.factors)
            case "distinct":
                return Query(f"SELECT DISTINCT {_named(keys)}, b FROM ({source.sql})", "other", tags)
            case "global":
                return Query(f"SELECT {self._functions('function')} FROM ({source.sql})", "other", tags)
        listed = self._functions("other function" if shape in ("growing", "recounted") else "function")
        sql = f"SELECT {_named(keys)}, {listed}, count(*) AS n FROM ({source.sql}) GROUP BY {', '.join(keys)}"
        match shape:
            case "having":
                return Query(f"{sql} HAVING {self._deal('having')}", "groups", tags)
            case "twice":
                sql = f"SELECT n, count(*) AS groups, min(k0) AS first, max(n) AS last FROM ({sql}) GROUP BY n"
                return Query(sql, "other", tags)
        return Query(sql, "groups", tags)

    def _functions(self, deck: str) -> str:
        return ", ".join(f"{self._deal(deck)} AS a{at}" for at in range(6))

    def _over(self) -> Query:
        """A view over views that aggregate: aggregated again, or joined."""
        known = [view for view, query in self.views if query.kind == "groups"]
        one, two = self._random.choice(known), self._random.choice(known)
        sqls = [
            f"SELECT n, count(*) AS groups, max(k0) AS last FROM {one} GROUP BY n",
            f"SELECT count(*) AS groups, sum(n) AS n FROM {one} HAVING count(*) > 1",
            f"SELECT l.n, l.k0 AS one, r.k0 AS two FROM {one} l JOIN {two} r ON l.n = r.n",
        ]
        return Query(self._random.choice(sqls), "other", frozenset({"over", "view over view"}))


def columns_of(condition: str) -> set[str]:
    """`l.k = r.k AND l.t = r.t`  =>  `{"k", "t"}`"""
    return set(re.findall(r"\b[lrc]\.(\w+)", condition))


def _listed(*, right: str = "", computed: str = "") -> str:
    """All columns; those of `right` from the right side of a join and the others from the left, or one of them
    computed.
    """
    name = computed.rpartition(" AS ")[2]
    from_side = {column: f"{'r' if column in right else 'l'}.{column}" if right else column for column in COLUMNS}
    return ", ".join(computed if column == name else from_side[column] for column in COLUMNS)


def _named(keys: Sequence[str]) -> str:
    return ", ".join(f"{key} AS k{at}" for at, key in enumerate(keys))
