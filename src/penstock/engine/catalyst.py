"""Catalyst's optimized plan of a view, read once into a few kinds of nodes.

The algebra is small and closed; what is not in it is refused, naming the construct and the view. Expressions stay
handles to Catalyst's own, to be bound later; nothing here evaluates anything.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from pyspark.sql import DataFrame

from penstock.errors import EngineError, Spot

CHANGING = re.compile(r"(.*?)(?: \(line (\d+), column (\d+)\))?", re.DOTALL)
SEED = re.compile(r"(?<=[a-z])\(-?\d+\)$")
"""Spark gives a seed to what the user wrote without one."""
NAMED = {
    "Window": "a window function",
    "Expand": "several DISTINCT aggregates, or GROUPING SETS",
    "GlobalLimit": "LIMIT",
    "Generate": "a function that makes several rows of one",
    "OneRowRelation": "no relation",
    "LocalRelation": "VALUES",
    "Range": "range()",
    "Sample": "TABLESAMPLE",
    "UnionLoop": "a recursive query",
}
WRITTEN = {"Join": "ON {}", "Window": "{}", "Generate": "{}", "GlobalLimit": "LIMIT {}"}
"""How the first expression of a node is written in a query."""
Handle = Any
"""An object of the JVM, held through py4j."""


@dataclass(frozen=True)
class Column:
    """A column of a node's output: Catalyst's attribute, with its name and its number at hand."""

    name: str
    id: int
    handle: Handle


@dataclass(frozen=True)
class Scan:
    relation: str
    columns: tuple[Column, ...]


@dataclass(frozen=True)
class Project:
    items: tuple[Handle, ...]
    child: "Node"


@dataclass(frozen=True)
class Filter:
    condition: Handle
    child: "Node"


@dataclass(frozen=True)
class Union:
    columns: tuple[Column, ...]
    children: "tuple[Node, ...]"


@dataclass(frozen=True)
class Join:
    """Inner, on keys, with what is left of the condition."""

    left_keys: tuple[Handle, ...]
    right_keys: tuple[Handle, ...]
    condition: Handle | None
    columns: tuple[Column, ...]
    plan: Handle
    left: "Node"
    right: "Node"


@dataclass(frozen=True)
class Aggregate:
    columns: tuple[Column, ...]
    plan: Handle
    child: "Node"


Node = Scan | Project | Filter | Union | Join | Aggregate


class Reader:
    """Reads plans through the kernel's door, for one view at a time, whose name its errors carry; `place` leads from
    line and column in the query to the user's file.
    """

    def __init__(self, door: Handle, view: str, place: Callable[[int, int], Spot | None] = lambda *_: None) -> None:
        self._door = door
        self._view = view
        self._place = place
        self._readers: dict[str, Callable[[Handle], Node]] = {
            "Project": self._project,
            "Filter": self._filter,
            "Union": self._union,
            "Join": self._join,
            "Aggregate": self._aggregate,
            "Sort": self._sort,
        }

    def read(self, frame: DataFrame) -> Node:
        execution = frame._jdf.queryExecution()
        for found in self._door.changing(execution.analyzed()):
            text, line, column = CHANGING.fullmatch(found).groups()  # type: ignore[union-attr]
            construct = SEED.sub("()", text)
            raise EngineError(
                f'view "{self._view}" uses {construct}, whose value changes by itself',
                detail="A view is a function of what was appended; the same log must give the same answer.",
                hint="Use a column instead, such as the hidden _appended_at.",
                spot=self._place(int(line), int(column)) if line else None,
            )
        plan = execution.optimizedPlan()
        if self._list(plan.subqueriesAll()):
            raise EngineError(f'view "{self._view}" uses a query inside an expression, which is not supported yet')
        return self.node(plan)

    def node(self, plan: Handle) -> Node:
        kind = self._door.kind(plan)
        if not self._list(plan.children()):
            return self._leaf(plan)
        if kind not in self._readers:
            raise self._refusal(plan, kind)
        return self._readers[kind](plan)

    def _list(self, items: Handle) -> list[Handle]:
        return list(self._door.list(items))

    def _columns(self, plan: Handle) -> tuple[Column, ...]:
        return tuple(Column(a.name(), self._door.identity(a), a) for a in self._list(plan.output()))

    def _leaf(self, plan: Handle) -> Node:
        name = self._door.relation(plan)
        if name is None:
            raise self._refusal(plan, self._door.kind(plan), hint="Read declared streams, tables and views only.")
        return Scan(name, self._columns(plan))

    def _project(self, plan: Handle) -> Node:
        return Project(tuple(self._list(plan.projectList())), self.node(plan.child()))

    def _filter(self, plan: Handle) -> Node:
        return Filter(plan.condition(), self.node(plan.child()))

    def _sort(self, plan: Handle) -> Node:
        return self.node(plan.child())  # a view is a set of rows; readers order it

    def _union(self, plan: Handle) -> Node:
        return Union(self._columns(plan), tuple(self.node(each) for each in self._list(plan.children())))

    def _join(self, plan: Handle) -> Node:
        kind = plan.joinType().sql()
        keys = self._door.equiJoin(plan)
        if kind != "INNER" or keys is None:
            name = f"{kind} JOIN" if keys is not None else f"{kind} JOIN without an equality"
            raise self._refusal(plan, name, hint="Inner joins on equal columns are supported today.")
        return Join(
            tuple(keys[0]),
            tuple(keys[1]),
            keys[2],
            self._columns(plan),
            plan,
            self.node(plan.left()),
            self.node(plan.right()),
        )

    def _aggregate(self, plan: Handle) -> Node:
        return Aggregate(self._columns(plan), plan, self.node(plan.child()))

    def _refusal(self, plan: Handle, construct: str, *, hint: str = "") -> EngineError:
        return EngineError(
            f'view "{self._view}" uses {NAMED.get(construct, construct)}, which is not supported yet',
            detail=self._written(plan),
            hint=hint,
            spot=self._spot(plan),
        )

    def _written(self, plan: Handle) -> str:
        """What the user wrote to get the node, nearly."""
        kind, expressions = self._door.kind(plan), self._list(plan.expressions())
        return f"It is: {WRITTEN[kind].format(expressions[0].sql())}" if kind in WRITTEN and expressions else ""

    def _spot(self, plan: Handle) -> Spot | None:
        """Where the node was written, if Catalyst still knows."""
        line, start = plan.origin().line(), plan.origin().startPosition()
        return self._place(line.get(), start.get() + 1) if line.isDefined() and start.isDefined() else None
