"""Time: which rows come too late for their window, and what tells that a window is complete.

The time in a window is the event time of a stream. Rows of the stream carry the watermark that stood before them; those
that come when their window is over are left out of the view's query, and looked for by another. An aggregate over a
window that nothing but the stream feeds is told how far the stream's watermark has come.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, TypedDict

from pyspark.sql import DataFrame, SparkSession

from penstock.engine.nodes import Handle
from penstock.errors import EngineError
from penstock.log import Epoch
from penstock.log.protocol import OrderedLog
from penstock.log.standing import By
from penstock.model import History, Pipeline, Stream, Table, View

END = datetime(9999, 12, 31, tzinfo=UTC)
LAST = (END - datetime(1970, 1, 1, tzinfo=UTC)) // timedelta(microseconds=1)
"""The same in microseconds."""
LATE = "late"
"""The kind of the sinks that late rows go to."""


@dataclass(frozen=True)
class Waiting:
    """How the windows of a view close: whether they are shown only then, and how long they are kept."""

    final: bool
    allowed: timedelta

    @property
    def microseconds(self) -> int:
        return self.allowed // timedelta(microseconds=1)


def waiting(view: View) -> Waiting:
    return Waiting(view.options.emit == "final", view.options.allowed_lateness)


class Marks(TypedDict, total=False):
    """How the watermark of a relation goes on."""

    watermark: timedelta
    watermark_by: By
    scope: str


def marks_of(pipeline: Pipeline, relation: Stream | Table) -> Marks:
    marks: Marks = {"scope": pipeline.name}
    if isinstance(relation, Stream):
        marks["watermark_by"] = relation.watermark_by
        if relation.watermark is not None:
            marks["watermark"] = relation.watermark
    return marks


def known_of(relation: Stream | Table) -> dict[str, str]:
    """What the planner is told of a stream: that it is one, its event time, and up to how many microseconds after the
    append time that is plausible.
    """
    if not isinstance(relation, Stream):
        return {}
    if relation.event_time is None:
        return {"stream": "true"}
    plausible = str(relation.plausible // timedelta(microseconds=1))
    return {"stream": "true", "eventTime": relation.event_time, "plausible": plausible}


def end_time(log: OrderedLog, pipeline: Pipeline, epoch: Epoch) -> None:
    """Says in the log that for this pipeline no more events come, of any stream, if its run is still the newest: what
    is appended later is late.
    """
    streams = [each for each in pipeline.relations if isinstance(each, Stream) and each.event_time]
    if topics := sorted({each.topic for each in streams}):
        log.punctuate(topics, END, scope=pipeline.name, expect=[epoch])


def others_of(relation: Stream | Table, relations: Iterable[Stream | Table]) -> list[str]:
    """The other streams whose watermarks count for rows of this one where both meet."""
    if not isinstance(relation, Stream) or not relation.event_time:
        return []
    return [each.name for each in relations if isinstance(each, Stream) and each.event_time and each != relation]


def retains(pipeline: Pipeline) -> bool:
    """Whether anything in it is corrected for a limited time only."""
    spans = [each.retain for each in pipeline.relations if isinstance(each, Stream)]
    return any(span is not None for span in [*spans, *(view.options.retain for view in pipeline.views)])


class Times:
    """Of the streams of one pipeline."""

    def __init__(
        self,
        spark: SparkSession,
        door: Handle,
        relations: Iterable[Stream | Table],
        versions: Mapping[str, DataFrame] | None = None,
    ) -> None:
        """For Spark's batch engine, `versions` are the rows that tables have had: see `oracle`."""
        self._spark = spark
        self._door = door
        known = list(relations)
        self._streams = [each for each in known if isinstance(each, Stream) and each.event_time]
        self._without_time = [each.name for each in known if isinstance(each, Stream) and not each.event_time]
        histories = [each for each in known if isinstance(each, History)]
        self._times = door.times(
            self._map({each.name: each.event_time for each in self._streams}),
            self._list(each.name for each in histories),
            self._list(each.name for each in histories if each.watermark is None),
            self._list(each.name for each in known if each not in self._streams),
            None if versions is None else self._map({name: frame._jdf for name, frame in versions.items()}),
        )

    def _map(self, items: Mapping[str, Any]) -> Handle:
        made = self._spark._jvm.java.util.HashMap()  # type: ignore[union-attr]
        for name, value in items.items():
            made.put(name, value)
        return made

    def _list(self, items: Iterable[str]) -> Handle:
        made = self._spark._jvm.java.util.ArrayList()  # type: ignore[union-attr]
        for item in items:
            made.add(item)
        return made

    def _retain(self, view: View) -> Handle:
        """For how many microseconds rows of streams are corrected in a view."""
        spans = {
            each.name: each.retain if view.options.retain is None else view.options.retain for each in self._streams
        }
        return self._map({name: span // timedelta(microseconds=1) for name, span in spans.items() if span is not None})

    def timely(self, frame: DataFrame, view: View) -> DataFrame:
        """The view's query without late rows, waiting for what is complete if the view does."""
        how = waiting(view)
        return DataFrame(self._times.timely(frame._jdf, how.microseconds, how.final, self._retain(view)), self._spark)

    def complete(self, frame: DataFrame, view: View, until: Mapping[str, int]) -> DataFrame:
        """The same in batch: what is complete when streams have come as far as `until` says."""
        how = waiting(view)
        if not how.final:
            return self.timely(frame, view)
        made = self._times.complete(frame._jdf, how.microseconds, self._map(until), self._retain(view))
        return DataFrame(made, self._spark)

    def learn(self, view: View, plan: Handle) -> None:
        """From now on queries that read the view know when its rows are complete."""
        how = waiting(view)
        self._times.learn(view.name, plan, how.microseconds, how.final)

    def opened(self, view: View, frame: DataFrame) -> bool:
        """Whether a view only selects rows of a stream, so that views that read it see the stream's times; with a key
        of its own it is more than that.
        """
        return not view.options.key and bool(self._times.opened(view.name, frame._jdf.queryExecution().analyzed()))

    def late(self, frame: DataFrame, view: View) -> list[DataFrame]:
        """The rows that its query leaves out, for each window that it groups by."""
        how = waiting(view)
        found = self._times.late(frame._jdf, how.microseconds, how.final, self._retain(view))
        return [DataFrame(each, self._spark) for each in found]

    def concerned(self, frame: DataFrame, view: View) -> list[DataFrame]:
        """In batch: the rows of streams that records came too late to correct, by stream and place."""
        found = self._times.concerned(frame._jdf, waiting(view).final, self._retain(view))
        return [DataFrame(each, self._spark) for each in found]

    def closing(self, node: Handle, how: Waiting) -> Handle | None:
        """What frees the state of an operator as time goes on: its `streams`, and how."""
        return self._times.closing(node, how.microseconds, how.final)

    def has_clock(self, plan: Handle) -> bool:
        return bool(self._times.hasClock(plan))

    def check_retained(self, view: View, plan: Handle) -> None:
        if view.options.retain is not None and not self._door.isRetained(plan):
            raise EngineError(
                f'retain says nothing about view "{view.name}"',
                detail="It bounds how long rows of a stream with an event time are corrected by what they are joined "
                "with on equal columns, a table or another stream, where no range of time does.",
                hint="Leave it out.",
                spot=view.spot,
            )

    def check_late(self, view: View, late: Sequence[DataFrame]) -> None:
        policy = view.options.late
        if policy == "keep" or late:
            return
        corrects = policy == "correct"
        raise EngineError(
            f'nothing can be late for view "{view.name}"',
            detail="Its query has no bound in time that rows of a stream could miss: they count whenever they "
            f"come, and there is nothing to {policy}.",
            hint="Leave out late = 'correct' and allowed_lateness." if corrects else "Leave out late = 'drop'.",
            spot=view.spot,
        )

    def check_final(self, view: View, plan: Handle) -> None:
        if view.options.emit != "final" or self._times.isComplete(plan):
            return
        detail = "Nothing in its query tells when a row is complete."
        hint = (
            "Group or join by window(...) of event times; bound joins of streams in time, those with tables by retain."
        )
        if timeless := self._timeless(plan):
            detail = f'Stream "{timeless}" has no event time: nothing tells when a row is complete.'
            hint = "Declare one: WITH (event_time = 'at', watermark = '10 seconds')."
        raise EngineError(
            f'view "{view.name}" cannot wait until its rows are final', detail=detail, hint=hint, spot=view.spot
        )

    def _timeless(self, plan: Handle) -> str | None:
        """A stream that the plan reads and that has no event time."""
        read = {self._door.relation(leaf) for leaf in self._door.list(plan.collectLeaves())}
        return next((name for name in self._without_time if name in read), None)
