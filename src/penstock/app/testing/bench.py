"""A bench: one pipeline at work in a folder of its own, driven step by step.

A step's rows are one frame of the bench's log, and the query has nothing left to do when `settle` returns. A bench that
is opened again plans its pipeline anew from the text and reads its state from the checkpoint, as another process would.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from penstock.app.testing.case import Step, Weighted
from penstock.app.testing.comparing import row_of
from penstock.app.testing.values import Misfit, cast
from penstock.engine.compile import Compiled
from penstock.engine.lineage import Lineage
from penstock.engine.run import Run, prepared
from penstock.engine.stages import OnStage, nobody
from penstock.errors import CommandError
from penstock.log import Log, Record
from penstock.log.disk import Disk
from penstock.model import Pipeline, Stream, pipeline_of
from penstock.schema import Scalar

NAME = "case"
AT_ONCE = {"trigger_interval": "0 seconds"}


@dataclass(frozen=True)
class Text:
    """A pipeline as a case gives it."""

    sql: str
    options: Mapping[str, Any] = field(default_factory=dict)

    def pipeline(self) -> Pipeline:
        """Every view has a topic, from which it is read; no store follows them. A view of files stays one, for others
        may be refused as that.
        """
        pipeline = pipeline_of(self.sql, name=NAME, options={**AT_ONCE, **self.options})
        topics = tuple(
            view
            if view.options.store == "files"
            else replace(view, options=replace(view.options, store="topic", index=None))
            for view in pipeline.views
        )
        return replace(pipeline, views=topics)


class Unsynced(Disk):
    """What is gone after the test need not survive a power failure."""

    def sync(self, file: int) -> None:
        pass

    def sync_folder(self, folder: Path) -> None:
        pass


@dataclass(frozen=True)
class Ground:
    """A Spark session, and the settings of the sessions beside it that every case gets."""

    spark: Any
    settings: Mapping[str, str]

    def session_for(self, pipeline: Pipeline) -> Any:
        """A session with the settings that the pipeline asks for."""
        options = pipeline.options
        asked = {"spark.sql.ansi.enabled": str(options.ansi).lower(), "spark.sql.session.timeZone": options.time_zone}
        if options.shuffle_partitions is not None:
            asked["spark.sql.shuffle.partitions"] = str(options.shuffle_partitions)
        session = self.spark.newSession()
        for name, value in {**self.settings, **asked, **options.spark}.items():
            session.conf.set(name, value)
        return session


def feed(log: Log, pipeline: Pipeline, step: Step) -> None:
    """Appends what a step feeds, as one frame; then its watermarks."""
    _append(log, pipeline, step.feed)
    _punctuate(log, pipeline, step.watermark)


def _append(log: Log, pipeline: Pipeline, given: Mapping[str, Sequence[Weighted]]) -> None:
    rows = {}
    for name, weighted in given.items():
        relation = pipeline.relation(name)
        if weighted:
            rows[relation.topic] = [_record(relation, weight, row) for weight, row in weighted]
    if rows:
        log.append_all(rows)


def _punctuate(log: Log, pipeline: Pipeline, given: Mapping[str, str]) -> None:
    for name, time in given.items():
        relation = pipeline.relation(name)
        if not isinstance(relation, Stream) or not relation.event_time:
            raise CommandError(f'"{name}" has no watermark', hint="Declare it as a stream WITH (event_time = ...).")
        try:
            log.punctuate(relation.topic, cast(Scalar("TIMESTAMP"), time))
        except Misfit as misfit:
            raise CommandError(f'the watermark of "{name}" is no time', detail=f"{misfit}.") from None


def _record(relation: Any, weight: int, row: Sequence[Any]) -> Record:
    try:
        value = dict(zip(relation.given.names, row_of(relation.given, row), strict=True))
    except Misfit as misfit:
        raise CommandError(f'what is fed to "{relation.name}" does not fit', detail=f"{misfit}.") from None
    if weight > 0:
        return Record(value)
    if isinstance(relation, Stream):
        raise CommandError(f'"{relation.name}" is a stream: no row leaves it', hint="Declare it as a table.")
    timed = (relation.event_time,) if relation.history else ()
    return Record({name: value[name] for name in (*relation.key, *timed) or value}, deleted=True)


class Bench:
    """The pipeline of a case; close it in the end."""

    def __init__(self, ground: Ground, folder: Path, text: Text) -> None:
        self.log = Log.open(folder / "log", disk=Unsynced())
        self.folder = folder
        self._ground = ground
        self._text = text
        self._run: Run | None = None
        self._query: Any = None

    def open(self) -> None:
        """Plans the pipeline, or refuses it; nothing runs yet."""
        self.pipeline = self._text.pipeline()
        self._spark = self._ground.session_for(self.pipeline)
        self._ready = prepared(self._spark, self.pipeline, self.log, self.folder / "home")
        self._run = Run(self._spark, self.log, self.folder / "home", self._ready, lambda _: None)

    @property
    def plan(self) -> Compiled:
        return self._ready.compiled

    @property
    def lineage(self) -> Lineage:
        return self._ready.lineage

    def feed(self, step: Step) -> None:
        feed(self.log, self.pipeline, step)

    def settle(self, on_stage: OnStage = nobody) -> None:
        """Until the pipeline has nothing left to do; it is started if it does not run."""
        assert self._run is not None
        if self._query is None:
            self._query = self._run.start(once=False, on_stage=on_stage)
        try:
            self._query.processAllAvailable()
        except Exception:
            self.stop()  # and says it in our words
            raise

    def stop(self) -> None:
        query, self._query = self._query, None
        if query is not None and self._run is not None:
            self._run.wait(query, stop=lambda: True)

    def close(self) -> None:
        try:
            self.stop()
        finally:
            self.log.close()
