"""The graph: all views of a pipeline as operators, and edges between them.

Filters and projections belong to the edge that a row travels; what is left are operators with state. Equal sub-trees,
within a view or across views, become one operator. A relation knows whether it only grows, and which of its columns
are a key.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, assert_never

from penstock.engine.catalyst import Aggregate, Column, Filter, Handle, Join, Node, Project, Scan, Union
from penstock.model import Stream, Table

Relation = Stream | Table


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
class Edge:
    """Rows of `source` that pass `filters` go to `port` of `target`, under `key`, with the columns `value`.

    All expressions are over `columns`, the source's row under the names of the one who reads it.
    """

    source: Operator
    target: Operator
    port: int
    filters: tuple[Handle, ...]
    key: tuple[Handle, ...]
    value: tuple[Handle, ...]
    columns: tuple[Column, ...]


@dataclass(frozen=True)
class Branch:
    """The rows of one operator on their way: filtered and projected to `out`, going nowhere yet."""

    source: Operator
    columns: tuple[Column, ...]
    filters: tuple[Handle, ...]
    out: tuple[Handle, ...]


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
    """Built view by view: `add` reads a view's tree and joins it to what is there."""

    def __init__(self, door: Handle, jvm: Handle, relations: Mapping[str, Relation]) -> None:
        self.door = door
        self.jvm = jvm
        self.operators: list[Operator] = []
        self.sources: dict[str, Operator] = {}
        self.views: dict[str, tuple[Operator, Flow]] = {}
        self._relations = relations
        self._tables: dict[str, Operator] = {}
        self._known: list[tuple[Handle, Flow]] = []
        self._view = ""

    def handles(self, items: Sequence[Any]) -> Handle:
        made = self.jvm.java.util.ArrayList()
        for item in items:
            made.add(item)
        return made

    def add(self, view: str, tree: Node, key: Sequence[str] = ()) -> None:
        """Adds a view; those that it reads have been added before. `key` are the columns of a declared key."""
        self._view = view
        flow = self._flow(tree)
        at = {column.name(): self.door.identity(column) for column in flow.out}
        declared = tuple(at[name] for name in key)
        checked = self._unique(flow, declared) if key and not flow.is_unique(declared) else flow
        sink = self._operator("view", view)
        for branch in checked.branches:
            self._connect(branch, sink, 0, key=(), value=self._values(branch))
        self.views[view] = (sink, replace(flow, key=declared) if key else flow)

    def _unique(self, flow: Flow, key: Sequence[int]) -> Flow:
        """The same rows, by way of an operator that sees to it that no two have the same key.

        Views that read this one need not wait for that: a batch in which it is not so comes to nothing as a whole.
        """
        operator = self._operator("unique", self._view)
        operator.row = [Column(e.name(), self.door.identity(e), e.toAttribute()) for e in flow.out]
        at = [next(i for i, column in enumerate(operator.row) if column.id == number) for number in key]
        operator.key = tuple(operator.row[i].handle for i in at)
        for branch in flow.branches:
            values = self._values(branch)
            self._connect(branch, operator, 0, key=[self.door.normalized(values[i]) for i in at], value=values)
        return self._answer(operator, growing=flow.growing, key=tuple(key))

    def _operator(self, kind: str, title: str, **parts: Any) -> Operator:
        made = Operator(len(self.operators), kind, title, parts=parts, readers={self._view})
        self.operators.append(made)
        return made

    def _connect(
        self, branch: Branch, target: Operator, port: int, *, key: Sequence[Handle], value: Sequence[Handle]
    ) -> None:
        edge = Edge(branch.source, target, port, branch.filters, tuple(key), tuple(value), branch.columns)
        branch.source.edges.append(edge)

    def _values(self, branch: Branch) -> tuple[Handle, ...]:
        return tuple(self.door.plain(e) for e in branch.out)

    def _flow(self, node: Node) -> Flow:
        match node:
            case Scan():
                return self._scan(node)
            case Project(items, child):
                return self._project(items, self._flow(child))
            case Filter(condition, child):
                return self._filter(condition, self._flow(child))
            case Union():
                return self._union(node)
            case Join():
                return self._shared(node, lambda: self._join(node))
            case Aggregate():
                return self._shared(node, lambda: self._aggregate(node))
            case _:
                assert_never(node)

    def _substituted(self, expression: Handle, branch: Branch) -> Handle:
        return self.door.substituted(expression, self.handles(branch.out))

    def _filter(self, condition: Handle, flow: Flow) -> Flow:
        branches = [replace(b, filters=(*b.filters, self._substituted(condition, b))) for b in flow.branches]
        return replace(flow, branches=tuple(branches))

    def _project(self, items: Sequence[Handle], flow: Flow) -> Flow:
        branches = [
            replace(b, out=tuple(self.door.named(item, self.handles(b.out)) for item in items)) for b in flow.branches
        ]
        return replace(flow, branches=tuple(branches), key=self._kept_key(flow, branches[0].out))

    def _kept_key(self, flow: Flow, out: Sequence[Handle]) -> tuple[int, ...] | None:
        """The key after a projection: it stays one if all its columns are still there, under whatever names."""
        if flow.key is None:
            return None
        before = {self.door.identity(e): self.door.plain(e) for e in flow.out}
        kept = []
        for number in flow.key:
            same = [self.door.identity(e) for e in out if self.door.same(self.door.plain(e), before[number])]
            if not same:
                return None
            kept.append(same[0])
        return tuple(kept)

    def _scan(self, node: Scan) -> Flow:
        if node.relation in self.views:
            return self._view_scan(node)
        relation = self._relations[node.relation]
        source = self._source(node.relation)
        out = tuple(column.handle for column in node.columns)
        if isinstance(relation, Stream):
            self._widen(source, node.columns)
            return Flow((Branch(source, node.columns, (), out),), growing=True, key=None)
        table = self._table(relation, source)
        self._widen(table, node.columns)
        names = {column.name: column.id for column in node.columns}
        key = tuple(names[name] for name in relation.key if name in names)
        whole = relation.key and len(key) == len(relation.key)
        return Flow((Branch(table, node.columns, (), out),), growing=False, key=key if whole else None)

    def _source(self, name: str) -> Operator:
        if name not in self.sources:
            self.sources[name] = self._operator("source", name)
        return self.sources[name]

    def _view_scan(self, node: Scan) -> Flow:
        _, flow = self.views[node.relation]
        at = {e.name(): i for i, e in enumerate(flow.out)}
        chosen = [at[column.name] for column in node.columns]
        return self._renamed(flow, chosen, node.columns)

    def _renamed(self, flow: Flow, chosen: Sequence[int], columns: Sequence[Column]) -> Flow:
        """The flow with its output columns `chosen`, under other names and numbers."""
        for branch in flow.branches:
            branch.source.readers.add(self._view)
        numbers = {self.door.identity(flow.out[i]): column.id for i, column in zip(chosen, columns, strict=True)}
        kept = flow.key is not None and all(number in numbers for number in flow.key)
        branches = [
            replace(b, out=tuple(self.door.renamed(b.out[i], c.handle) for i, c in zip(chosen, columns, strict=True)))
            for b in flow.branches
        ]
        return Flow(tuple(branches), flow.growing, tuple(numbers[n] for n in flow.key or ()) if kept else None)

    def _widen(self, operator: Operator, columns: Sequence[Column]) -> None:
        operator.readers.add(self._view)
        known = {column.name for column in operator.row}
        operator.row += [column for column in columns if column.name not in known]

    def _table(self, relation: Table, source: Operator) -> Operator:
        if relation.name not in self._tables:
            self._tables[relation.name] = self._operator(
                "upsert" if relation.key else "bag", relation.name, relation=relation, source=source
            )
        return self._tables[relation.name]

    def _union(self, node: Union) -> Flow:
        """Rows of all inputs go the same way from here."""
        flows = [self._renamed(self._flow(child), range(len(node.columns)), node.columns) for child in node.children]
        branches = tuple(branch for flow in flows for branch in flow.branches)
        return Flow(branches, growing=all(flow.growing for flow in flows), key=None)

    def _shared(self, node: Join | Aggregate, made: Callable[[], Flow]) -> Flow:
        """The flow of an equal tree that is there already, under this node's names, or a new one."""
        canonical = self.door.canonical(node.plan)
        for known, flow in self._known:
            if canonical.equals(known):
                return self._renamed(flow, range(len(node.columns)), node.columns)
        flow = made()
        self._known.append((canonical, flow))
        return flow

    def _join(self, node: Join) -> Flow:
        left, right = self._flow(node.left), self._flow(node.right)
        operator = self._operator("join", "", condition=node.condition, sides=(len(left.out), len(right.out)))
        operator.row = list(node.columns)
        for port, flow, keys in ((0, left, node.left_keys), (1, right, node.right_keys)):
            for branch in flow.branches:
                self._connect_present(branch, operator, port, keys)
        operator.key = tuple(node.left_keys)
        key = (*left.key, *right.key) if left.key is not None and right.key is not None else None
        return self._answer(operator, growing=left.growing and right.growing, key=key)

    def _connect_present(self, branch: Branch, target: Operator, port: int, keys: Sequence[Handle]) -> None:
        """Rows whose key is NULL match nothing and stay away."""
        over = [self._substituted(key, branch) for key in keys]
        present = tuple(self.door.notNull(self.handles(over)))
        narrowed = replace(branch, filters=(*branch.filters, *present))
        self._connect(narrowed, target, port, key=over, value=self._values(branch))

    def _aggregate(self, node: Aggregate) -> Flow:
        flow = self._flow(node.child)
        plan = self.door.aggregatePlan(node.plan, flow.growing)
        operator = self._operator("aggregate", "", plan=plan, node=node.plan, growing=flow.growing)
        operator.row = list(node.columns)
        for branch in flow.branches:
            keys = [self._substituted(e, branch) for e in self.door.list(plan.keys())]
            inputs = [self._substituted(e, branch) for e in self.door.list(plan.inputs())]
            self._connect(branch, operator, 0, key=keys, value=inputs)
        positions = list(plan.keyColumns())
        operator.key = tuple(node.columns[at].handle if at >= 0 else None for at in positions)
        whole = all(at >= 0 for at in positions)
        return self._answer(
            operator, growing=False, key=tuple(node.columns[at].id for at in positions) if whole else None
        )

    def _answer(self, operator: Operator, *, growing: bool, key: tuple[int, ...] | None) -> Flow:
        columns = tuple(operator.row)
        branch = Branch(operator, columns, (), tuple(column.handle for column in columns))
        return Flow((branch,), growing=growing, key=key)
