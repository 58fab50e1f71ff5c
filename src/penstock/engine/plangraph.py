"""The plan of a pipeline as a graph, for programs: sources, operators and views, and which feeds which. Drawn from what
`explain` took out of the graph, in its words.
"""

from collections.abc import Iterator, Sequence
from typing import Any

from penstock.engine.explain import Answer, Explained, Input, Part
from penstock.engine.plantext import kept_text, key_text
from penstock.model import History, Pipeline, Stream, duration_text
from penstock.model.relation import Relation

Node = dict[str, Any]


def plan_graph(pipeline: Pipeline, plan: Explained) -> dict[str, Any]:
    """`{"nodes": [...], "edges": [[from, to], ...]}`; nodes in the order in which rows pass them."""
    parts = [(link.level, part) for link in plan.links for part in link.parts]
    ends = [(f"#{part.number}", part.inputs) for _, part in parts]
    ends += [(_view_id(answer.name), answer.inputs) for answer in plan.answers]
    nodes = [
        *_sources(pipeline, [each for _, inputs in ends for each in inputs]),
        *(_operator(level, part) for level, part in parts),
        *map(_view, plan.answers),
    ]
    edges = dict.fromkeys((_origin_id(each), end) for end, inputs in ends for each in inputs)
    return {"nodes": nodes, "edges": [list(edge) for edge in edges]}


def _sources(pipeline: Pipeline, inputs: Sequence[Input]) -> Iterator[Node]:
    """The relations that are declared, and the rows that are read once."""
    for relation in pipeline.relations:
        yield _node(f"source:{relation.name}", "source", relation.name, _declared(relation))
    known = {relation.name for relation in pipeline.relations}
    for name in dict.fromkeys(each.origin for each in inputs):
        if name not in known and not name.startswith("#"):
            yield _node(f"source:{name}", "source", name, "read once")


def _declared(relation: Relation) -> str:
    columns = f"({', '.join(relation.schema.names)})"
    if isinstance(relation, History):
        return f"history of {relation.topic} {columns}"
    if isinstance(relation, Stream):
        time = f", event time {relation.event_time}" if relation.event_time else ""
        mark = "" if relation.watermark is None else f", watermark {duration_text(relation.watermark)}"
        return f"stream {columns}{time}{mark}"
    return f"table {columns}, " + (f"key {', '.join(relation.key)}" if relation.key else "no key: a bag of rows")


def _operator(level: int, part: Part) -> Node:
    warning = f"the state of #{part.number} is {part.bound}" if part.bound.streams else None
    return _node(
        f"#{part.number}", "operator", part.title, part.does, level=level, state=str(part.bound), warning=warning
    )


def _view(answer: Answer) -> Node:
    detail = f"({', '.join(answer.columns)}), {key_text(answer)}; {kept_text(answer)}"
    return _node(_view_id(answer.name), "view", answer.name, detail, level=0)


def _node(  # noqa: PLR0913 (what a node is)
    id: str,
    kind: str,
    title: str,
    detail: str,
    *,
    level: int | None = None,
    state: str | None = None,
    warning: str | None = None,
) -> Node:
    return {
        "id": id,
        "kind": kind,
        "title": title,
        "detail": detail,
        "level": level,
        "state": state,
        "warning": warning,
    }


def _view_id(name: str) -> str:
    return f"view:{name}"


def _origin_id(each: Input) -> str:
    return each.origin if each.origin.startswith("#") else f"source:{each.origin}"
