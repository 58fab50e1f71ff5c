"""Explaining: what a planned pipeline does, as plain values: operators, levels, chains, who shares what, and what
bounds each state. `plantext` draws them.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from penstock.engine.bounds import Bound, Bounds
from penstock.engine.catalyst import ENDLESS
from penstock.engine.compile import Compiled
from penstock.engine.graph import Edge, Graph, Operator
from penstock.engine.levels import Layout
from penstock.engine.nodes import Handle
from penstock.engine.sinks import late_rows
from penstock.model import History, Pipeline, View, duration_text

QUALIFIER = re.compile(r"`?[A-Za-z_]\w*`?\.(?=[`A-Za-z_])")
PLAIN_NAME = re.compile(r"`([A-Za-z_]\w*|\w+\([^`]*\))`")
JOINS = {kind: f"{kind} join" for kind in ("left", "right", "full", "semi", "anti")} | {"exists": "existence join"}
TITLES = {
    "upsert": "table",
    "bag": "table",
    "beyond": "too late",
    "asof": "as-of join",
    "unique": "one row",
    "sessions": "aggregate",
    "session": "sessions",
    "top": "first rows",
}
RESULT = re.compile(r"_function_\d+_\d+")
STAMP = "_watermark"
APPENDED = "_appended_at"
KEEPS_VALUES = re.compile(r"\b(min|max|collect_list|collect_set|bool_and|bool_or|every|some|any)\(")


@dataclass(frozen=True)
class Input:
    """Where rows come from (an operator's number, or a relation's name), and what they must fulfil. `origin`: the same,
    without what is computed on the way.
    """

    source: str
    where: str = ""
    origin: str = ""


@dataclass(frozen=True)
class Part:
    """One operator: what it does, in a word or two (`title`) and in a line, from what, for which views, what its state
    holds, and what bounds that.
    """

    number: int
    title: str
    does: str
    inputs: tuple[Input, ...]
    readers: tuple[str, ...]
    state: str
    bound: Bound


@dataclass(frozen=True)
class Link:
    """Operators that run together, under one key, on a level."""

    level: int
    key: str
    parts: tuple[Part, ...]


@dataclass(frozen=True)
class Answer:
    """A view: its columns, its key, how it is kept, where its rows come from, when they are shown, what becomes of
    those that come too late, and by which columns its files are parted.
    """

    name: str
    columns: tuple[str, ...]
    key: tuple[str, ...]
    kept: str
    inputs: tuple[Input, ...]
    shown: str
    late: str
    partition_by: tuple[str, ...] = ()


@dataclass(frozen=True)
class Explained:
    pipeline: str
    links: tuple[Link, ...]
    answers: tuple[Answer, ...]

    @property
    def levels(self) -> int:
        return max((link.level for link in self.links), default=0)


def explained(pipeline: Pipeline, plan: Compiled, layout: Layout) -> Explained:
    histories = [each for each in pipeline.relations if isinstance(each, History)]
    drawing = _Drawing(plan.graph, frozenset(each.name for each in histories if each.watermark is None))
    links = [
        Link(layout.level[chain.id], drawing.key_of(chain.operators[0]), tuple(map(drawing.part, chain.operators)))
        for chain in sorted(layout.chains, key=lambda chain: (-layout.level[chain.id], chain.id))
    ]
    answers = [
        Answer(
            view.name,
            tuple(column.name() for column in plan.graph.views[view.name][1].out),
            plan.key_of(view.name),
            view.options.store,
            drawing.inputs_of(plan.graph.views[view.name][0]),
            "when its windows are complete" if view.options.emit == "final" else "",
            _late(view, plan),
            plan.partitions[view.name],
        )
        for view in pipeline.views
    ]
    return Explained(pipeline.name, tuple(links), tuple(answers))


def _late(view: View, plan: Compiled) -> str:
    match view.options.late:
        case "correct" if view.name in plan.late:
            allowed = duration_text(view.options.allowed_lateness)
            return f"rows correct windows for {allowed} after their end; then they go to {late_rows(view.name)}"
        case "keep" if view.name in plan.late:
            return f"rows go to {late_rows(view.name)}"
        case "drop" if view.name in plan.late:
            return "rows are counted, and dropped"
        case _:
            return ""


class _Drawing:
    """Takes texts out of the graph."""

    def __init__(self, graph: Graph, unmarked: frozenset[str]) -> None:
        self._graph = graph
        self._unmarked = unmarked
        self._into: dict[int, list[Edge]] = {}
        for operator in graph.operators:
            for edge in operator.edges:
                self._into.setdefault(edge.target.id, []).append(edge)
        self._bounds = Bounds(graph, self._into, unmarked)
        self._results: dict[str, str] = {}
        for operator in graph.sources.values():
            for call, column in zip(operator.parts.get("calls", ()), operator.parts.get("results", ()), strict=True):
                self._results[column.name] = self._text(call)
        self._readers: dict[int, set[str]] = {}
        for view, sink in [*((view, sink) for view, (sink, _) in graph.views.items()), *graph.late.items()]:
            self._read_by(view, sink)

    def _read_by(self, view: str, operator: Operator) -> None:
        """A view reads what feeds it, directly or by way of others."""
        if view not in self._readers.setdefault(operator.id, set()):
            self._readers[operator.id].add(view)
            for edge in self._into.get(operator.id, []):
                self._read_by(view, edge.source)

    def part(self, operator: Operator) -> Part:
        return Part(
            operator.id,
            self._title(operator),
            self._does(operator),
            self.inputs_of(operator),
            tuple(sorted(self._readers[operator.id])),
            self._state(operator),
            self._bounds.of_state(operator),
        )

    def key_of(self, operator: Operator) -> str:
        match operator.kind:
            case "upsert":
                return ", ".join(operator.parts["key"])
            case "bag":
                return "the whole row"
            case "join" | "retained" | "beyond" | "asof":
                return self._texts(self._into[operator.id][0].key) or "nothing: all rows"
            case "unique":
                return _names(operator.key) or "nothing: one row"
            case "window" | "session":
                return self._texts(operator.key) or "nothing: one partition"
            case "hold":
                return "when rows are complete"
            case "top":
                return "a part of the rows" if operator.parts["spread"] else self._texts(operator.key) or "nothing"
            case _:
                return self._groups(operator) or "nothing: one row"

    def inputs_of(self, operator: Operator) -> tuple[Input, ...]:
        if operator.kind in ("upsert", "bag"):
            return (self._input(operator.parts["source"], ()),)
        return tuple(self._input(edge.source, edge.branch.filters) for edge in self._into[operator.id])

    def _input(self, source: Operator, filters: Sequence[Handle]) -> Input:
        before = self._filters_before(source) if source.kind == "evaluated" else ()
        return Input(self._name(source), self._filters((*before, *filters)), self._origin(source))

    def _origin(self, operator: Operator) -> str:
        if operator.kind == "evaluated":
            return self._origin(operator.parts["root"])
        return str(operator.parts["origin"]) if operator.kind == "static" else self._name(operator)

    def _filters_before(self, source: Operator) -> tuple[Handle, ...]:
        """What rows have passed before the functions are called on them."""
        branch, base = source.parts["branch"], source.parts["base"]
        made = tuple(each for maker in branch.makers for each in maker.filters)
        return (*(self._filters_before(base) if base.kind == "evaluated" else ()), *made, *branch.filters)

    def _title(self, operator: Operator) -> str:
        match operator.kind:
            case "join" | "retained":
                return JOINS.get(operator.parts["plan"].kind(), "join")
            case kind:
                return TITLES.get(kind, kind)

    def _does(self, operator: Operator) -> str:
        match operator.kind:
            case "upsert" | "bag":
                return f"table {self._name(operator.parts['source'])}"
            case "join" | "retained":
                return self._joins(operator)
            case "beyond":
                return "records that come too late to correct rows"
            case "asof":
                return self._nearest(operator)
            case "unique" if not operator.key:
                return "one row at most"
            case "unique":
                return f"declared key of {operator.title}: one row for each {_names(operator.key)}"
            case "window":
                return self._windows(operator)
            case "session":
                return "sessions" + (f" of each {self._texts(operator.key)}" if operator.key else "")
            case "hold":
                return "rows until they are complete"
            case "top":
                return self._first(operator)
            case _:
                by = self._groups(operator)
                functions = ", ".join(self._functions(operator))
                return "aggregate" + (f" by {by}" if by else "") + (f": {functions}" if functions else "")

    def _joins(self, operator: Operator) -> str:
        texts = [f"{one} = {two}" for one, two in self._keys(operator)]
        if (condition := operator.parts["plan"].condition()).isDefined():
            texts.append(self._text(condition.get()))
        kind = JOINS.get(operator.parts["plan"].kind(), "join")
        return f"{kind} on {' and '.join(texts)}" if texts else f"{kind} of all with all"

    def _keys(self, operator: Operator) -> Iterator[tuple[str, str]]:
        """What is equal on both sides of a join."""
        left = next(edge for edge in self._into[operator.id] if edge.port == 0)
        right = next(edge for edge in self._into[operator.id] if edge.port == 1)
        for one, two in zip(left.key, right.key, strict=True):
            yield self._text(one), self._text(two)

    def _nearest(self, operator: Operator) -> str:
        pairing = operator.parts["plan"].pairing()
        texts = [f"{one} = {two}" for one, two in self._keys(operator)]
        texts += [part for each in self._graph.door.list(pairing) for part in conjuncts(self._text(each))]
        kind = "left as-of join" if operator.parts["plan"].kind() == "left" else "as-of join"
        return f"{kind} on {' and '.join('in time' if STAMP in part else part for part in texts)}"

    def _windows(self, operator: Operator) -> str:
        node = operator.parts["node"]
        functions = self._texts(self._graph.door.list(node.windowExpressions()))
        return f"window: {functions}"

    def _first(self, operator: Operator) -> str:
        parts, node = operator.parts, operator.parts["node"]
        orders = ", ".join(self._text(each) for each in node.orders)
        by = f" of each {self._texts(operator.key)}" if operator.key else " of each part" if parts["spread"] else ""
        if node.counted != "rows":
            rank = "rank" if node.counted == "ranks" else "dense rank"
            return f"rows of {rank} {parts['limit']} or less{by} by {orders}"
        rows = "all rows" if parts["limit"] == ENDLESS else f"{parts['limit']} rows"
        after = f" after the first {parts['offset']}" if parts["offset"] else ""
        return f"first {rows}{after}{by}" + (f" by {orders}" if orders else "")

    def _groups(self, operator: Operator) -> str:
        return self._texts(self._graph.door.list(operator.parts["node"].groupingExpressions()))

    def _functions(self, operator: Operator) -> list[str]:
        """The columns that are not among the groups."""
        groups = set(self._groups(operator).split(", "))
        found = [self._text(e) for e in self._graph.door.list(operator.parts["node"].aggregateExpressions())]
        return [each for each in found if each not in groups]

    def _state(self, operator: Operator) -> str:
        match operator.kind:
            case "upsert" | "bag":
                return f"the rows of {operator.title}"
            case "join" | "retained":
                return "; ".join(dict.fromkeys(self._rows(edge) for edge in self._into[operator.id]))
            case "beyond":
                return f"for each key, when its first row of {operator.parts['plan'].stream()} is over"
            case "asof":
                edges = self._into[operator.id]
                return "; ".join(dict.fromkeys(self._rows(edge) + self._until(edge) for edge in edges))
            case "unique" if not operator.key:
                return "one row"
            case "unique":
                return f"the rows of {operator.title}"
            case "top" if operator.parts["growing"] and operator.parts["node"].counted != "rows":
                return "those rows for each key"
            case "top" if operator.parts["growing"]:
                return f"{operator.parts['limit'] + operator.parts['offset']} rows for each key"
            case "window" | "top" | "session" | "hold":
                return "; ".join(dict.fromkeys(self._rows(edge) for edge in self._into[operator.id]))
            case _:
                groups = self._groups(operator)
                kept = f"the groups of {groups}" if groups else "one row"
                values = [f for f in self._functions(operator) if KEEPS_VALUES.search(f)]
                if values and not operator.parts["growing"]:
                    kept += f", and in each the values of {', '.join(each.split(' AS ')[0] for each in values)}"
                return kept

    def _until(self, edge: Edge) -> str:
        """How long an as-of join keeps the rows of an input."""
        closing = edge.target.parts["closing"] if edge.port == 0 else None
        if closing is None:
            return ""
        marks = [
            f"{'a punctuation' if each in self._unmarked else 'the watermark'} of {each}" for each in closing.streams()
        ]
        return f" until {' and '.join(marks)} has passed it"

    def _rows(self, edge: Edge) -> str:
        """What a join keeps of one of its inputs."""
        source = edge.source
        match source.kind:
            case "source" | "evaluated":
                return f"every row of {source.title}"
            case "static":
                return f"the rows of {source.parts['origin']}, read once"
            case "upsert" | "bag":
                return f"the rows of {source.title}"
            case "aggregate":
                return f"the groups of #{source.id}"
            case _:
                return f"the rows of #{source.id}"

    def _name(self, operator: Operator) -> str:
        if operator.kind == "evaluated":
            return f"{self._name(operator.parts['root'])} with {self._calls(operator)}"
        if operator.kind == "static":
            return f"{operator.parts['origin']} (read once)"
        return operator.title if operator.kind == "source" else f"#{operator.id}"

    def _calls(self, operator: Operator) -> str:
        return " and ".join(dict.fromkeys(self._text(each) for each in operator.parts["calls"]))

    def _filters(self, filters: Sequence[Handle]) -> str:
        found = [part for each in filters for part in conjuncts(self._text(each))]
        found = ["in time" if STAMP in part or APPENDED in part else part for part in found]
        return " and ".join(dict.fromkeys(found))

    def _texts(self, expressions: Sequence[Handle]) -> str:
        return ", ".join(self._text(each) for each in expressions)

    def _text(self, expression: Handle) -> str:
        """As SQL, without the names of relations, which Catalyst has lost anyway where columns are computed."""
        text = PLAIN_NAME.sub(r"\1", QUALIFIER.sub("", self._graph.door.text(expression)))
        return RESULT.sub(lambda found: self._results.get(found[0], found[0]), text)


def _names(columns: Sequence[Handle]) -> str:
    return ", ".join(column.name() for column in columns)


def conjuncts(text: str) -> list[str]:
    """((a > 1) AND (b IS NULL))  =>  a > 1, b IS NULL"""
    depth, start, parts = 0, 0, []
    inner = text[1:-1] if _enclosed(text) else text
    for at, character in enumerate(inner):
        depth += (character == "(") - (character == ")")
        if not depth and inner.startswith(" AND ", at):
            parts.append(inner[start:at])
            start = at + len(" AND ")
    parts.append(inner[start:])
    return [inner] if len(parts) == 1 else [each for part in parts for each in conjuncts(part)]


def _enclosed(text: str) -> bool:
    """Whether one pair of brackets is around all of it."""
    depth = 0
    for at, character in enumerate(text):
        depth += (character == "(") - (character == ")")
        if not depth:
            return character == ")" and at == len(text) - 1
    return False
