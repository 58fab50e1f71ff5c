"""Catalyst's optimized plan of a view, read once into the nodes of our algebra.

What is not in the algebra is refused, naming the construct and the view. Nothing here evaluates anything.
"""

import re
from collections.abc import Callable
from dataclasses import replace

from pyspark.sql import DataFrame

from penstock.engine.nodes import (
    Aggregate,
    AsOf,
    Beyond,
    Column,
    Evaluate,
    Expand,
    Filter,
    Generate,
    Handle,
    Held,
    Join,
    Node,
    Project,
    Retained,
    Scan,
    Session,
    Single,
    Static,
    Top,
    Union,
    Window,
)
from penstock.errors import EngineError, Spot

CHANGING = re.compile(r"(.*?)(?: \(line (\d+), column (\d+)\))?", re.DOTALL)
SEED = re.compile(r"(?<=[a-z])\(-?\d+\)$")
"""Spark gives a seed to what the user wrote without one."""
NAMED = {
    "Sample": "TABLESAMPLE",
    "ScriptTransformation": "TRANSFORM",
    "CollectMetrics": "observe",
    "UnionLoop": "a recursive query (WITH RECURSIVE)",
    "MapInPandas": "mapInPandas",
    "MapInArrow": "mapInArrow",
    "FlatMapGroupsInPandas": "applyInPandas",
    "FlatMapGroupsInArrow": "applyInArrow",
    "FlatMapCoGroupsInPandas": "applyInPandas",
    "FlatMapCoGroupsInArrow": "applyInArrow",
}
SAME = "A view is a function of what was appended; the same log must give the same answer."
IN_ROWS = "Functions in Python take values of one row and give one value: udf, pandas_udf."
HINTS = {name: IN_ROWS for name in NAMED if "InPandas" in name or "InArrow" in name} | {
    "Sample": "Take rows by what is in them: WHERE pmod(hash(id), 10) = 0.",
    "ScriptTransformation": IN_ROWS,
    "CollectMetrics": "Count in a view of its own.",
    "UnionLoop": "Write its steps out, each a query that reads the one before, as many as your data can need.",
}
COUNTED = {"RowNumber": "rows", "Rank": "ranks", "DenseRank": "groups"}
ENDLESS = 2**31 - 1
"""A limit where there is none: Spark's own are no larger."""


