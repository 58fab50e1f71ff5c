"""Flows: the tree of a view joins the graph, node by node.

Nodes without state change the flow that passes them; those with state become operators. Equal sub-trees, within a view
or across views, become one operator.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import assert_never

from penstock.engine.functions import evaluated
from penstock.engine.graph import Branch, Flow, Graph, Maker, Operator
from penstock.engine.nearest import paired
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
    Stateful,
    Static,
    Top,
    Union,
    Window,
)
from penstock.engine.retaining import kept, missed
from penstock.engine.stateful import aggregated, assigned, held, joined, merged, topped, windowed
from penstock.engine.timing import LATE, Times, Waiting, waiting
from penstock.model import Stream, Table, View

Relation = Stream | Table
NOWHERE = -3
"""Where the rows of a view go that is not kept: they are made, and that is all."""


class Flows:
    """View by view: `add` reads a view's tree and joins it to what is there."""

    def __init__(self, graph: Graph, relations: Mapping[str, Relation], times: Times) -> None:
        self._graph = graph
        self._times = times
        self._waiting: Waiting | None = None
        self._door = graph.door
        self._relations = relations
        self._tables: dict[str, Operator] = {}
        self._known: list[tuple[Handle, Waiting | None, Flow]] = []
        self._view = ""

    def add(self, view: View, tree: Node, key: Sequence[str] = ()) -> None:
        """Adds a view; those that it reads have been added before. `key` are the columns of a declared key."""
        self._view, self._waiting = view.name, waiting(view)
        flow = self._flow(tree)
        at = {column.name(): self._door.identity(column) for column in flow.out}
        declared = tuple(at[name] for name in key)
        checked = self._unique(view.name, flow, declared) if key and not flow.is_unique(declared) else flow
        sink = self._sink("view", view.name, [checked], **({"goes": NOWHERE} if view.options.store == "none" else {}))
        self._graph.views[view.name] = (sink, replace(flow, key=declared) if key else flow)

    def add_late(self, view: View, trees: Sequence[Node]) -> None:
        """Adds what a view leaves out because it came too late."""
        self._graph.late[view.name] = self._sink(LATE, view.name, [self._flow(tree) for tree in trees])

    def _sink(self, kind: str, view: str, flows: Sequence[Flow], **parts: int) -> Operator:
        sink = self._graph.operator(kind, view, **parts)
        for branch in [branch for flow in flows for branch in flow.branches]:
            self._graph.connect(branch, sink, 0, key=(), value=self._graph.values(branch))
        return sink

    def _unique(self, view: str, flow: Flow, key: Sequence[int]) -> Flow:
        """The same rows, by way of an operator that sees to it that no two have the same key; without key columns, that
        there is one row at most.

        Views that read this one need not wait for that: a batch in which it is not so comes to nothing as a whole.
        """
        operator = self._graph.operator("unique", view)
        operator.row = [Column(e.name(), self._door.identity(e), e.toAttribute()) for e in flow.out]
        at = [next(i for i, column in enumerate(operator.row) if column.id == number) for number in key]
        operator.key = tuple(operator.row[i].handle for i in at)
        for branch in flow.branches:
            values = self._graph.values(branch)
            keys = [self._door.normalized(values[i]) for i in at]
            self._graph.connect(branch, operator, 0, key=keys, value=values)
        return self._graph.answer(operator, operator.row, growing=flow.growing, key=tuple(key))

    def _flow(self, node: Node) -> Flow:
        match node:
            case Scan():
                return self._scan(node)
            case Static():
                return self._static(node)
            case Project(items, child):
                return self._project(items, self._flow(child))
            case Filter(condition, child):
                return self._filter(condition, self._flow(child))
            case Union():
                return self._union(node)
            case Expand():
                return self._expand(node)
            case Generate():
                return self._generate(node)
            case (
                Join()
                | Retained()
                | Beyond()
                | AsOf()
                | Aggregate()
                | Session()
                | Held()
                | Window()
                | Top()
                | Single()
                | Evaluate()
            ):
                return self._shared(node)
            case _:
                assert_never(node)

    def _shared(self, node: Stateful | Evaluate) -> Flow:
        """The flow of an equal tree that is there already, under this node's names, or a new one."""
        canonical = self._door.canonical(node.plan)
        how = self._waiting if self._times.has_clock(node.plan) else None
        for known, other, flow in self._known:
            if how == other and canonical.equals(known):
                return self._graph.renamed(flow, range(len(node.columns)), node.columns)
        flow = self._new(node)
        self._known.append((canonical, how, flow))
        return flow

    def _new(self, node: Stateful | Evaluate) -> Flow:
        match node:
            case Join(left=left, right=right):
                return joined(self._graph, node, self._flow(left), self._flow(right), self._closing(node))
            case Retained(left=left, right=right):
                return kept(self._graph, node, self._flow(left), self._flow(right))
            case Beyond(left=left, right=right):
                return missed(self._graph, node, self._flow(left), self._flow(right))
            case AsOf(left=left, right=right):
                return paired(self._graph, node, self._flow(left), self._flow(right))
            case Aggregate(child=Session(child=rows)) if made := merged(
                self._graph, node, self._flow(rows), self._closing(node)
            ):
                return made
            case Aggregate(child=child):
                return aggregated(self._graph, node, self._flow(child), self._closing(node))
            case Session(child=child):
                return assigned(self._graph, node, self._flow(child), self._closing(node))
            case Held(child=child):
                return held(self._graph, node, self._flow(child), self._closing(node), corrected=self._is_corrected)
            case Window(child=child):
                return windowed(self._graph, node, self._flow(child), self._closing(node))
            case Top(child=child):
                return topped(self._graph, node, self._flow(child), self._closing(node))
            case Single(child=child):
                return self._unique(self._view, self._flow(child), ())
            case Evaluate(child=child):
                return evaluated(self._graph, node, self._flow(child), self._view)
            case _:
                assert_never(node)

    def _closing(self, node: Stateful) -> Handle | None:
        """What frees the operator's state as time goes on, if anything does."""
        return None if self._waiting is None else self._times.closing(node.plan, self._waiting)

    @property
    def _is_corrected(self) -> bool:
        return self._waiting is not None and bool(self._waiting.allowed)

    def _filter(self, condition: Handle, flow: Flow) -> Flow:
        branches = [replace(b, filters=(*b.filters, self._graph.substituted(condition, b))) for b in flow.branches]
        return replace(flow, branches=tuple(branches))

    def _project(self, items: Sequence[Handle], flow: Flow) -> Flow:
        branches = [self._projected(branch, items) for branch in flow.branches]
        return replace(flow, branches=tuple(branches), key=self._kept_key(flow, branches[0].out))

    def _projected(self, branch: Branch, items: Sequence[Handle]) -> Branch:
        before = self._graph.handles(branch.out)
        return replace(branch, out=tuple(self._door.named(item, before) for item in items))

    def _kept_key(self, flow: Flow, out: Sequence[Handle]) -> tuple[int, ...] | None:
        """The key after a projection: it stays one if all its columns are still there, under whatever names."""
        if flow.key is None:
            return None
        before = {self._door.identity(e): self._door.plain(e) for e in flow.out}
        kept = []
        for number in flow.key:
            same = [self._door.identity(e) for e in out if self._door.same(self._door.plain(e), before[number])]
            if not same:
                return None
            kept.append(same[0])
        return tuple(kept)

    def _scan(self, node: Scan) -> Flow:
        if node.relation in self._graph.views:
            _, flow = self._graph.views[node.relation]
            at = {e.name(): i for i, e in enumerate(flow.out)}
            return self._graph.renamed(flow, [at[column.name] for column in node.columns], node.columns)
        relation = self._relations[node.relation]
        source = self._source(node.relation)
        out = tuple(column.handle for column in node.columns)
        if isinstance(relation, Stream):
            _widen(source, node.columns)
            return Flow((Branch(source, node.columns, (), out),), growing=True, key=None)
        table = self._table(relation, source)
        _widen(table, node.columns)
        names = {column.name: column.id for column in node.columns}
        key = tuple(names[name] for name in relation.key if name in names)
        whole = relation.key and len(key) == len(relation.key)
        return Flow((Branch(table, node.columns, (), out),), growing=False, key=key if whole else None)

    def _source(self, name: str) -> Operator:
        if name not in self._graph.sources:
            self._graph.sources[name] = self._graph.operator("source", name)
        return self._graph.sources[name]

    def _table(self, relation: Table, source: Operator) -> Operator:
        if relation.name not in self._tables:
            kind = "upsert" if relation.key else "bag"
            self._tables[relation.name] = self._graph.operator(kind, relation.name, relation=relation, source=source)
        return self._tables[relation.name]

    def _static(self, node: Static) -> Flow:
        """Rows that are there from the first batch on."""
        canonical = self._door.canonical(node.plan)
        for known, _, flow in self._known:
            if canonical.equals(known):
                return self._graph.renamed(flow, range(len(node.columns)), node.columns)
        name = f"static {1 + sum(operator.kind == 'static' for operator in self._graph.operators)}"
        source = self._graph.operator("static", name, plan=node.plan, origin=self._door.origin(node.plan))
        source.row = list(node.columns)
        self._graph.sources[name] = source
        out = tuple(column.handle for column in node.columns)
        flow = Flow((Branch(source, node.columns, (), out),), growing=True, key=None)
        self._known.append((canonical, None, flow))
        return flow

    def _union(self, node: Union) -> Flow:
        """Rows of all inputs go the same way from here."""
        flows = [
            self._graph.renamed(self._flow(child), range(len(node.columns)), node.columns) for child in node.children
        ]
        branches = tuple(branch for flow in flows for branch in flow.branches)
        return Flow(branches, growing=all(flow.growing for flow in flows), key=None)

    def _expand(self, node: Expand) -> Flow:
        """A row goes once for each projection."""
        flow = self._flow(node.child)
        branches = [
            replace(
                branch,
                out=tuple(
                    self._door.standing(self._graph.substituted(each, branch), column.handle)
                    for each, column in zip(projection, node.columns, strict=True)
                ),
            )
            for branch in flow.branches
            for projection in node.projections
        ]
        return Flow(tuple(branches), growing=flow.growing, key=None)

    def _generate(self, node: Generate) -> Flow:
        flow = self._flow(node.child)
        return Flow(tuple(self._generated(node, each) for each in flow.branches), growing=flow.growing, key=None)

    def _generated(self, node: Generate, branch: Branch) -> Branch:
        generator = self._graph.substituted(node.generator, branch)
        kept = self._projected(branch, [column.handle for column in node.kept])
        return replace(
            branch,
            filters=(),
            out=(*kept.out, *(column.handle for column in node.made)),
            makers=(*branch.makers, Maker(branch.filters, generator, node.outer, node.made)),
        )


def _widen(operator: Operator, columns: Sequence[Column]) -> None:
    known = {column.name for column in operator.row}
    operator.row += [column for column in columns if column.name not in known]
