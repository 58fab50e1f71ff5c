"""Operators with state: joins, aggregates, windows and first rows, put into the graph over the flows that feed them.

`closing` is what frees an operator's state as time goes on; nothing where nothing does.
"""

from dataclasses import replace

from penstock.engine.graph import Branch, Flow, Graph, Operator
from penstock.engine.nodes import Aggregate, AsOf, Column, Handle, Held, Join, Retained, Session, Top, Window

PARTS = 16
"""The first rows of all are looked for among the first rows of so many parts, which tasks find side by side."""
FEW = 10_000
"""Up to so many rows that pays."""
LONE = {"left": (0,), "right": (1,), "full": (0, 1), "anti": (0,), "exists": (0,)}
"""By kind of join: the sides whose rows are in the answer even without a partner."""


def joined(graph: Graph, node: Join, left: Flow, right: Flow, closing: Handle | None) -> Flow:
    """Rows whose key is NULL match nothing: they stay away from the operator, or pass it by as without a partner."""
    plan = graph.door.joinPlan(node.plan, closing)
    operator, kind = graph.operator("join", plan=plan, closing=closing), plan.kind()
    keys = (list(graph.door.list(plan.leftKeys())), list(graph.door.list(plan.rightKeys())))
    lone: list[Branch] = []
    for port, flow in enumerate((left, right)):
        for branch in flow.branches:
            over = [graph.substituted(key, branch) for key in keys[port]]
            extra = graph.over(plan.extra(port), branch)
            present = tuple(graph.door.notNull(graph.handles(over)))
            narrowed = replace(branch, filters=(*branch.filters, *present))
            graph.connect(narrowed, operator, port, key=over, value=(*graph.values(branch), *extra))
            without = graph.door.anyNull(graph.handles(over))
            if port in LONE.get(kind, ()) and without is not None:
                alone = replace(branch, filters=(*branch.filters, without))
                lone.append(without_partner(graph, kind, node, alone))
    describe_join(graph, operator, node, (left, right))
    operator.key = tuple({"right": keys[1], "full": []}.get(kind, keys[0]))
    if kind == "inner":  # both sides have the same
        operator.parts["twins"] = (keys[1],)
    growing = kind in ("inner", "semi") and left.growing and right.growing
    flow = graph.answer(operator, node.columns, growing=growing, key=key_of_join(graph, kind, keys, (left, right)))
    return replace(flow, branches=(*flow.branches, *lone))


def describe_join(graph: Graph, operator: Operator, node: Join | Retained | AsOf, sides: tuple[Flow, Flow]) -> None:
    """The columns that the sides send, and those that come out."""
    known, plan = {column.id: column for column in node.columns}, operator.parts["plan"]
    sent: list[list[Column]] = []
    for port, flow in enumerate(sides):
        own = [Column(e.name(), graph.door.identity(e), e.toAttribute()) for e in flow.out]
        own += [Column(a.name(), graph.door.identity(a), a) for a in graph.door.list(plan.extraColumns(port))]
        sent.append(own)
    operator.parts["sent"] = tuple(sent)
    given = sent[0] + ([] if plan.kind() in ("semi", "anti", "exists") else sent[1])
    operator.row = [known.get(column.id, column) for column in given]
    if plan.kind() == "exists":
        operator.row.append(node.columns[-1])


def without_partner(graph: Graph, kind: str, node: Join | Retained | AsOf, branch: Branch) -> Branch:
    mine = {graph.door.identity(e): e for e in branch.out}
    missing = False if kind == "exists" else None
    out = [
        graph.door.renamed(mine[column.id], column.handle)
        if column.id in mine
        else graph.door.constant(column.handle, missing)
        for column in node.columns
    ]
    return replace(branch, out=tuple(out))


def key_of_join(
    graph: Graph, kind: str, keys: tuple[list[Handle], list[Handle]], sides: tuple[Flow, Flow]
) -> tuple[int, ...] | None:
    """A side whose key is joined on has at most one row for each of the other side, whose key it then is."""
    left, right = sides
    if kind in ("semi", "anti", "exists"):
        return left.key
    if kind == "full":  # rows without a partner have NULLs for the other side's key, and keys may be NULL themselves
        return None
    numbers = [{graph.door.identity(e) for e in side if graph.door.isColumn(e)} for side in keys]
    if left.key is not None and kind in ("inner", "left") and right.is_unique(tuple(numbers[1])):
        return left.key
    if right.key is not None and kind in ("inner", "right") and left.is_unique(tuple(numbers[0])):
        return right.key
    return None if left.key is None or right.key is None else (*left.key, *right.key)


def aggregated(graph: Graph, node: Aggregate, flow: Flow, closing: Handle | None) -> Flow:
    plan = graph.door.aggregatePlan(node.plan, flow.growing)
    slicing = _slicing(graph, node, plan, flow, closing)
    operator = graph.operator(
        "aggregate", plan=plan, node=node.plan, growing=flow.growing, closing=closing, slicing=slicing
    )
    operator.row = list(node.columns)
    for branch in flow.branches[slicing.latest() :: slicing.overlaps()] if slicing else flow.branches:
        under = graph.over(plan.keys(), branch)
        if slicing:
            under = list(graph.door.sliced(slicing, graph.handles(under), graph.handles(branch.filters)))
        graph.connect(branch, operator, 0, key=under, value=graph.over(plan.inputs(), branch))
    positions = list(plan.keyColumns())
    operator.key = tuple(node.columns[at].handle if at >= 0 else None for at in positions)
    telling = list(plan.tellingColumns())
    key = tuple(node.columns[at].id for at in telling) if all(at >= 0 for at in telling) else None
    return graph.answer(operator, node.columns, growing=False, key=key)


