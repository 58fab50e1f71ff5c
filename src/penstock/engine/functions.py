"""Python functions: called by Spark on the rows of a source, before they enter the graph.

Operators keep what is in their rows, and take a row back by the same values: what a function gave is computed once for
every record. A table with such a column is another operator than the table itself; records that do not pass the
filters before the call are deletions to it. After an operator with state nothing can be called.
"""

from dataclasses import replace

from penstock.engine.graph import Branch, Flow, Graph, Operator
from penstock.engine.nodes import Column, Evaluate, Handle
from penstock.errors import EngineError

SOURCES = ("source", "static", "evaluated")
AFTER = {
    "join": "a join",
    "aggregate": "an aggregate",
    "window": "a window function",
    "top": "ORDER BY ... LIMIT",
    "unique": "a query inside an expression",
}
"""By kind of operator: how the user knows it."""


def evaluated(graph: Graph, node: Evaluate, flow: Flow, view: str) -> Flow:
    """The same rows with what the functions give behind them."""
    return replace(flow, branches=tuple(_evaluated(graph, node, branch, view) for branch in flow.branches))


def _evaluated(graph: Graph, node: Evaluate, branch: Branch, view: str) -> Branch:
    calls = [graph.substituted(call, branch) for call in node.calls]
    results = _known(graph, branch.source, calls)
    if results is None:
        _check_place(graph, node, branch, view)
        branch, results = _called(graph, branch, calls)
    made = [graph.door.renamed(had.handle, new.handle) for had, new in zip(results, node.made, strict=True)]
    return replace(branch, out=(*branch.out, *made))


def _known(graph: Graph, source: Operator, calls: list[Handle]) -> list[Column] | None:
    """The columns where the same functions have been called on the same values, as for a filter before."""
    had = list(zip(source.parts.get("calls", ()), source.parts.get("results", ()), strict=True))
    found = [next((column for each, column in had if graph.door.same(call, each)), None) for call in calls]
    return None if None in found else [column for column in found if column is not None]


def _called(graph: Graph, branch: Branch, calls: list[Handle]) -> tuple[Branch, list[Column]]:
    """The branch goes on from a source that has called the functions, with all columns that were there before; and the
    columns that they gave.
    """
    base = branch.source.parts["source"] if branch.source.kind == "upsert" else branch.source
    number = 1 + sum(operator.kind == "evaluated" for operator in graph.operators)
    names = [f"_function_{number}_{at}" for at in range(len(calls))]
    attributes = [graph.door.result(name, call) for name, call in zip(names, calls, strict=True)]
    results = [Column(name, graph.door.identity(a), a) for name, a in zip(names, attributes, strict=True)]
    root = base.parts.get("root", base)
    known = {"calls": (*branch.source.parts.get("calls", ()), *calls)}
    known |= {"results": (*branch.source.parts.get("results", ()), *results)}
    source = graph.operator("evaluated", root.title, root=root, base=base, branch=branch, new=(calls, results), **known)
    source.row = [*branch.columns, *(column for maker in branch.makers for column in maker.made), *results]
    graph.sources[f"evaluated {number}"] = source
    target = source
    if branch.source.kind == "upsert":
        relation = branch.source.parts["relation"]
        source.parts["table"] = relation
        target = graph.operator("upsert", relation.name, relation=relation, source=source, **known)
        target.row = list(source.row)
    return Branch(target, tuple(source.row), (), branch.out), results


def _check_place(graph: Graph, node: Evaluate, branch: Branch, view: str) -> None:
    kind = branch.source.kind
    if kind in SOURCES or (kind == "upsert" and not branch.makers):
        return
    names = ", ".join(dict.fromkeys(graph.door.function(call) for call in node.calls))
    if kind in AFTER:
        raise EngineError(
            f'view "{view}" calls {names}, a function in Python, after {AFTER[kind]}, which is not supported yet',
            detail="Spark calls such functions on the rows of a stream or a table, before anything is kept of them.",
            hint="Call it in a view of its own that reads the stream or the table, or write it in SQL.",
        )
    reason = "a table without a primary key" if kind == "bag" else "rows that a generator makes of a table's"
    raise EngineError(
        f'view "{view}" calls {names}, a function in Python, on {reason}, which is not supported yet',
        detail="What it gives is kept with each row of a table, under the table's key.",
        hint="Declare a primary key." if kind == "bag" else "Call it before the rows are made, or write it in SQL.",
    )
