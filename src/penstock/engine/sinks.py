"""Sinks: where rows leave the graph: the views that are kept, and the dead letters.

Each has a topic of the lineage. What a batch changed in all of them is a set of Arrow files: small ones, whose rows go
into the batch's frame, or of a very large batch files that the log keeps as they are. The rows and their order are the
same either way, and the same whenever the batch is run.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from py4j.protocol import Py4JJavaError

from penstock.engine.columns import schema_of
from penstock.engine.compile import Compiled
from penstock.engine.lineage import Lineage
from penstock.engine.missed import Missed, missed_in
from penstock.engine.nodes import Handle
from penstock.errors import EngineError
from penstock.log.protocol import OrderedLog
from penstock.model import Pipeline

DEAD_LETTERS = "dead-letters"
"""No view has a dash in its name."""
NO_KEY = "{}"
"""How the key reads where there are no key columns."""


def late_rows(view: str) -> str:
    """What the topic of a view's late rows is called."""
    return f"{view}-late"


@dataclass(frozen=True)
class Collected:
    """What a batch changed: how many rows each view got, how many dead letters there are, and by topic the files that
    hold them, in order; `staged` ones lie in the log. `late`: how many rows each view left out, and `missed`, which
    windows those missed.
    """

    changes: Mapping[str, int]
    letters: int
    files: Mapping[str, tuple[Path, ...]]
    staged: bool
    late: Mapping[str, int] = field(default_factory=dict)
    missed: Mapping[str, Sequence[Missed]] = field(default_factory=dict)


class Sinks:
    """Of one lineage; what is more than `limit` bytes is never in this process at once. `unread`: records may come that
    cannot be read. `alone`: no other batch may be run in this process meanwhile.
    """

    def __init__(
        self,
        pipeline: Pipeline,
        plan: Compiled,
        lineage: Lineage,
        *,
        limit: int,
        unread: bool = False,
        alone: bool = False,
    ) -> None:
        self._pipeline = pipeline
        self._plan = plan
        self._lineage = lineage
        self._limit = limit
        self._alone = alone
        self._views = [view.name for view in pipeline.views if view.options.store != "none"]
        self._dropped = {view.name for view in pipeline.views if view.options.late == "drop"}
        self._has_letters = unread or any(operator.kind == "bag" for operator in plan.graph.operators)
        graph, specs = plan.graph, [self._sink(name) for name in self._views]
        specs += [
            graph.door.sink(sink.id, late_rows(view), plan.late[view], graph.handles([]))
            for view, sink in graph.late.items()
        ]
        self._specs = graph.handles([*specs, graph.door.deadLetters()] if self._has_letters else specs)

    def _sink(self, view: str) -> Handle:
        graph = self._plan.graph
        sink, flow = graph.views[view]
        names = [column.name() for column in flow.out]
        key = [names.index(name) for name in self._plan.key_of(view)]
        return graph.door.sink(sink.id, view, self._plan.schemas[view], graph.handles(key))

    def ensure_topics(self, log: OrderedLog) -> None:
        for view in self._views:
            schema = schema_of(self._plan.schemas[view])
            log.create_topic(self._lineage.topic(view), schema, key=self._plan.key_of(view), own=True)
        for view, late in self._plan.late.items():
            if view in self._dropped:
                continue
            log.create_topic(self._lineage.topic(late_rows(view)), schema_of(late), own=True)
        if self._has_letters:
            schema = schema_of(self._plan.graph.door.deadLetters().schema())
            log.create_topic(self._lineage.topic(DEAD_LETTERS), schema, own=True)

    def collected(self, frame: Handle, folder: Path, staged: Path) -> Collected:
        """Runs the batch; files are made in `folder`, or, to be staged, beside `staged`, whose name theirs begin
        with.
        """
        try:
            door = self._plan.graph.door
            made = door.collect(frame, self._specs, self._limit, str(folder), str(staged), self._alone)
        except Py4JJavaError as error:
            if (refused := self._doubled(error)) is None:
                raise
            raise refused from error
        counts = dict(made.counts())
        late = {view: counts.pop(late_rows(view), 0) for view in self._plan.late}
        found = {name: tuple(map(Path, paths)) for name, paths in made.files().items()}
        missed = {view: missed_in(found.get(late_rows(view), ())) for view in late}
        uncounted = {late_rows(view) for view in self._dropped}  # their rows are
        files = {self._lineage.topic(name): paths for name, paths in found.items() if name not in uncounted}
        return Collected(counts, counts.pop(DEAD_LETTERS, 0), files, made.staged(), late, missed)

    def _doubled(self, error: Py4JJavaError) -> EngineError | None:
        """Two rows where one can be, as the user's error; nothing if it is something else."""
        cause: Handle = error.java_exception
        if not cause.getClass().getName().endswith(".DoubledKey"):
            return None
        view = self._pipeline.view(cause.view())
        if cause.key() == NO_KEY:
            return EngineError(
                f'a query inside an expression of view "{view.name}" gives several rows',
                detail="Only one value can stand there, or none, which is NULL. All views are as before this batch.",
                hint="Write max(...) in it, or ORDER BY ... LIMIT 1; then: penstock reset PIPELINE",
                spot=view.spot,
            )
        return EngineError(
            f'view "{view.name}" has several rows under the key {cause.key()}',
            detail=f"Its declared key is {', '.join(view.options.key or ())}. All views are as before this batch.",
            hint="Declare a key that no two rows share, or none; then: penstock reset PIPELINE",
            spot=view.key_spot or view.spot,
        )
