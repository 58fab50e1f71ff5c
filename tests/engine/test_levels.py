"""Which operators run together, and when."""

from collections.abc import Collection

from penstock.engine.graph import Branch, Edge, Operator
from penstock.engine.levels import Layout, laid_out


def layout(edges: dict[str, str], same: Collection[str], within: Collection[str] = (), tables: str = "") -> Layout:
    """Of operators with names of one letter: `edges` says where each sends rows, to a view where it does not; `same`,
    which do so under their key; `within`, which do so under one that contains it.
    """
    names = sorted({*edges, *"".join(edges.values())})
    operators = [
        *(Operator(number, "upsert" if name in tables else "aggregate", name) for number, name in enumerate(names))
    ]
    operators.append(Operator(len(names), "view", "-"))
    known = {operator.title: operator for operator in operators}
    for name in names:
        for target in edges.get(name, "-"):
            known[name].edges.append(Edge(Branch(known[name], (), (), ()), known[target], 0, (), ()))

    def named(edge: Edge) -> str:
        return edge.source.title + edge.target.title

    return laid_out(operators, lambda edge: named(edge) in same, lambda edge: named(edge) in {*same, *within})


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
    assert chains(layout({"a": "b", "b": "c"}, (), ("ab", "bc"))) == ["abc"]
    assert chains(layout({"a": "b", "b": "c"}, {"ab"}, {"bc"})) == ["abc"]
    assert chains(layout({"a": "b", "b": "c"}, {"bc"}, {"ab"})) == ["abc"]


def test_what_gets_rows_from_elsewhere_under_a_longer_key_runs_apart() -> None:
    assert chains(layout({"a": "b", "c": "b"}, (), {"ab"})) == ["a", "b", "c"]
    assert chains(layout({"a": "b", "c": "b"}, (), {"ab", "cb"})) == ["a", "b", "c"]
    assert chains(layout({"a": "b", "b": "c", "d": "c"}, {"bc"}, {"ab"})) == ["a", "bc", "d"]
    assert chains(layout({"a": "b", "c": "b"}, {"cb"}, {"ab"}, tables="c")) == ["a", "cb"]
