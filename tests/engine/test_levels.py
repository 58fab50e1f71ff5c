"""Which operators run together, and when."""

from collections.abc import Collection, Mapping, Sequence

from penstock.engine.graph import Branch, Edge, Operator
from penstock.engine.levels import Layout, laid_out


def layout(
    edges: dict[str, str], same: Collection[str], within: Mapping[str, Sequence[int]] | None = None, tables: str = ""
) -> Layout:
    """Of operators with names of one letter: `edges` says where each sends rows, to a view where it does not; `same`,
    which do so under their key; `within`, which do so under one that contains it, and at which place, edge by edge.
    """
    names = sorted({*edges, *"".join(edges.values())})
    operators = [
        *(Operator(number, "upsert" if name in tables else "aggregate", name) for number, name in enumerate(names))
    ]
    operators.append(Operator(len(names), "view", "-"))
    known = {operator.title: operator for operator in operators}
    places: dict[Edge, int] = {}
    for name in names:
        targets = edges.get(name, "-")
        for at, target in enumerate(targets):
            edge = Edge(Branch(known[name], (), (), ()), known[target], 0, (), ())
            known[name].edges.append(edge)
            if name + target in (within or {}):
                places[edge] = (within or {})[name + target][targets[:at].count(target)]

    def is_same(edge: Edge) -> bool:
        return edge.source.title + edge.target.title in same

    return laid_out(operators, is_same, lambda edge: (frozenset({places[edge]}),) if edge in places else ())


def chains(found: Layout) -> list[str]:
    return sorted("".join(operator.title for operator in chain.operators) for chain in found.chains)


def test_what_follows_under_the_same_key_runs_together() -> None:
    found = layout({"a": "b", "b": "c"}, {"ab"})
    assert chains(found) == ["ab", "c"]
    assert found.depth == 2


def test_what_others_must_run_between_runs_apart() -> None:
    assert chains(layout({"a": "bc", "b": "c"}, {"ac"})) == ["a", "b", "c"]


def test_chains_that_would_feed_each_other_stay_apart() -> None:
    found = layout({"a": "bd", "c": "bd"}, {"ab", "cd"})
    assert chains(found) == ["ab", "c", "d"]
    assert found.depth == 3


def test_a_chain_is_one_above_the_highest_that_it_feeds() -> None:
    found = layout({"a": "bc", "b": "c"}, set())
    assert {chain.operators[0].title: found.level[chain.id] for chain in found.chains} == {"a": 3, "b": 2, "c": 1}


def test_what_follows_under_a_key_that_contains_it_runs_together() -> None:
    assert chains(layout({"a": "b", "b": "c"}, (), {"ab": [0], "bc": [1]})) == ["abc"]
    assert chains(layout({"a": "b", "b": "c"}, {"ab"}, {"bc": [0]})) == ["abc"]
    assert chains(layout({"a": "b", "b": "c"}, {"bc"}, {"ab": [0]})) == ["abc"]
    assert chains(layout({"a": "bb"}, (), {"ab": [1, 1]})) == ["ab"]


def test_what_gets_rows_from_elsewhere_under_a_longer_key_runs_apart() -> None:
    assert chains(layout({"a": "b", "c": "b"}, (), {"ab": [0]})) == ["a", "b", "c"]
    assert chains(layout({"a": "b", "c": "b"}, (), {"ab": [0], "cb": [0]})) == ["a", "b", "c"]
    assert chains(layout({"a": "b", "b": "c", "d": "c"}, {"bc"}, {"ab": [0]})) == ["a", "bc", "d"]
    assert chains(layout({"a": "b", "c": "b"}, {"cb"}, {"ab": [0]}, tables="c")) == ["a", "cb"]


def test_what_gets_the_shorter_key_at_different_places_runs_apart() -> None:
    assert chains(layout({"a": "bb"}, (), {"ab": [0, 1]})) == ["a", "b"]
