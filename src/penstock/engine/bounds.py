"""Bounds: what the state of each operator grows with.

A state is bounded by the sizes of tables, or by the windows that are open, or it grows with a stream, without end. What
is said is safe: a state that is called bounded is; one that is called unbounded may be smaller because of what the data
are. Filters do not count.

- A table's state is its rows; that of a join, an as-of join or a window function is the rows of its inputs.
- An aggregate has a row for each group. There are no more groups than there are values of what they are grouped by:
  columns of tables, also after a join with a stream, have as many as the tables have rows; columns of streams have no
  bound, but for BOOLEAN ones. Functions that keep the values of a group keep as many as there are; lists keep all.
- What the watermarks of streams complete is kept as long as it is open: windows, sessions, the rows within a range of
  time.
- The first rows are a fixed number for each key where rows only come, and all rows where they leave too. By rank they
  may be any number, since any number of rows may tie.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import reduce

from penstock.engine.catalyst import ENDLESS
from penstock.engine.graph import Branch, Edge, Graph, Operator
from penstock.engine.nodes import Handle

NUMBERS = frozenset({"count", "sum", "avg", "try_sum", "try_avg", "count_if", "regr_count"})
"""Functions that keep a number for each group, whatever leaves."""
LISTS = frozenset({"collect_list", "array_agg", "listagg", "string_agg"})
VALUES = frozenset(
    {"collect_set", "collect_union", "percentile", "percentile_cont", "percentile_disc", "median", "mode"}
)
"""Functions that keep values although rows only come."""


@dataclass(frozen=True)
class Bound:
    """The tables whose size bounds it, and the streams that it grows with: with none of them it is bounded. `freed`
    says when it is freed, if time does that.
    """

    tables: frozenset[str] = frozenset()
    streams: frozenset[str] = frozenset()
    freed: str = ""

    def __or__(self, other: "Bound") -> "Bound":
        return Bound(self.tables | other.tables, self.streams | other.streams)

    def __str__(self) -> str:
        if self.freed:
            return self.freed
        if self.streams:
            return f"unbounded: it grows with {' and '.join(sorted(self.streams))}"
        return f"bounded by the size of {' and '.join(sorted(self.tables))}" if self.tables else "bounded: a fixed size"


FIXED = Bound()


class Bounds:
    """Of the operators of one graph; `into` are the edges that lead to each, `unmarked` the histories whose time goes
    on by punctuation alone.
    """

    def __init__(self, graph: Graph, into: Mapping[int, Sequence[Edge]], unmarked: frozenset[str]) -> None:
        self._door = graph.door
        self._into = into
        self._unmarked = unmarked
        self._rows: dict[int, Bound] = {}

    def of_state(self, operator: Operator) -> Bound:
        if operator.kind == "asof":  # its versions are kept in any case
            closing = operator.parts["closing"]
            freed = closing and not self._unmarked.intersection(closing.streams())
            return self._inputs(operator, ports=(1,) if freed else (0, 1))
        if operator.kind == "retained":
            return self._retained(operator)
        if closing := operator.parts.get("closing"):
            slicing = operator.parts.get("slicing")
            return Bound(freed=closing.text() + (f"; {slicing.text()}" if slicing else ""))
        match operator.kind:
            case "join" | "window" | "session":
                return self._inputs(operator)
            case "top" if not operator.parts["growing"] or operator.parts["node"].counted != "rows":
                return self._inputs(operator)
            case "beyond":
                edges = [edge for edge in self._into[operator.id] if edge.port == 0]
                return _all(self._values(edge.branch, edge.key) for edge in edges)
            case "aggregate":
                return self.of_rows(operator) | self._kept_values(operator)
            case _:
                return self.of_rows(operator)

    def of_rows(self, operator: Operator) -> Bound:
        """Of the rows that an operator gives out."""
        if operator.id not in self._rows:
            self._rows[operator.id] = self._counted(operator)
        return self._rows[operator.id]

    def _counted(self, operator: Operator) -> Bound:
        match operator.kind:
            case "source":
                return Bound(streams=frozenset({operator.title}))
            case "upsert" | "bag":
                return Bound(tables=frozenset({operator.title}))
            case "static":
                return FIXED
            case "evaluated":
                return self.of_rows(operator.parts["root"])
            case "join" | "retained" if operator.parts["plan"].kind() in ("semi", "anti", "exists"):
                return self._inputs(operator, ports=(0,))
            case "asof":
                return self._inputs(operator, ports=(0,))
            case "aggregate":
                return _least(self._keys(operator), self._inputs(operator) if operator.key else FIXED)
            case "top" if operator.parts["limit"] != ENDLESS and operator.parts["node"].counted == "rows":
                keys = FIXED if operator.parts["spread"] else self._keys(operator)
                return _least(keys, self._inputs(operator))
            case "unique" if not operator.key:
                return FIXED
            case _:
                return self._inputs(operator)

    def _retained(self, operator: Operator) -> Bound:
        """What is said of rows that are freed, and of those that are not."""
        plan = operator.parts["plan"]
        others = [port for port in (0, 1) if not plan.isFreed(port)]
        rest = self._inputs(operator, ports=others)
        return replace(rest, freed=f"{plan.text()}; the others are {rest}" if others else plan.text())

    def _inputs(self, operator: Operator, ports: Sequence[int] = (0, 1)) -> Bound:
        return _all(self.of_rows(edge.source) for edge in self._into[operator.id] if edge.port in ports)

    def _keys(self, operator: Operator) -> Bound:
        return _all(self._values(edge.branch, edge.key) for edge in self._into[operator.id])

    def _kept_values(self, operator: Operator) -> Bound:
        names = set(self._door.aggregatesOf(operator.parts["node"]))
        if names & LISTS:
            return self._inputs(operator)
        kept = names & VALUES or any(name.endswith("_distinct") for name in names)
        if not kept and (operator.parts["growing"] or names <= NUMBERS):
            return FIXED
        values = _all(self._values(edge.branch, edge.value) for edge in self._into[operator.id])
        return _least(values, self._inputs(operator))

    def _values(self, branch: Branch, expressions: Iterable[Handle]) -> Bound:
        """Of how many combinations of values there are."""
        found = _all(self._read(branch, each) for each in expressions if not self._door.isTruth(each))
        return _least(found, self.of_rows(branch.source))

    def _read(self, branch: Branch, expression: Handle) -> Bound:
        at = {column.id: position for position, column in enumerate(branch.columns)}
        made = {column.id: maker.generator for maker in branch.makers for column in maker.made}
        return _all(
            self._read(branch, made[number]) if number in made else self._column(branch.source, at[number])
            for number in self._door.columnsOf(expression)
        )

    def _column(self, operator: Operator, at: int) -> Bound:
        """Of how many values a column of an operator's output has: as many as what was sent to it."""
        match operator.kind:
            case "join" | "retained" | "asof":
                left = len(operator.parts["sent"][0])
                if operator.parts["plan"].kind() == "exists" and at == left:
                    return FIXED
                return self._sent(operator, 0, at) if at < left else self._sent(operator, 1, at - left)
            case "window" | "top" | "unique" | "session" | "hold":
                return self._sent(operator, 0, at)
            case "aggregate":
                number = operator.row[at].id
                keys = [i for i, key in enumerate(operator.key) if key and self._door.identity(key) == number]
                found = [
                    self._values(edge.branch, edge.key[i : i + 1]) for edge in self._into[operator.id] for i in keys
                ]
                return _all(found) if keys else self.of_rows(operator)
            case _:
                return self.of_rows(operator)

    def _sent(self, operator: Operator, port: int, at: int) -> Bound:
        """What an operator adds to the rows that were sent has at most as many values as there are rows."""
        edges = [edge for edge in self._into[operator.id] if edge.port == port]
        if any(at >= len(edge.value) for edge in edges):
            return self.of_rows(operator)
        return _all(self._values(edge.branch, edge.value[at : at + 1]) for edge in edges)


def _all(bounds: Iterable[Bound]) -> Bound:
    return reduce(Bound.__or__, bounds, FIXED)


def _least(one: Bound, other: Bound) -> Bound:
    """Of two limits of the same number, the one that bounds it, if any does."""
    return other if one.streams and not other.streams else one
