"""Playing: a case from its first step to its last, and what came of it.

A case ends with the first step that does not hold; all that does not hold in that step is told. The engine's views are
read from their topics of changes, frame by frame, where a row can only leave that is there.
"""

from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Protocol

from penstock.app.testing.bench import Bench, Ground, Text, Unsynced, feed
from penstock.app.testing.case import Case, Step
from penstock.app.testing.comparing import Late, Row, Seen, counted, difference, signed, wanted
from penstock.app.testing.lateness import late_of, shared_out
from penstock.app.testing.values import Misfit
from penstock.engine.oracle import Oracle
from penstock.engine.sinks import late_rows
from penstock.engine.stages import Stage
from penstock.engine.topics import ensure_sources
from penstock.errors import PenstockError
from penstock.log import Log, Place
from penstock.views import changes, current


class Player(Protocol):
    """Who takes the steps of a case."""

    def open(self) -> None:
        """Plans the pipeline, or refuses it."""

    def play(self, step: Step) -> Mapping[str, Seen]:
        """Takes the step; the views that it looks at, as they are then."""

    def close(self) -> None: ...


def reason_against(case: Case, player: Player) -> str:
    """Why the case does not hold; empty if it does."""
    try:
        return _refusal(case.error, player) if case.error is not None else _steps(case, player)
    except PenstockError as error:
        return str(error)
    except Exception as error:  # one case that breaks the engine must not end the others
        return f"{type(error).__name__}: {str(error).strip()}"


def _refusal(error: str, player: Player) -> str:
    try:
        player.open()
    except PenstockError as refused:
        return "" if error in str(refused) else f'it is refused, but not with "{error}":\n{refused}'
    finally:
        player.close()
    return f'it is not refused; wanted was "{error}"'


def _steps(case: Case, player: Player) -> str:
    try:
        player.open()
        for step in case.steps:
            try:
                lines = list(_differences(step, player.play(step)))
            except (PenstockError, Misfit) as error:
                return f"{_named(step)}: {error}"
            if lines:
                return "\n".join([_named(step), *(f"  {line}" for line in lines)])
        return ""
    finally:
        player.close()


def _named(step: Step) -> str:
    return f"step {step.number} ({step.spot.file}:{step.spot.line})"


def _differences(step: Step, seen: Mapping[str, Seen]) -> Iterator[str]:
    for view, rows in step.want.items():
        at = seen[view]
        yield from difference(f"want {view}", Counter(wanted(at, rows)), at.rows, at.schema)
    for view, weighted in step.changes.items():
        at, net = seen[view], Counter[Row]()
        for weight, row in zip((w for w, _ in weighted), wanted(at, (row for _, row in weighted)), strict=True):
            net[row] += weight
        yield from difference(f"changes {view}", signed(net), signed(at.changes), at.schema)
    for view, rows in step.late.items():
        for late, want in shared_out(seen[view].late, rows):
            yield from difference(f"late {view}, of {late.stream}", want, late.rows, late.schema)


class OnEngine:
    """The case on the incremental engine; `frame` is where the changes begin that no step has looked at yet."""

    def __init__(self, ground: Ground, folder: Path, case: Case, *, seen_until: int = 0) -> None:
        self._bench = Bench(ground, folder, Text(case.pipeline, case.options))
        self._held: dict[str, Counter[Row]] = {view: Counter() for view in _views_of(case)}
        self.frame = seen_until

    def open(self) -> None:
        self._bench.open()
        if self.frame:
            for view in self._held:
                self._take(view, 0, self.frame)

    def play(self, step: Step) -> Mapping[str, Seen]:
        if step.restart:
            self._bench.stop()
            self._bench.open()
        self._bench.feed(step)
        self._bench.settle(self.on_stage)
        start, self.frame = self.frame, self._bench.log.mark().next_frame
        return {view: self._take(view, start, self.frame) for view in self._held}

    def on_stage(self, stage: Stage, batch: int) -> None:
        """Is told of the stages of the batches."""

    def _take(self, view: str, start: int, end: int) -> Seen:
        """The view after the changes of these frames."""
        log, name = self._bench.log, self._bench.pipeline.view(view).name
        lineage = current(log, self._bench.pipeline.name)
        assert lineage is not None
        schema, unordered = lineage.view(name).schema, self._bench.plan.unordered[name]
        net, held = Counter[Row](), self._held[view]
        for change in changes(log, self._bench.pipeline.name, name, start):
            if change.position.frame < end:
                row = counted(schema, list(change.row.values()), unordered=unordered)
                net[row] += change.weight
                held[row] += change.weight
                if held[row] < 0:
                    raise Misfit(f"view {name} takes away a row that it does not have: {row}")
        return Seen(schema, +held, net, unordered, self._late(name, start, end))

    def _late(self, view: str, start: int, end: int) -> list[Late]:
        if view not in self._bench.plan.late or self._bench.pipeline.view(view).options.late == "drop":
            return late_of(self._bench.pipeline, [])
        topic = self._bench.lineage.topic(late_rows(view))
        batches = self._bench.log.batches(topic, start=Place(start), end=Place(end))
        rows = (row for batch in batches for row in batch.to_pylist())
        return late_of(self._bench.pipeline, ((row["relation"], row["row"]) for row in rows))

    def close(self) -> None:
        self._bench.close()


class InBatch:
    """The case by Spark's batch engine over the same log, step by step: whether what it says is right at all."""

    def __init__(self, ground: Ground, folder: Path, case: Case) -> None:
        self._ground = ground
        self._case = case
        self._log = Log.open(folder / "log", disk=Unsynced())
        self._held: dict[str, Counter[Row]] = {view: Counter() for view in _views_of(case)}
        self._known: dict[str, Counter[tuple[str, str]]] = {view: Counter() for view in self._held}

    def open(self) -> None:
        self._pipeline = Text(self._case.pipeline, self._case.options).pipeline()
        ensure_sources(self._log, self._pipeline)

    def play(self, step: Step) -> Mapping[str, Seen]:
        feed(self._log, self._pipeline, step)
        until = self._log.mark().next_frame
        oracle = _Oracle(self._ground.session_for(self._pipeline), self._pipeline, self._log.folder, until)
        return {view: self._seen(oracle, view) for view in self._held}

    def _seen(self, oracle: Oracle, view: str) -> Seen:
        name = self._pipeline.view(view).name
        schema, table = oracle.schema(name), oracle.rows(name)
        unordered = oracle.unordered(name)
        columns = [column.to_pylist() for column in table.columns]
        held = Counter(counted(schema, row, unordered=unordered) for row in zip(*columns, strict=True))
        net = held.copy()
        net.subtract(self._held[view])
        self._held[view] = held
        return Seen(schema, held, net, unordered, self._late(oracle, view, name))

    def _late(self, oracle: Oracle, view: str, name: str) -> list[Late]:
        found = Counter(oracle.late(name))
        fresh, self._known[view] = found - self._known[view], found
        return late_of(self._pipeline, fresh.elements())

    def close(self) -> None:
        self._log.close()


class _Oracle(Oracle):
    """In a session that has all settings of the case, and is used once."""

    def _session(self, spark: Any) -> Any:
        return spark


def _views_of(case: Case) -> tuple[str, ...]:
    return tuple(dict.fromkeys(view for step in case.steps for view in step.views))