class Reader:
    """Reads plans through the kernel's door, for one view at a time, whose name its errors carry; `place` leads from
    line and column in the query to the user's file.
    """

    def __init__(self, door: Handle, view: str, place: Callable[[int, int], Spot | None] = lambda *_: None) -> None:
        self._door = door
        self._view = view
        self._place = place
        self._readers: dict[str, Callable[[Handle], Node]] = {
            "Project": lambda plan: Project(tuple(self._list(plan.projectList())), self.node(plan.child())),
            "Filter": lambda plan: Filter(plan.condition(), self.node(plan.child())),
            "Union": lambda plan: Union(self._columns(plan), tuple(map(self.node, self._list(plan.children())))),
            "Expand": self._expand,
            "Generate": self._generate,
            "BatchEvalPython": self._evaluate,
            "ArrowEvalPython": self._evaluate,
            "Join": self._join,
            "Retained": self._retained,
            "Beyond": self._beyond,
            "AsOfJoin": self._as_of,
            "Aggregate": lambda plan: Aggregate(self._columns(plan), plan, self.node(plan.child())),
            "Single": lambda plan: Single(self._columns(plan), plan, self.node(plan.child())),
            "Session": self._session,
            "Held": lambda plan: Held(plan.over(), self._columns(plan), plan, self.node(plan.child())),
            "Window": self._window,
            "WindowGroupLimit": self._group_limit,
            "GlobalLimit": self._limit,
            "Offset": self._limit,
            # A view is a set of rows: readers order it, and where its tasks run is no matter of the query.
            **dict.fromkeys(
                ("Sort", "LocalLimit", "Repartition", "RepartitionByExpression", "RebalancePartitions", "ResolvedHint"),
                lambda plan: self.node(plan.child()),
            ),
        }

    def read(self, frame: DataFrame) -> Node:
        analyzed = frame._jdf.queryExecution().analyzed()
        self._check_functions(analyzed)
        for found in self._door.changing(analyzed):
            text, line, column = CHANGING.fullmatch(found).groups()  # type: ignore[union-attr]
            construct = SEED.sub("()", text)
            raise EngineError(
                f'view "{self._view}" uses {construct}, whose value changes by itself',
                detail=SAME,
                hint="Use a column instead, such as the hidden _appended_at.",
                spot=self._place(int(line), int(column)) if line else None,
            )
        return self.node(self._door.planned(frame._jdf))

    def _check_functions(self, analyzed: Handle) -> None:
        """Of functions in Python, those of one row will do, if their values do not change by themselves."""
        for kind, name in map(list, self._door.functionsOf(analyzed)):
            if kind == "changing":
                raise EngineError(
                    f'view "{self._view}" calls {name}, a function in Python that is declared as not deterministic',
                    detail=SAME,
                    hint="If it always gives the same for the same values, leave out asNondeterministic().",
                )
            raise EngineError(
                f'view "{self._view}" calls {name}, {kind} in Python, which is not supported yet', hint=IN_ROWS
            )

    def node(self, plan: Handle) -> Node:
        kind = self._door.kind(plan)
        if kind in self._readers:
            return self._readers[kind](plan)
        if self._list(plan.children()):
            raise not_yet(self._view, kind, spot=self._spot(plan))
        return self._leaf(plan)

    def _list(self, items: Handle) -> list[Handle]:
        return list(self._door.list(items))

    def _columns(self, plan: Handle) -> tuple[Column, ...]:
        return self._named(plan.output())

    def _named(self, attributes: Handle) -> tuple[Column, ...]:
        return tuple(Column(a.name(), self._door.identity(a), a) for a in self._list(attributes))

    def _leaf(self, plan: Handle) -> Node:
        name = self._door.relation(plan)
        return Static(self._columns(plan), plan) if name is None else Scan(name, self._columns(plan))

    def _expand(self, plan: Handle) -> Node:
        projections = tuple(tuple(self._list(each)) for each in self._list(plan.projections()))
        return Expand(self._columns(plan), projections, self.node(plan.child()))

    def _generate(self, plan: Handle) -> Node:
        made = self._named(plan.qualifiedGeneratorOutput())
        kept = tuple(column for column in self._columns(plan) if column.id not in {each.id for each in made})
        return Generate(plan.generator(), plan.outer(), kept, made, self.node(plan.child()))

    def _evaluate(self, plan: Handle) -> Node:
        calls, made = tuple(self._list(plan.udfs())), self._named(plan.resultAttrs())
        return Evaluate(calls, made, self._columns(plan), plan, self.node(plan.child()))

    def _join(self, plan: Handle) -> Node:
        left, right = self.node(plan.left()), self.node(plan.right())
        return Join(self._columns(plan), plan, left, right)

    def _session(self, plan: Handle) -> Node:
        columns = self._columns(plan)
        return Session(plan.keys(), columns[-1], columns, plan, self.node(plan.child()))

    def _as_of(self, plan: Handle) -> Node:
        left, right = self.node(plan.left()), self.node(plan.right())
        return AsOf(self._door.asOfPlan(plan), self._columns(plan), plan, left, right)

    def _retained(self, plan: Handle) -> Node:
        left, right = self.node(plan.join().left()), self.node(plan.join().right())
        return Retained(self._door.retainedPlan(plan), self._columns(plan), plan, left, right)

    def _beyond(self, plan: Handle) -> Node:
        return Beyond(self._columns(plan), plan, self.node(plan.left()), self.node(plan.right()))

    def _window(self, plan: Handle) -> Node:
        return Window(self._door.windowPlan(plan), self._columns(plan), plan, self.node(plan.child()))

    def _group_limit(self, plan: Handle) -> Node:
        """Only the first rows of a group are asked for."""
        counted = COUNTED[self._door.kind(plan.rankLikeFunction())]
        partition, orders = self._list(plan.partitionSpec()), self._list(plan.orderSpec())
        columns, limit = self._columns(plan), plan.limit()
        return Top(tuple(partition), tuple(orders), limit, 0, columns, plan, self.node(plan.child()), counted)

    def _limit(self, plan: Handle) -> Top:
        """LIMIT and OFFSET, one above the other, over an order."""
        below = self._limited(plan.child(), plan)
        if self._door.kind(plan) == "GlobalLimit":
            return replace(below, limit=min(below.limit, self._door.number(plan.limitExpr())))
        number = self._door.number(plan.offsetExpr())
        rest = ENDLESS if below.limit == ENDLESS else max(below.limit - number, 0)
        return replace(below, offset=below.offset + number, limit=rest)

    def _limited(self, child: Handle, plan: Handle) -> Top:
        match self._door.kind(child):
            case "GlobalLimit" | "Offset":
                return replace(self._limit(child), plan=plan)
            case "Sort":
                orders, below = tuple(self._list(child.order())), child.child()
            case _:
                orders, below = (), child
        return Top((), orders, ENDLESS, 0, self._columns(child), plan, self.node(below))

    def _spot(self, plan: Handle) -> Spot | None:
        """Where the node was written, if Catalyst still knows."""
        line, start = plan.origin().line(), plan.origin().startPosition()
        return self._place(line.get(), start.get() + 1) if line.isDefined() and start.isDefined() else None


def not_yet(view: str, construct: str, *, spot: Spot | None) -> EngineError:
    """The refusal of what the algebra does not have; `construct` is Catalyst's name of it."""
    return EngineError(
        f'view "{view}" uses {NAMED.get(construct, construct)}, which is not supported yet',
        hint=HINTS.get(construct, ""),
        spot=spot,
    )
