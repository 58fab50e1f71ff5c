"""Compilation: a declared pipeline becomes a graph of operators.

Every relation and view is shown to Catalyst as a leaf with columns and no rows; a view that reads another sees it as
such a leaf, and the graph joins the two. Views are compiled in the order in which they need each other, whatever the
order of their declaration.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from traceback import extract_tb

from py4j.protocol import Py4JJavaError
from pyspark.errors import AnalysisException, ParseException, PySparkException
from pyspark.sql import DataFrame, SparkSession

from penstock.engine.catalyst import Reader
from penstock.engine.code import code_digest
from penstock.engine.columns import can_be_key, check_columns, declared_key, schema_of
from penstock.engine.failing import last_cause
from penstock.engine.filing import check_grows, partition_columns
from penstock.engine.flows import Flows
from penstock.engine.graph import Graph
from penstock.engine.indexing import index_columns
from penstock.engine.nodes import Handle
from penstock.engine.timing import Times, known_of, others_of
from penstock.engine.wording import plain_text
from penstock.errors import EngineError, Spot
from penstock.model import Function, Pipeline, Sql, Stream, Table, View, spot_in

QUALIFIER = re.compile(r"\b[A-Za-z_]\w*\.(?=[A-Za-z_])")
PARSED = re.compile(r"\(line (\d+), pos (\d+)\)")
NOT_FOUND = "TABLE_OR_VIEW_NOT_FOUND"
UNMATCHED = re.compile(r"\bASOF\s+JOIN\b(?!.*\bMATCH_CONDITION\b)", re.IGNORECASE | re.DOTALL)
NOT_READ = "FAILED_TO_CREATE_PLAN_FOR_DIRECT_QUERY"
ASKED = "penstock.DeclaredScan"
WITHIN_WATERMARK = "dropDuplicatesWithinWatermark"
DEDUPLICATE = "Write ps.deduplicate(frame, keys, within='1 hour'), which goes by the event time of the stream."
TOLD = "--debug shows all that Spark says."
EVALUATED = "Spark evaluates the rows of VALUES while it plans: mend what fails, or use try_cast and its like."


@dataclass
class Compiled:
    """A pipeline's graph, and what Spark says of each view: its columns, and its plan in a form that is the same in
    every process; and of each file that views read, by its path, what tells whether it has changed.
    """

    graph: Graph
    schemas: dict[str, Handle] = field(default_factory=dict)
    plans: dict[str, str] = field(default_factory=dict)
    files: dict[str, str] = field(default_factory=dict)
    unordered: dict[str, frozenset[str]] = field(default_factory=dict)
    """For each view the columns with arrays whose order Spark leaves open."""
    partitions: dict[str, tuple[str, ...]] = field(default_factory=dict)
    indexes: dict[str, tuple[tuple[str, ...], ...]] = field(default_factory=dict)
    """For each view the columns by which its files are parted."""
    late: dict[str, Handle] = field(default_factory=dict)
    """What late rows look like, for each view that can have any; where they are dropped, they are only counted."""

    def key_of(self, view: str) -> tuple[str, ...]:
        """The names of the view's key columns; none where it is a bag of rows."""
        _, flow = self.graph.views[view]
        names = {self.graph.door.identity(column): column.name() for column in flow.out}
        key = tuple(names[number] for number in flow.key or ())
        return key if can_be_key(self.schemas[view], key) else ()

    def late_from(self, view: str) -> set[str]:
        """The relations whose rows can be late for the view."""
        above = self.graph.upstream(self.graph.late[view]) if view in self.graph.late else set()
        return {
            each.title for each in self.graph.operators if each.kind in ("source", "evaluated") and each.id in above
        }


def door_of(spark: SparkSession) -> Handle:
    jvm = spark._jvm
    assert jvm is not None
    door = jvm.org.apache.spark.sql.penstock.Door
    door.prepare(spark._jsparkSession)
    return door


