"""The query: a graph laid out becomes one streaming DataFrame of envelopes.

Sources enter at the level of the operators that they feed; a level is one stateful operator of Spark's, or all levels
together are one, where all tasks run at once in one process. What leaves the last level is the changes of all views,
told apart by the number of the view.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pyspark.sql import DataFrame, SparkSession

from penstock.engine.evaluation import BY_NAME, evaluated_streams, named_row
from penstock.engine.graph import Branch, Edge, Graph, Operator
from penstock.engine.levels import SINKS, TABLES, Layout, Within, laid_out
from penstock.engine.master import PARTITIONS
from penstock.engine.nodes import Handle
from penstock.engine.timing import LAST, LATE

STEPPED = ("retained", "beyond")
"""Who looks at the watermark that stood before every record."""
RECORD = ("_partition", "_offset")
"""What a bag knows of a record beside its row."""
UNREAD = ("_bad", "_key", "_value")
"""What a source has of a record that cannot be read, where such may come: the reason, its key and its value."""
MAKERS = ("_partition of its record", "_offset of its record", "_row of its record")
"""What a change of a table says of the record that makes it, where that is asked for."""


@dataclass(frozen=True)
class Tuning:
    """`collected_bytes`: up to so many bytes of changes are gathered in one process; beyond that, tasks write them to
    files.
    """

    slots: int = 64
    page_bytes: int = 2048
    collected_bytes: int = 32 << 20


class Query:
    """Everything that the kernel needs, made from the graph once all views are in it; `together`: all levels are to be
    one operator.
    """

    def __init__(self, spark: SparkSession, graph: Graph, tuning: Tuning, *, together: bool = False) -> None:
        self._spark = spark
        self._graph = graph
        self._door = graph.door
        self.tuning = tuning
        self._first = _leading(graph)
        self._open = self._door.openWindows(spark._jsparkSession)
        self._topics: Mapping[str, str] = {}
        self._unread: set[str] = set()
        self._readable: list[Handle] = []
        self._complete_tables()
        self.layout: Layout = laid_out(graph.operators, self._same_key, self._in_key)
        self.together = together and self.layout.depth > 1
        self._tasks = int(str(spark.conf.get(PARTITIONS))) if self.together else 0
        self.stages = 1 if self.together else self.layout.depth

    def _complete_tables(self) -> None:
        """Tables are fed once it is known which of their columns the views read."""
        for table in [each for each in self._graph.operators if each.kind in TABLES]:
            source, relation = table.parts["source"], table.parts["relation"]
            wanted = [column.name for column in table.row if column.name not in MAKERS]
            key = relation.key or relation.schema.names
            told = len(wanted) < len(table.row)  # then it must be known whether a record changes anything
            names = relation.schema.names if told or not relation.key else tuple(dict.fromkeys([*key, *wanted]))
            table.parts |= {"key": key, "names": names, "makers": MAKERS if told else ()}
            source.parts["columns"] = names

    def _same_key(self, edge: Edge) -> bool:
        """Whether rows arrive under the key that they left."""
        left = self._left_keys(edge)
        return len(left) == len(edge.key) > 0 and all(map(self._is_any, left, edge.key))

    def _in_key(self, edge: Edge) -> Within:
        """Where in the key that rows arrive under the parts of the one that they left are; nothing if one is not."""
        found = [
            frozenset(at for at, theirs in enumerate(edge.key) if self._is_any(mine, theirs))
            for mine in self._left_keys(edge)
        ]
        return tuple(found) if all(found) else ()

    def _left_keys(self, edge: Edge) -> list[tuple[Handle, ...]]:
        """Each part of the key that rows leave under, in all the ways in which it can be said."""
        source = edge.source
        if source.parts.get("slicing"):  # windows leave where their slices came
            return []
        if source.kind not in TABLES:
            return list(zip(source.key, *source.parts.get("twins", ()), strict=True))
        by_name = {column.name: column.handle for column in edge.branch.columns}
        return [(by_name.get(name),) for name in source.parts["key"]]

    def _is_any(self, ways: Sequence[Handle | None], other: Handle) -> bool:
        return any(way is not None and self._door.same(way, other) for way in ways)

    def open_windows(self) -> dict[str, int]:
        """How many windows or sessions each view has open, as far as batches have told since the run began; views
        without any are not there.
        """
        counts = dict(self._open.counted())
        found: dict[str, int] = {}
        for view, (sink, _) in self._graph.views.items():
            told = [counts[each] for each in self._graph.upstream(sink) if each in counts]
            if told:
                found[view] = max(told)
        return found

    def watermarks(self, streams: Mapping[str, int]) -> dict[str, int]:
        """How far time has come for each view, in microseconds, where streams have come as far as is given: the least
        of what its operators go by. Views without any that does, or of whose streams one has no time yet, are not
        there.
        """
        clocks = {each.id: clock for each in self._graph.operators if (clock := _clock(each))}
        found: dict[str, int] = {}
        for view, (sink, _) in self._graph.views.items():
            mine = [clocks[each] for each in self._graph.upstream(sink) if each in clocks]
            if mine and all(stream in streams for names, _ in mine for stream in names):
                found[view] = min(_behind(min(streams[each] for each in names), delay) for names, delay in mine)
        return found

    def streaming(self, sources: dict[str, DataFrame], topics: Mapping[str, str]) -> DataFrame:
        """The envelopes for the views, from the sources' streams (which have the hidden columns), whose topics are told
        with records that cannot be read.
        """
        self._topics = topics
        built = {
            operator.id: self._built(operator) for operator in self._graph.operators if operator.id in self.layout.of
        }
        self._unread = {name for name, source in sources.items() if UNREAD[0] in source.columns}
        readable = {name: _readable(source) if name in self._unread else source for name, source in sources.items()}
        sources = sources | evaluated_streams(self._spark, self._graph, readable)
        current: DataFrame | None = None
        for level in range(self.stages, 0, -1):
            current = self._level(level, self._entering(current, level, sources), built)
        whole = self._entering(current, 0, sources)
        assert whole is not None
        return whole

    def _entering(self, current: DataFrame | None, level: int, sources: dict[str, DataFrame]) -> DataFrame | None:
        for name, source in self._graph.sources.items():
            edges = [edge for edge in self._source_edges(source) if self._entrance(edge) == level]
            ticks = self._ticks(level) if name == self._first else []
            timed, stepped = self._timed(level, name), self._stepped(level, name)
            wakes = self._tasks if level == 1 and name == self._first else 0
            told = ticks or timed or stepped or wakes
            letters = name in self._unread and (bool(edges) or level == 0)
            if edges or told or letters or (level == 0 and name == self._first and not self._is_fed(source)):
                clocks = (ticks, timed, stepped)
                fed = self._fed(sources[name], edges, clocks, wakes, letters=source if letters else None)
                self._unread -= {name} if letters else set()
                current = fed if current is None else current.unionAll(fed)
        return current

    def _is_fed(self, source: Operator) -> bool:
        """Whether the source is in the query, wherever it enters."""
        return (
            bool(self._source_edges(source))
            or self._tasks > 0
            or any(self._ticks(level) for level in range(self.stages + 1))
        )

    def _source_edges(self, source: Operator) -> list[Edge]:
        tables = [t for t in self._graph.operators if t.kind in TABLES and t.edges and t.parts["source"] is source]
        return source.edges + [Edge(Branch(source, (), (), ()), table, 0, (), ()) for table in tables]

    def _entrance(self, edge: Edge) -> int:
        """The level that rows of a source enter at.

        Late rows are few: they enter with others, and the source is not read once more for them.
        """
        if edge.target.kind != LATE:
            return self._level_of(edge.target)
        others = [each.target for each in self._source_edges(edge.source) if each.target.kind != LATE]
        return min(map(self._level_of, others), default=0)

    def _level_of(self, target: Operator) -> int:
        return 0 if target.kind in SINKS else min(self.stages, self.layout.level[self.layout.of[target.id].id])

    def _ticks(self, level: int) -> list[int]:
        """Aggregates without groups are woken in every batch: they have an answer before any row comes."""

        def clocks(operator: Operator) -> list[int]:
            return [0] if operator.kind == "aggregate" and not operator.parts["plan"].keyWidth() else []

        return self._targets(level, clocks)

    def _timed(self, level: int, stream: str) -> list[int]:
        """Operators whose state the stream frees are told how far it has come."""

        def clocks(operator: Operator) -> list[int]:
            streams = list(operator.parts["closing"].streams()) if operator.parts.get("closing") else []
            return [streams.index(stream)] if stream in streams else []

        return self._targets(level, clocks)

    def _stepped(self, level: int, stream: str) -> list[int]:
        """Operators that look at the watermark of every record are told of all its steps."""

        def clocks(operator: Operator) -> list[int]:
            streams = list(operator.parts["plan"].streams()) if operator.kind in STEPPED else []
            return [streams.index(stream)] if stream in streams else []

        return self._targets(level, clocks)

    def _targets(self, level: int, clocks: Callable[[Operator], list[int]]) -> list[int]:
        """Operators of a level, each with the number of a clock of its own, and its chain."""
        found = [each for each in self._graph.operators if each.id in self.layout.of and self._level_of(each) == level]
        return [
            number
            for each in found
            for clock in clocks(each)
            for number in (each.id, clock, self.layout.of[each.id].id)
        ]

    def _fed(
        self,
        stream: DataFrame,
        edges: Sequence[Edge],
        told: Sequence[Sequence[int]],
        wakes: int,
        *,
        letters: Operator | None = None,
    ) -> DataFrame:
        """`told` are who is woken in every batch, who hears of the watermark, and who of all its steps; so many tasks
        are woken too. Records of `letters` that cannot be read become dead letters here.
        """
        handles = self._graph.handles
        row = list(self._door.list(stream._jdf.queryExecution().analyzed().output()))
        by_name = {attribute.name(): attribute for attribute in row}
        self._readable = [self._door.isNull(by_name[UNREAD[0]])] if UNREAD[0] in by_name else []
        made = [self._table_edge(e, by_name, row) if e.target.kind in TABLES else self._edge(e, row) for e in edges]
        plans = [edge.target.parts["plan"] if edge.target.kind == "aggregate" else None for edge in edges]
        if letters is not None:
            made.append(self._door.unread(letters.title, self._topics[letters.title], handles(row)))
            plans.append(None)
        self._readable = []
        fed = self._door.feed(stream._jdf, handles(made), handles(plans), *map(handles, told), self.tuning.slots, wakes)
        return DataFrame(fed, self._spark)

    def _table_edge(self, edge: Edge, by_name: dict[str, Handle], row: Sequence[Handle]) -> Handle:
        parts = edge.target.parts
        key = [self._door.normalized(by_name[name]) for name in parts["key"]]
        names = parts["names"] if edge.target.kind == "upsert" else RECORD
        value = [by_name[name] for name in names]
        if parts["makers"]:
            own = self._door.json(self._graph.handles([by_name[name] for name in parts["names"]]))
            value += [*(by_name[name] for name in RECORD if name not in names), own]
        return self._bound(edge, key, value, row)

    def _edge(self, edge: Edge, row: Sequence[Handle]) -> Handle:
        """The edge over its source's row; what the reader of a relation does not know of it are placeholders."""
        return self._bound(edge, edge.key, edge.value, named_row(edge.branch, row))

    def _bound(self, edge: Edge, key: Sequence[Handle], value: Sequence[Handle], row: Sequence[Handle]) -> Handle:
        handles, branch = self._graph.handles, edge.branch
        chain = self.layout.of[edge.target.id].id if edge.target.id in self.layout.of else edge.target.id
        whole = handles([*row, *(column.handle for maker in branch.makers for column in maker.made)])
        makers = [
            self._door.maker(
                self._all([*self._readable, *maker.filters]), maker.generator, len(maker.made), maker.outer, whole
            )
            for maker in branch.makers
        ]
        return self._door.edge(
            edge.target.parts.get("goes", edge.target.id),
            edge.port,
            chain,
            bool(edge.target.parts.get("slicing")),
            handles(makers),
            self._all([*self._readable, *branch.filters]),
            handles(key),
            handles(value),
            whole,
        )

    def _all(self, conditions: Sequence[Handle]) -> Handle | None:
        return self._door.conjunction(self._graph.handles(conditions))

    def _built(self, operator: Operator) -> Handle:
        handles = self._graph.handles
        edges = handles([self._edge(edge, self._row(operator)) for edge in operator.edges])
        parts: dict[str, Any] = operator.parts
        match operator.kind:
            case "upsert":
                width, steps = len(parts["names"]), self._steps(operator)
                return self._door.upsert(operator.id, len(parts["key"]), width, edges, steps)
            case "bag":
                steps = self._steps(operator)
                return self._door.bag(operator.id, operator.title, self._schema(operator), edges, steps)
            case "unique":
                return self._door.unique(operator.id, operator.title, handles(operator.key), len(operator.row), edges)
            case "join":
                left, right = (handles([column.handle for column in side]) for side in parts["sent"])
                return self._door.join(operator.id, parts["plan"], left, right, edges)
            case "asof":
                left, right = (handles([column.handle for column in side]) for side in parts["sent"])
                return self._door.asOf(operator.id, parts["plan"], left, right, edges, parts["closing"])
            case "retained":
                left, right = (handles([column.handle for column in side]) for side in parts["sent"])
                return self._door.retained(operator.id, parts["plan"], left, right, edges)
            case "beyond":
                return self._door.missed(operator.id, len(operator.key), edges)
            case "window":
                return self._door.window(operator.id, parts["plan"], edges, parts["closing"])
            case "top":
                spread, closing = len(parts["spread"]), parts["closing"]
                return self._door.top(operator.id, parts["plan"], parts["growing"], spread, edges, closing)
            case "session":
                return self._door.session(operator.id, parts["node"], len(operator.row) - 1, edges, parts["closing"])
            case "hold":
                return self._door.hold(operator.id, 2, len(operator.row), edges, parts["closing"])
            case "aggregate" if parts["slicing"]:
                return self._door.slices(operator.id, parts["slicing"], edges)
            case _:
                return self._door.aggregate(operator.id, parts["plan"], edges, parts["closing"])

    def _schema(self, table: Operator) -> Handle:
        return self._graph.jvm.org.apache.spark.sql.types.StructType.fromDDL(str(table.parts["relation"].schema))

    def _steps(self, table: Operator) -> Handle | None:
        """How each record says what it changes, if that is asked for."""
        if not table.parts.get("stepwise"):
            return None
        names = self._graph.handles(table.parts["names"]) if table.parts["makers"] else None
        return self._door.steps(self._schema(table), names)

    def _row(self, operator: Operator) -> list[Handle]:
        """The attributes of an operator's output row, in order."""
        if operator.kind not in BY_NAME:
            return [column.handle for column in operator.row]
        known = {column.name: column.handle for column in operator.row}
        names = (*operator.parts["names"], *operator.parts["makers"])
        return [known.get(name) or self._door.placeholder(name) for name in names]

    def _level(self, level: int, input: DataFrame | None, built: dict[int, Handle]) -> DataFrame:
        assert input is not None
        chains = [chain for chain in self.layout.chains if self._tasks or self.layout.level[chain.id] == level]
        made = self._graph.handles(
            [
                self._door.chain(chain.id, self._graph.handles([built[each.id] for each in chain.operators]))
                for chain in chains
            ]
        )
        how = (self.tuning.slots, self.tuning.page_bytes, self._open)
        if not self._tasks:
            return DataFrame(self._door.level(input._jdf, made, *how), self._spark)
        levels = self._graph.handles([self.layout.level[chain.id] for chain in chains])
        return DataFrame(self._door.cascade(input._jdf, made, levels, self._tasks, *how), self._spark)


def _clock(operator: Operator) -> tuple[list[str], int] | None:
    """The streams by whose watermarks an operator goes, and how many microseconds it stays behind them; None where it
    knows no time.
    """
    if operator.kind == "retained":
        return list(operator.parts["plan"].streams()), 0
    closing = operator.parts.get("closing")
    return None if closing is None else (list(closing.streams()), closing.delay())


def _behind(time: int, delay: int) -> int:
    """Where no more events come, nothing is waited for."""
    return time if time >= LAST else time - delay


def _readable(source: DataFrame) -> DataFrame:
    return source.where(f"{UNREAD[0]} IS NULL").drop(*UNREAD)


def _leading(graph: Graph) -> str:
    """The source that is in every batch: one that reads the log; else static rows, which have one batch only."""
    by_kind = {source.kind: name for name, source in reversed(graph.sources.items())}
    return by_kind.get("source") or by_kind.get("static", "")
