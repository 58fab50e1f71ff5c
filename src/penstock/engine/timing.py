"""Time: which rows come too late for their window, and what tells that a window is complete.

The time in a window is the event time of a stream. Rows of the stream carry the watermark that stood before them; those
that come when their window is over are left out of the view's query, and looked for by another. An aggregate over a
window that nothing but the stream feeds is told how far the stream's watermark has come.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import TypedDict

from pyspark.sql import DataFrame, SparkSession

from penstock.engine.nodes import Handle
from penstock.errors import EngineError
from penstock.log import Log
from penstock.log.standing import By
from penstock.model import Pipeline, Stream, Table, View

END = datetime(9999, 12, 31, tzinfo=UTC)
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
    """What the planner is told of a relation: up to how many microseconds after the append time a time is plausible."""
    if not isinstance(relation, Stream) or relation.event_time is None:
        return {}
    return {"plausible": str(relation.plausible // timedelta(microseconds=1))}


def end_time(log: Log, pipeline: Pipeline) -> None:
    """Says in the log that for this pipeline no more events come: what is appended later is late."""
    for relation in pipeline.relations:
        if isinstance(relation, Stream) and relation.event_time:
            log.punctuate(relation.topic, END, scope=pipeline.name)


class Times:
    """Of the streams of one pipeline."""

    def __init__(self, spark: SparkSession, door: Handle, relations: Iterable[Stream | Table]) -> None:
        self._spark = spark
        self._door = door
        self._streams = self._map(
            {each.name: each.event_time for each in relations if isinstance(each, Stream) and each.event_time}
        )

    def _map(self, items: Mapping[str, str]) -> Handle:
        made = self._spark._jvm.java.util.HashMap()  # type: ignore[union-attr]
        for name, value in items.items():
            made.put(name, value)
        return made

    def timely(self, frame: DataFrame, view: View, complete: Mapping[str, int] | None = None) -> DataFrame:
        """The view's query without late rows; given how far each stream has come, only windows that are complete."""
        until = self._map({stream: str(time) for stream, time in (complete or {}).items()})
        made = self._door.timely(frame._jdf, self._streams, waiting(view).microseconds, until)
        return DataFrame(made, self._spark)

    def late(self, frame: DataFrame, view: View) -> list[DataFrame]:
        """The rows that its query leaves out, for each window that it groups by."""
        if view.options.late == "drop":
            return []
        found = self._door.late(frame._jdf, self._streams, waiting(view).microseconds)
        return [DataFrame(each, self._spark) for each in found]

    def clock(self, aggregate: Handle) -> tuple[str, int] | None:
        """The stream that completes the windows of an aggregate, and where they stand in its key."""
        found = self._door.clock(aggregate, self._streams)
        return None if found is None else (found[0], found[1])

    def has_clock(self, plan: Handle) -> bool:
        return bool(self._door.hasClock(plan, self._streams))

    def check_final(self, view: View, plan: Handle) -> None:
        if view.options.emit == "final" and not self._door.isComplete(plan, self._streams):
            raise EngineError(
                f'view "{view.name}" cannot wait until its rows are final',
                detail="Nothing in its query tells when a row is complete.",
                hint="Group by window(...) of the event time of one stream, without a table that may still change.",
                spot=view.spot,
            )