def _slicing(graph: Graph, node: Aggregate, plan: Handle, flow: Flow, closing: Handle | None) -> Handle | None:
    """How windows that overlap are cut into slices, so that a row counts once; nothing where they are not."""
    records = all(branch.source.kind == "source" and not branch.makers for branch in flow.branches)
    return graph.door.slicing(node.plan, plan, closing) if closing and flow.growing and records else None


def merged(graph: Graph, node: Aggregate, flow: Flow, closing: Handle | None) -> Flow | None:
    """An aggregate over sessions that need not know their rows; nothing where rows leave, or what was gathered apart
    cannot be put together.
    """
    plan = graph.door.aggregatePlan(node.plan, flow.growing)
    if not list(graph.door.list(plan.gap())):
        return None
    *keys, _ = graph.door.list(plan.keys())
    operator = graph.operator("sessions", plan=plan, node=node.plan, growing=True, closing=closing)
    operator.row = list(node.columns)
    for branch in flow.branches:
        key = [graph.substituted(each, branch) for each in keys]
        value = (*graph.over(plan.inputs(), branch), *graph.over(plan.gap(), branch))
        graph.connect(branch, operator, 0, key=key, value=value)
    *positions, _ = plan.keyColumns()
    operator.key = tuple(node.columns[at].handle if at >= 0 else None for at in positions)
    return graph.answer(operator, node.columns, growing=False, key=None)


def assigned(graph: Graph, node: Session, flow: Flow, closing: Handle | None) -> Flow:
    """Rows learn which session they belong to."""
    operator = graph.operator("session", node=node.plan, closing=closing)
    for branch in flow.branches:
        key = graph.over(graph.door.keyed(node.keys), branch)
        graph.connect(branch, operator, 0, key=key, value=graph.values(branch))
    operator.row = list(node.columns)
    operator.key = tuple(graph.door.list(graph.door.keyed(node.keys)))
    return graph.answer(operator, node.columns, growing=False, key=flow.key)


def held(graph: Graph, node: Held, flow: Flow, closing: Handle, *, corrected: bool) -> Flow:
    """Rows of one time are spread over some keys; what is shown stays, unless it may be corrected."""
    operator = graph.operator("hold", node=node.plan, closing=closing)
    for branch in flow.branches:
        values = graph.values(branch)
        part = graph.door.spread(graph.handles(values), PARTS)
        key = [graph.substituted(node.over, branch), part]
        graph.connect(branch, operator, 0, key=key, value=values)
    operator.row = list(node.columns)
    return graph.answer(operator, node.columns, growing=not corrected, key=flow.key)


def windowed(graph: Graph, node: Window, flow: Flow, closing: Handle | None) -> Flow:
    operator = graph.operator("window", plan=node.parts, node=node.plan, closing=closing)
    for branch in flow.branches:
        key = graph.over(node.parts.keys(), branch)
        graph.connect(branch, operator, 0, key=key, value=graph.over(node.parts.inputs(), branch))
    operator.row = [Column(a.name(), graph.door.identity(a), a) for a in graph.door.list(node.parts.output())]
    operator.key = tuple(graph.door.list(node.parts.keys()))
    return graph.answer(operator, node.columns, growing=False, key=flow.key)


def topped(graph: Graph, node: Top, flow: Flow, closing: Handle | None) -> Flow:
    """The first rows; where they are few, and of all rows, first of each part, then of those."""
    wanted = node.limit + node.offset
    if not node.partition and wanted <= FEW:
        flow = _first(graph, node, flow, None, limit=wanted, offset=0, parts=PARTS)
    return _first(graph, node, flow, closing, limit=node.limit, offset=node.offset, parts=0)


def _first(  # noqa: PLR0913 (what a kernel operator is made of)
    graph: Graph, node: Top, flow: Flow, closing: Handle | None, *, limit: int, offset: int, parts: int
) -> Flow:
    handles = graph.handles
    columns = [column.handle for column in node.columns]
    plan = graph.door.topPlan(
        handles(node.partition), handles(node.orders), handles(columns), limit, offset, node.counted
    )
    operator = graph.operator(
        "top", plan=plan, node=node, growing=flow.growing, limit=limit, offset=offset, closing=closing
    )
    for branch in flow.branches:
        values = graph.values(branch)
        key = [graph.door.spread(handles(values), parts)] if parts else graph.over(plan.keys(), branch)
        graph.connect(branch, operator, 0, key=key, value=values)
    operator.row = list(node.columns)
    operator.parts["spread"] = (parts,) if parts else ()
    operator.key = () if parts else tuple(graph.door.list(plan.keys()))
    return graph.answer(operator, node.columns, growing=False, key=flow.key)