def _name(declared: Stream | Table | View) -> str:
    return declared.name.lower()


def compiled(spark: SparkSession, pipeline: Pipeline) -> Compiled:
    return _Compiler(spark, pipeline).run()


class _Compiler:
    def __init__(self, spark: SparkSession, pipeline: Pipeline) -> None:
        self._spark = spark
        self._door = door_of(spark)
        # In the order of names: operators, and with them all state, have the same numbers however views are declared.
        self._pending = {view.name.lower(): view for view in sorted(pipeline.views, key=_name)}
        self._views = pipeline.views
        self._under_way: list[str] = []
        self._relations = relations = {each.name: each for each in sorted(pipeline.relations, key=_name)}
        self._result = Compiled(Graph(self._door, spark._jvm))
        self._times = Times(spark, self._door, pipeline.relations)
        self._flows = Flows(self._result.graph, relations, self._times)
        for view in pipeline.views:  # of a plan that was made in this session before
            spark.catalog.dropTempView(view.name)
        for relation in pipeline.relations:
            schema = spark._jvm.org.apache.spark.sql.types.StructType.fromDDL(str(relation.schema))  # type: ignore[union-attr]
            makers = {"makers": "true"} if isinstance(relation, Table) else {}
            more = known_of(relation) | makers
            self._declare(relation.name, schema, others_of(relation, pipeline.relations), more)

    def run(self) -> Compiled:
        while self._pending:
            self._compile(next(iter(self._pending.values())))
        self._check_reads()
        return self._result

    def _check_reads(self) -> None:
        """A batch is a stretch of the log: where views read none of it, as by WHERE false, the first relation leads.

        Where nothing is declared either, the static rows are the first batch, and the only one.
        """
        graph = self._result.graph
        if not graph.views or any(source.kind == "source" for source in graph.sources.values()):
            return
        for name in list(self._relations)[:1]:
            graph.sources[name] = graph.operator("source", name)

    def _declare(
        self, name: str, schema: Handle, others: Sequence[str] = (), more: Mapping[str, str] | None = None
    ) -> None:
        known = self._spark._jvm.java.util.HashMap()  # type: ignore[union-attr]
        for word, value in (more or {}).items():
            known.put(word, value)
        handles = self._result.graph.handles
        leaf = self._door.declared(self._spark._jsparkSession, name, schema, handles(others), known)
        DataFrame(leaf, self._spark).createOrReplaceTempView(name)

    def _compile(self, view: View) -> None:
        if view.name in self._under_way:
            circle = " -> ".join([*self._under_way[self._under_way.index(view.name) :], view.name])
            raise EngineError(f'view "{view.name}" reads itself', detail=f"The circle is {circle}.", spot=view.spot)
        self._under_way.append(view.name)
        self._check_parsed(view)
        asked = self._analyzed(view)
        self._check_matched(view, asked._jdf.queryExecution().analyzed())
        self._check_read(view, asked._jdf.queryExecution().analyzed())
        frame = self._added(view, asked)
        self._keep(view.name, frame)
        self._times.learn(view, self._door.planned(frame._jdf))
        if self._times.opened(view, frame):
            frame.createOrReplaceTempView(view.name)
        else:
            self._declare(view.name, frame._jdf.schema())
        del self._pending[self._under_way.pop().lower()]

    def _added(self, view: View, asked: DataFrame) -> DataFrame:
        """What was asked joins the graph, late rows apart, or is refused with its place in the file; what it is without
        them.
        """
        query = view.query

        def place(line: int, column: int) -> Spot | None:
            return spot_in(query, line, column) if isinstance(query, Sql) else view.spot

        try:
            frame = self._times.timely(asked, view)
            late = self._times.late(asked, view)
            check_columns(view, frame._jdf.schema())
            key = declared_key(view, frame._jdf.schema())
            reader = Reader(self._door, view.name, place)
            planned = self._door.planned(frame._jdf)
            self._times.check_final(view, planned)
            self._times.check_retained(view, planned)
            self._times.check_late(view, late)
            self._flows.add(view, reader.read(frame), key)
            check_grows(view, self._result.graph, self._views)
            self._result.partitions[view.name] = partition_columns(view, frame._jdf.schema())
            self._result.indexes[view.name] = index_columns(view, schema_of(frame._jdf.schema()))
            if late:
                self._flows.add_late(view, [reader.read(each) for each in late])
                self._result.late[view.name] = late[0]._jdf.schema()
        except EngineError as error:
            error.spot = error.spot or view.spot
            raise
        except (PySparkException, Py4JJavaError) as error:
            raise unsupported(view, error) or unplannable(view, error) from error
        return frame

    def _keep(self, name: str, frame: DataFrame) -> None:
        plan = self._door.planned(frame._jdf)
        self._result.schemas[name] = frame._jdf.schema()
        called = [code_digest(bytes(command)) for command in self._door.functions(plan)]
        self._result.plans[name] = "\n".join([self._door.canonicalText(plan), *called])
        self._result.files.update(map(tuple, self._door.filesOf(plan)))
        known = [(view, column) for view, columns in self._result.unordered.items() for column in columns]
        self._result.unordered[name] = unordered_columns(self._door, plan, known)

    def _check_parsed(self, view: View) -> None:
        """Before names are resolved: those of a relation that is named ASOF by mistake cannot be."""
        if isinstance(view.query, Sql) and "asof" in view.query.text.lower():
            with suppress(ParseException):
                self._check_matched(view, self._door.parsed(self._spark._jsparkSession, view.query.text))

    def _check_matched(self, view: View, plan: Handle) -> None:
        for line, column in self._door.aliases(plan):
            raise unmatched(view, spot_in(view.query, line, column) if isinstance(view.query, Sql) else view.spot)

    def _check_read(self, view: View, plan: Handle) -> None:
        if self._door.readsWatermark(plan):
            raise EngineError(
                f'view "{view.name}" reads _watermark',
                detail="It is not a column of the records: what it is depends on who reads them.",
                hint="Compare event times with _appended_at, or let windows and joins go by them.",
                spot=view.spot,
            )

    def _analyzed(self, view: View) -> DataFrame:
        """The view's DataFrame; views that it needs and that are not compiled yet are compiled first."""
        while True:
            try:
                return frame_of(self._spark, view)
            except AnalysisException as error:
                missing = _missing(error)
                if missing not in self._pending:
                    raise refusal(view, error) from error
                self._compile(self._pending[missing])
            except (PySparkException, Py4JJavaError) as error:
                raise unread(view, error) from error


