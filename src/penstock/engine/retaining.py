"""Joins that are corrected for a limited time, put into the graph over the flows that feed them."""

from dataclasses import replace

from penstock.engine.graph import Branch, Flow, Graph
from penstock.engine.levels import TABLES
from penstock.engine.nodes import Beyond, Retained
from penstock.engine.stateful import LONE, describe_join, key_of_join, without_partner

STEPWISE = ("source", "evaluated", "retained", *TABLES)
"""Whose changes come one by one, each at the place of the record that makes it."""


def kept(graph: Graph, node: Retained, left: Flow, right: Flow) -> Flow:
    """Rows whose key is NULL match nothing: they stay away from the operator, or pass it by as without a partner.

    Tables say of every record what it changes: what counts for a row depends on where the record stands, and a batch
    may hold several of one key.
    """
    plan, kind = node.parts, node.parts.kind()
    operator = graph.operator("retained", plan=plan)
    keys = (list(graph.door.list(plan.leftKeys())), list(graph.door.list(plan.rightKeys())))
    lone: list[Branch] = []
    for port, flow in enumerate((left, right)):
        for branch in flow.branches:
            _step(branch)
            over = [graph.substituted(key, branch) for key in keys[port]]
            present = tuple(graph.door.notNull(graph.handles(over)))
            narrowed = replace(branch, filters=(*branch.filters, *present))
            value = (*graph.values(branch), *graph.over(plan.extra(port), branch))
            graph.connect(narrowed, operator, port, key=over, value=value)
            without = graph.door.anyNull(graph.handles(over))
            if port in LONE.get(kind, ()) and without is not None:
                lone.append(without_partner(graph, kind, node, replace(branch, filters=(*branch.filters, without))))
    describe_join(graph, operator, node, (left, right))
    operator.key = tuple(keys[1] if kind == "right" else keys[0])
    if kind == "inner":  # both sides have the same
        operator.parts["twins"] = (keys[1],)
    growing = kind in ("inner", "semi") and left.growing and right.growing
    flow = graph.answer(operator, node.columns, growing=growing, key=key_of_join(graph, kind, keys, (left, right)))
    return replace(flow, branches=(*flow.branches, *lone))


def missed(graph: Graph, node: Beyond, left: Flow, right: Flow) -> Flow:
    """Records that come too late to correct what has their key."""
    operator = graph.operator("beyond", plan=node.plan)
    values = ([node.plan.over()], graph.door.list(node.plan.record()))
    for port, flow in enumerate((left, right)):
        for branch in flow.branches:
            _step(branch)
            key = graph.over(node.plan.keys(port), branch)
            value = [graph.substituted(each, branch) for each in values[port]]
            present = tuple(graph.door.notNull(graph.handles(key)))
            narrowed = replace(branch, filters=(*branch.filters, *present))
            graph.connect(narrowed, operator, port, key=key, value=value)
    operator.row = list(node.columns)
    operator.key = tuple(graph.door.list(node.plan.keys(0)))
    return graph.answer(operator, node.columns, growing=True, key=None)


def _step(branch: Branch) -> None:
    source = branch.source
    assert source.kind in STEPWISE, source.kind
    if source.kind in TABLES:
        source.parts["stepwise"] = True
