"""The graph: all views of a pipeline as operators, and edges between them.

Filters, projections and generators belong to the edge that a row travels; what is left are operators with state. A
flow is a relation on its way through the graph: it knows whether it only grows, and which of its columns are a key.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from penstock.engine.nodes import Column, Handle


@dataclass(eq=False)
class Operator:
    """One operator, or a source, or a view's sink: where rows come from or go to.

    `row` are the columns of its output row; sources and tables have theirs by name, and get more as views ask for
    them.
    """

    id: int
    kind: str
    title: str
    key: tuple[Handle, ...] = ()
    row: list[Column] = field(default_factory=list)
    edges: "list[Edge]" = field(default_factory=list)
    parts: dict[str, Any] = field(default_factory=dict)
    readers: set[str] = field(default_factory=set)


@dataclass(frozen=True, eq=False)
class Maker:
    """Of every row that passes `filters`, `generator` makes rows with the columns `made`, each behind the row."""

    filters: tuple[Handle, ...]
    generator: Handle
    outer: bool
    made: tuple[Column, ...]


@dataclass(frozen=True)
class Branch:
    """The rows of one operator on their way: multiplied, filtered and projected to `out`, going nowhere yet.

    All expressions are over `columns`, the source's row under the names of the one who reads it, and what the makers
    have added.
    """

    source: Operator
    columns: tuple[Column, ...]
    filters: tuple[Handle, ...]
    out: tuple[Handle, ...]
    makers: tuple[Maker, ...] = ()


@dataclass(frozen=True, eq=False)
class Edge:
    """Rows of a branch go to `port` of `target`, under `key`, with the columns `value`."""

    branch: Branch
    target: Operator
    port: int
    key: tuple[Handle, ...]
    value: tuple[Handle, ...]

    @property
    def source(self) -> Operator:
        return self.branch.source


@dataclass(frozen=True)
class Flow:
    """The rows of a relation: one branch, or several where a union has them meet."""

    branches: tuple[Branch, ...]
    growing: bool
    key: tuple[int, ...] | None
    """The numbers of the output columns that are unique together; None where none are known."""

    def is_unique(self, columns: Sequence[int]) -> bool:
        """Whether no two rows have the same values in these columns, as far as is known."""
        return self.key is not None and set(self.key) <= set(columns)

    @property
    def out(self) -> tuple[Handle, ...]:
        """The output columns, as far as their names and numbers go."""
        return self.branches[0].out


class Graph:
    """What the views of a pipeline have become so far."""

    def __init__(self, door: Handle, jvm: Handle) -> None:
        self.door = door
        self.jvm = jvm
        # Named once: Java looks for classes "java" and "java.util" in every jar before it takes them for packages.
        self._java_list = jvm.java.util.ArrayList
        self.operators: list[Operator] = []
        self.sources: dict[str, Operator] = {}
        self.views: dict[str, tuple[Operator, Flow]] = {}
        self.late: dict[str, Operator] = {}

    def handles(self, items: Sequence[Any]) -> Handle:
        made = self._java_list()
        for item in items:
            made.add(item)
        return made

    def operator(self, kind: str, title: str = "", **parts: Any) -> Operator:
        made = Operator(len(self.operators), kind, title, parts=parts)
        self.operators.append(made)
        return made

    def upstream(self, operator: Operator) -> set[int]:
        """The numbers of all operators from which rows come to it."""
        into: dict[int, list[Operator]] = {}
        for each in self.operators:
            for edge in each.edges:
                into.setdefault(edge.target.id, []).append(each)
        found, ahead = {operator.id}, [operator]
        while ahead:
            more = [each for each in into.get(ahead.pop().id, []) if each.id not in found]
            found.update(each.id for each in more)
            ahead += more
        return found

    def connect(
        self, branch: Branch, target: Operator, port: int, *, key: Sequence[Handle], value: Sequence[Handle]
    ) -> None:
        branch.source.edges.append(Edge(branch, target, port, tuple(key), tuple(value)))

    def values(self, branch: Branch) -> tuple[Handle, ...]:
        return tuple(self.door.plain(e) for e in branch.out)

    def substituted(self, expression: Handle, branch: Branch) -> Handle:
        """The expression over the branch's columns, in place of what comes out of it."""
        return self.door.substituted(expression, self.handles(branch.out))

    def over(self, expressions: Handle, branch: Branch) -> list[Handle]:
        return [self.substituted(each, branch) for each in self.door.list(expressions)]

    def renamed(self, flow: Flow, chosen: Sequence[int], columns: Sequence[Column]) -> Flow:
        """The flow with its output columns `chosen`, under other names and numbers."""
        numbers = {self.door.identity(flow.out[i]): column.id for i, column in zip(chosen, columns, strict=True)}
        kept = flow.key is not None and all(number in numbers for number in flow.key)
        branches = [
            replace(b, out=tuple(self.door.renamed(b.out[i], c.handle) for i, c in zip(chosen, columns, strict=True)))
            for b in flow.branches
        ]
        return Flow(tuple(branches), flow.growing, tuple(numbers[n] for n in flow.key or ()) if kept else None)

    def answer(
        self, operator: Operator, columns: Sequence[Column], *, growing: bool, key: tuple[int, ...] | None
    ) -> Flow:
        """What an operator gives out: these columns of its row."""
        branch = Branch(operator, tuple(operator.row), (), tuple(column.handle for column in columns))
        return Flow((branch,), growing=growing, key=key)