def unordered_columns(door: Handle, plan: Handle, known: Iterable[tuple[str, str]] = ()) -> frozenset[str]:
    """The columns with arrays whose order Spark leaves open; `known` are those of the views that the plan reads."""
    return frozenset(door.unordered(plan, [list(each) for each in known]))


def frame_of(spark: SparkSession, view: View) -> DataFrame:
    """What the view's query is, over the tables that the session has now, with nothing left open: where rows tie, all
    their columns decide which comes first.
    """
    return DataFrame(door_of(spark).settled(_asked(spark, view)._jdf), spark)


def _asked(spark: SparkSession, view: View) -> DataFrame:
    match view.query:
        case Sql(text):
            return spark.sql(text)
        case Function(function):
            try:
                made = function(spark)
            except (PySparkException, Py4JJavaError, EngineError):
                raise
            except Exception as error:
                raise EngineError(
                    f'the function of view "{view.name}" failed',
                    detail=f"{type(error).__name__}: {error}{_line_of(error)}",
                    spot=view.spot,
                ) from error
            if not isinstance(made, DataFrame):
                raise EngineError(
                    f'view "{view.name}" did not return a DataFrame',
                    detail=f"It returned {type(made).__name__}.",
                    spot=view.spot,
                )
            return made


def _line_of(error: Exception) -> str:
    """Where it went wrong in the file of the function that was called here."""
    _, *frames = extract_tb(error.__traceback__)
    lines = [frame.lineno for frame in frames if frame.filename == frames[0].filename]
    return f" (line {lines[-1]} of {Path(frames[0].filename).name})" if lines else ""


