"""As-of joins, put into the graph over the flows that feed them."""

from dataclasses import replace

from penstock.engine.graph import Branch, Flow, Graph
from penstock.engine.nodes import AsOf, Handle
from penstock.engine.stateful import describe_join, without_partner


def paired(graph: Graph, node: AsOf, left: Flow, right: Flow) -> Flow:
    """Rows that can have no partner, because their key or time is NULL or a condition of their side does not hold, stay
    away from the operator, or pass it by. Where rows only come, those of the left can be freed as time goes on.
    """
    closing = node.parts.closing() if left.growing and right.growing else None
    operator = graph.operator("asof", plan=node.parts, closing=closing)
    keys = (node.parts.leftKeys(), node.parts.rightKeys())
    lone: list[Branch] = []
    for port, flow in enumerate((left, right)):
        for branch in flow.branches:
            key, time = graph.over(keys[port], branch), graph.over(node.parts.extra(port), branch)
            fulfilled = _fulfilled(graph, node, branch, port, (*key, *time))
            narrowed = replace(branch, filters=(*branch.filters, *fulfilled))
            graph.connect(narrowed, operator, port, key=key, value=(*graph.values(branch), *time))
            unmet = graph.door.unmet(graph.handles(fulfilled))
            if port == 0 and node.parts.kind() == "left" and unmet is not None:
                alone = replace(branch, filters=(*branch.filters, unmet))
                lone.append(without_partner(graph, node.parts.kind(), node, alone))
    describe_join(graph, operator, node, (left, right))
    operator.key = tuple(graph.door.list(keys[0]))
    if node.parts.kind() == "inner":  # both sides have the same
        operator.parts["twins"] = (list(graph.door.list(keys[1])),)
    flow = graph.answer(operator, node.columns, growing=False, key=left.key)
    return replace(flow, branches=(*flow.branches, *lone))


def _fulfilled(graph: Graph, node: AsOf, branch: Branch, port: int, known: tuple[Handle, ...]) -> list[Handle]:
    """What must hold of a row for it to be looked at: `known` is not NULL, and the conditions of its side."""
    return [*graph.door.notNull(graph.handles(known)), *graph.over(node.parts.conditions(port), branch)]
