"""Levels and chains: when each operator runs.

Operators that follow each other under the same key form a chain and run together; so do those whose keys contain the
key of the one before, if all that they get comes from there: rows that are equal in more columns are together already.
A chain is placed as late as possible, on levels counted from the sink: views are on level 0, and a chain is one above
the highest of those that it feeds. On a cluster the fixed cost of a batch grows with the number of
levels.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from penstock.engine.graph import Edge, Operator

Within = tuple[frozenset[int], ...]
"""For each part of one key, the places at which it stands in another."""
SINKS = ("view", "late")
PLACELESS = ("source", "static", "evaluated", *SINKS)
TABLES = ("upsert", "bag")
"""Who takes records; all others take rows."""


@dataclass(frozen=True, eq=False)
class Chain:
    id: int
    operators: tuple[Operator, ...]


@dataclass(frozen=True)
class Layout:
    """Every operator's chain, and every chain's level."""

    chains: tuple[Chain, ...]
    of: Mapping[int, Chain]
    level: Mapping[int, int]

    @property
    def depth(self) -> int:
        return max(self.level.values(), default=0)


def laid_out(
    operators: Sequence[Operator], same_key: Callable[[Edge], bool], in_key: Callable[[Edge], Within]
) -> Layout:
    """`same_key` says whether an edge leaves and arrives under the same key; `in_key`, where in the key that it arrives
    under the parts of the one that it left are, nothing if they are not.
    """
    placed = [operator for operator in operators if operator.kind not in PLACELESS and operator.edges]
    group = {operator.id: operator.id for operator in placed}
    edges = [edge for operator in placed for edge in operator.edges if edge.target.kind not in PLACELESS]
    moving = [edge for edge in edges if not same_key(edge)]
    for edge in edges:
        if edge not in moving:
            _join(group, operators, edge, moving)
    narrowing = {edge: within for edge in moving if (within := in_key(edge))}
    for edge in narrowing:
        if _gets_all(group, operators, edge, narrowing):
            _join(group, operators, edge, [each for each in moving if each not in narrowing])
    chains = _chains(placed, group)
    of = {operator.id: chain for chain in chains for operator in chain.operators}
    return Layout(tuple(chains), of, _levels(chains, of))


def _join(group: dict[int, int], operators: Sequence[Operator], edge: Edge, moving: Sequence[Edge]) -> None:
    """Puts the two ends into one group, unless rows also travel between them by way of others: those must run in
    between; or by an edge on which they are `moving` to another key: those must be sent there.
    """
    one, two = group[edge.source.id], group[edge.target.id]
    merged = {operator for operator, g in group.items() if g in (one, two)}
    outside = {
        each.target.id
        for operator in operators
        if operator.id in merged
        for each in operator.edges
        if each.target.id not in merged
    }
    sent = any(each.source.id in merged and each.target.id in merged for each in moving)
    if one != two and not sent and not _reaches(operators, group, outside, merged):
        group.update(dict.fromkeys(merged, one))


def _gets_all(
    group: Mapping[int, int], operators: Sequence[Operator], edge: Edge, narrowing: Mapping[Edge, Within]
) -> bool:
    """Whether all that comes to the group of the edge's target does so from its source, by such edges, with the key
    that was left at the same places: what comes from elsewhere, or has it elsewhere, would be in other slots.
    """
    taker = group[edge.target.id]
    coming = [
        each
        for operator in operators
        for each in operator.edges
        if group.get(each.target.id) == taker and group.get(operator.id) != taker
    ]
    tables = any(operator.kind in TABLES and group.get(operator.id) == taker for operator in operators)
    if tables or not all(each.source is edge.source and each in narrowing for each in coming):
        return False
    parts = zip(*(narrowing[each] for each in coming), strict=True)
    return all(frozenset.intersection(*places) for places in parts)


def _reaches(operators: Sequence[Operator], group: Mapping[int, int], starts: Iterable[int], goals: set[int]) -> bool:
    """Whether rows travel from `starts` to `goals`; those of one group run together, so what one sends, all do."""
    seen: set[int] = set()
    ahead = list(starts)
    while ahead:
        at = ahead.pop()
        if at in goals:
            return True
        if at not in seen:
            together = [
                each.id for each in operators if each.id == at or (at in group and group.get(each.id) == group[at])
            ]
            seen.update(together)
            ahead += [edge.target.id for each in together for edge in operators[each].edges]
    return False


def _chains(placed: Sequence[Operator], group: Mapping[int, int]) -> list[Chain]:
    """The groups, each in the order in which rows pass its operators."""
    members: dict[int, list[Operator]] = {}
    for operator in placed:
        members.setdefault(group[operator.id], []).append(operator)
    return [Chain(head, tuple(_in_order(group_))) for head, group_ in members.items()]


def _in_order(members: Sequence[Operator]) -> list[Operator]:
    ids = {operator.id for operator in members}
    rank: dict[int, int] = {}

    def ranked(operator: Operator) -> int:
        if operator.id not in rank:
            rank[operator.id] = 1 + max((ranked(e.target) for e in operator.edges if e.target.id in ids), default=0)
        return rank[operator.id]

    return sorted(members, key=lambda operator: (-ranked(operator), operator.id))


def _levels(chains: Sequence[Chain], of: Mapping[int, Chain]) -> dict[int, int]:
    levels: dict[int, int] = {}

    def level(chain: Chain) -> int:
        if chain.id not in levels:
            targets = {edge.target.id for operator in chain.operators for edge in operator.edges}
            after = {of[target].id: of[target] for target in targets if target in of and of[target] is not chain}
            levels[chain.id] = 1 + max((level(each) for each in after.values()), default=0)
        return levels[chain.id]

    for chain in chains:
        level(chain)
    return levels