def _missing(error: AnalysisException) -> str:
    """The table that a query names and nobody declared, in lower case; empty if something else is wrong."""
    if error.getCondition() != NOT_FOUND:
        return ""
    return str((error.getMessageParameters() or {}).get("relationName", "")).replace("`", "").lower()


def refusal(view: View, error: AnalysisException) -> EngineError:
    """Spark's complaint about a view's query, with its place in the file."""
    if isinstance(error, ParseException) and isinstance(view.query, Sql) and UNMATCHED.search(view.query.text):
        return unmatched(view, _spot(view, error))
    if error.getCondition() == NOT_READ:
        return unread(view, error)
    kind = "cannot be parsed" if isinstance(error, ParseException) else "is not valid"
    return EngineError(f'view "{view.name}" {kind}', detail=plain_text(str(error)), spot=_spot(view, error))


def unmatched(view: View, spot: Spot | None) -> EngineError:
    """An as-of join that does not say which times it compares: Spark would read ASOF as a name."""
    return EngineError(
        f'view "{view.name}" has an ASOF JOIN without a MATCH_CONDITION',
        detail="Spark takes ASOF for a name of the relation before it, and joins all rows that fit.",
        hint="Write a ASOF JOIN b MATCH_CONDITION (a.at >= b.at) ON ...; if ASOF is meant as a name, write AS asof.",
        spot=spot,
    )


def unread(view: View, error: PySparkException | Py4JJavaError) -> EngineError:
    """Spark has read something to find out its columns, a file mostly, and could not; or was asked for rows of a
    relation, which has none yet.
    """
    if ASKED in str(error):
        return EngineError(
            f'view "{view.name}" asks for rows while it is declared',
            detail="A view is a query: what it reads is there when it runs.",
            hint="Leave out collect(), count(), show() and their like; name the values of pivot().",
            spot=view.spot,
        )
    return EngineError(
        f'view "{view.name}" reads something that Spark cannot read',
        detail=last_cause(error),
        hint="Where it is a file, mend it, or put back what it was.",
        spot=view.spot,
    )


def unplannable(view: View, error: PySparkException | Py4JJavaError) -> EngineError:
    """Spark has understood the query, and failed when it looked for a way to compute it."""
    detail = last_cause(error).rstrip(";")
    if isinstance(error, AnalysisException):
        hint, spot = DEDUPLICATE if WITHIN_WATERMARK in detail else TOLD, _spot(view, error)
    else:
        hint, spot = EVALUATED if isinstance(error, PySparkException) else TOLD, view.spot
    return EngineError(f'view "{view.name}" cannot be planned', detail=detail, hint=hint, spot=spot)


def unsupported(view: View, error: PySparkException | Py4JJavaError) -> EngineError | None:
    """What the kernel's planner refuses, as ours; nothing if it is something else."""
    cause: Handle = getattr(error, "java_exception", None)
    if cause is None or not cause.getClass().getName().endswith(".Unsupported"):
        return None
    return EngineError(
        f'view "{view.name}" uses {QUALIFIER.sub("", cause.construct())}, which is not supported yet',
        detail=f"{cause.reason()[:1].upper()}{cause.reason()[1:]}.",
        spot=view.spot,
    )


def _spot(view: View, error: AnalysisException) -> Spot | None:
    if isinstance(view.query, Sql):
        for context in error.getQueryContext():
            before = view.query.text[: context.startIndex()]
            return spot_in(view.query, before.count("\n") + 1, len(before) - before.rfind("\n"))
        if isinstance(error, ParseException) and (found := PARSED.search(str(error))):
            return spot_in(view.query, int(found[1]), int(found[2]) + 1)
    return view.spot
