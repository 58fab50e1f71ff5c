"""A run: a pipeline at work as one streaming query.

What is promised: after every batch the change topics fold to exactly what the views' queries give over the prefix of
the log that was read; a batch is in the log once, however often Spark ran it; of two runs of one pipeline the newer
goes on and the older ends with an error, having changed nothing since.
"""

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import timedelta
from itertools import takewhile
from pathlib import Path
from time import sleep
from typing import Any

from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException, StreamingQueryException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from penstock.engine.batches import Batches, Committed
from penstock.engine.checkpoint import address, check_fits, take_up
from penstock.engine.compile import Compiled, compiled
from penstock.engine.failing import failed, is_stopped
from penstock.engine.fingerprint import APART, LEVELS, TOGETHER, check_unchanged, fingerprint_of, levels_of
from penstock.engine.idleness import Idleness
from penstock.engine.kafka import lies_in_kafka
from penstock.engine.lineage import Lineage, begun, current, drop_older, make_current, newest
from penstock.engine.locking import hold
from penstock.engine.master import PARTITIONS, runs_together
from penstock.engine.query import UNREAD, Query, Tuning
from penstock.engine.sinks import Sinks
from penstock.engine.source import NO_TIME, columns_of, other_streams, stream_topic, watermark_at
from penstock.engine.stages import OnStage, Stage, nobody
from penstock.engine.static import static_streams
from penstock.engine.timing import end_time, marks_of, others_of, retains
from penstock.engine.topics import ensure_sources
from penstock.engine.whole import check_not_compacted_by_others, check_whole
from penstock.errors import ConditionFailed, EngineError, PenstockError
from penstock.log import Epoch
from penstock.log.protocol import OrderedLog
from penstock.model import History, Pipeline, Stream, View

POLL = timedelta(milliseconds=20)
STEPS = 2_000
"""The most frames of a batch where operators are told of every step of a watermark: each frame may be one."""


@dataclass(frozen=True)
class Prepared:
    """A pipeline that is ready to run: planned, its topics there, its lineage chosen."""

    pipeline: Pipeline
    compiled: Compiled
    query: Query
    lineage: Lineage

    def views(self) -> dict[str, dict[str, Any]]:
        """What the frame that makes a lineage current says of each view."""
        return {view.name: self._said(view) for view in self.pipeline.views}

    def _said(self, view: View) -> dict[str, Any]:
        said = {"key": list(self.compiled.key_of(view.name)), "store": view.options.store}
        parts = self.compiled.partitions[view.name]
        indexes = self.compiled.indexes[view.name]
        said |= {"partition_by": list(parts)} if parts else {}
        return said | ({"index": [list(columns) for columns in indexes]} if indexes else {})


def prepared(  # noqa: PLR0913 (what a test, or a command, knows already)
    spark: SparkSession,
    pipeline: Pipeline,
    log: OrderedLog,
    home: Path,
    *,
    anew: bool = False,
    plan: Compiled | None = None,
    tuning: Tuning | None = None,
) -> Prepared:
    """Plans the pipeline, unless that is done, and chooses its lineage: the newest, unless the pipeline has changed
    (refused) or `anew` asks for another.
    """
    plan = plan or compiled(spark, pipeline)
    lineage = None if anew else newest(home, pipeline.name)
    together = runs_together(spark) if lineage is None else goes_on_together(spark, lineage)
    query = Query(spark, plan.graph, tuning or Tuning(), together=together)
    ensure_sources(log, pipeline)
    fingerprint = fingerprint_of(pipeline, plan, log, settings_of(spark))
    check_not_compacted_by_others(log, pipeline)
    if lineage is None:
        check_whole(log, pipeline)
        lineage = begun(home, log, pipeline.name, fingerprint | {LEVELS: TOGETHER if query.together else APART})
    check_unchanged(lineage, fingerprint)
    check_fits(lineage, log)
    return Prepared(pipeline, plan, query, lineage)


def raised_epoch(log: OrderedLog, pipeline: Pipeline) -> Epoch:
    """From now on older runs of the pipeline can append nothing; they see it and leave."""
    name = epoch_name(pipeline.name)
    return Epoch(name, log.raise_epoch(name))


def epoch_name(pipeline: str) -> str:
    return f"pipeline {pipeline}"


def settings_of(spark: SparkSession) -> dict[str, str]:
    """The settings that answers and state depend on."""
    names = ("spark.sql.ansi.enabled", "spark.sql.session.timeZone", PARTITIONS)
    return {name: str(spark.conf.get(name)) for name in names}


def goes_on_together(spark: SparkSession, lineage: Lineage) -> bool:
    """Whether the levels of this lineage are one operator. Levels apart can go on anywhere, levels together only where
    all tasks run in one process.
    """
    together = levels_of(lineage) == TOGETHER
    if together and not runs_together(spark):
        raise EngineError(
            f'the state of pipeline "{lineage.pipeline}" is one that only tasks of one process can share',
            detail=f"It was begun in one process; now Spark runs at {spark.sparkContext.master}, "
            f"with {spark.conf.get(PARTITIONS)} partitions.",
            hint="Run it as before, or compute its answers anew: penstock reset PIPELINE",
        )
    return together


class Run:
    """A prepared pipeline in its epoch, the one that was raised before the checkpoint was waited for; `start` begins
    its query.
    """

    def __init__(  # without an epoch, nobody had to wait
        self,
        spark: SparkSession,
        log: OrderedLog,
        home: Path,
        ready: Prepared,
        on_batch: Callable[[Committed], None],
        epoch: Epoch | None = None,
    ) -> None:
        self._spark = spark
        self._log = log
        self._home = home
        self._ready = ready
        self._on_batch = on_batch
        self._failure: PenstockError | None = None
        self._stopping = False
        self._goal = log.mark().next_frame
        self._current = False
        self._epoch = epoch or raised_epoch(log, ready.pipeline)
        if self._is_over():
            raise self._overtaken()
        self._idleness = Idleness(log, ready.pipeline, self._epoch)
        self._relations = ready.pipeline.relations
        self._on_kafka = lies_in_kafka(log.folder)  # where anybody writes, and anything
        self._sinks = Sinks(
            ready.pipeline,
            ready.compiled,
            ready.lineage,
            limit=ready.query.tuning.collected_bytes,
            unread=self._on_kafka,
            alone=ready.query.together,
        )
        self._sinks.ensure_topics(log)
        read = self._read_before()
        if ready.lineage.number == 1 or (read is not None and self._has_caught_up(read)):
            try:
                self._become_current()
            except ConditionFailed as error:
                raise self._overtaken() from error

    def end_time(self) -> None:
        """Every window closes: see `timing.end_time`."""
        try:
            end_time(self._log, self._ready.pipeline, self._epoch)
        except ConditionFailed as error:
            raise self._overtaken() from error

    def _become_current(self) -> None:
        self._current = True
        if current(self._log, self._ready.pipeline.name) != self._ready.lineage.number:
            reads = sorted({relation.topic for relation in self._ready.pipeline.relations})
            make_current(self._log, self._ready.lineage, self._ready.views(), reads, self._epoch)
        drop_older(self._home, self._ready.lineage.number)  # always: an earlier run may have died before it

    def _read_before(self) -> int | None:
        """How far the batches of earlier runs have read; none has before the first, which says what the views are
        without any records.
        """
        last = self._log.last(self._ready.lineage.producer)
        return None if last is None else int(last.note["until"])

    def _has_caught_up(self, end: int) -> bool:
        """Whether nothing for the pipeline lies between `end` and where the log stood when the run began.

        Frames of others, and the changes of earlier lineages, are passed over: no batch ever ends with them.
        """
        scopes, topics = ("", self._ready.pipeline.name), {each.topic for each in self._ready.pipeline.relations}
        frames = takewhile(lambda header: header.frame < self._goal, self._log.frames(end)) if end < self._goal else ()
        return not any(
            any(block.topic in topics for block in header.blocks)
            or any(mark.topic in topics and mark.scope in scopes for mark in header.punctuation)
            for header in frames
        )

    def start(self, *, once: bool, on_stage: OnStage = nobody) -> StreamingQuery:
        """Begins the query; with `once` it ends when everything that is in the log now has been read."""
        hold(self._spark, self._ready.lineage)
        take_up(self._spark, self._ready.lineage.checkpoint)
        self._tell_idleness()
        batches = Batches(self._log, self._ready.lineage, self._epoch, self._sinks, on_stage)
        options = self._ready.pipeline.options
        writer = (
            self._ready.query.streaming(self._sources(), {each.name: each.topic for each in self._relations})
            .writeStream.outputMode("append")
            .queryName(self._ready.pipeline.name)
            .option("checkpointLocation", address(self._ready.lineage.checkpoint))
            .foreachBatch(lambda frame, batch: self._commit(batches, frame, batch, on_stage))
        )
        interval = f"{options.trigger_interval // timedelta(milliseconds=1)} milliseconds"
        return (writer.trigger(availableNow=True) if once else writer.trigger(processingTime=interval)).start()

    def _sources(self) -> dict[str, DataFrame]:
        options = self._ready.pipeline.options
        found = static_streams(self._spark, self._ready.compiled.graph, self._ready.lineage)
        for relation in self._ready.pipeline.relations:
            stream = stream_topic(
                self._spark,
                self._log.folder,
                relation.topic,
                max_records_per_batch=options.max_records_per_batch,
                max_frames_per_batch=STEPS if retains(self._ready.pipeline) else None,
                streams=other_streams(relation, self._ready.pipeline),
                **marks_of(self._ready.pipeline, relation),
            )
            # A stream only grows: there a record that is marked as a deletion is a record like any other.
            marks = [] if isinstance(relation, Stream) else ["_deleted"]
            known = columns_of(relation) if isinstance(relation, History) else ["*"]
            others = [f"`_watermark of {name}`" for name in others_of(relation, self._ready.pipeline.relations)]
            unread = UNREAD if self._on_kafka and not isinstance(relation, History) else ()
            found[relation.name] = stream.select(
                *known, *marks, "_place", "_watermark", "_partition", "_offset", "_appended_at", *others, *unread
            )
        return found

    def watermarks(self, frame: int) -> dict[str, int]:
        """How far the watermark of each stream had come before a frame, in microseconds; those that have one."""
        found = {}
        for relation in self._ready.pipeline.relations:
            if isinstance(relation, Stream) and relation.event_time:
                marks = marks_of(self._ready.pipeline, relation)
                found[relation.name] = watermark_at(self._spark, self._log.folder, relation.topic, frame, **marks)
        return {name: time for name, time in found.items() if time > NO_TIME}

    def _commit(self, batches: Batches, frame: DataFrame, batch: int, on_stage: OnStage) -> None:
        try:
            done = replace(batches.commit(frame, batch), open=self._ready.query.open_windows())
            if not self._current and self._has_caught_up(done.end):
                self._become_current()
            self._log.report(self._ready.pipeline.name, [each.topic for each in self._relations], done.end)
        except ConditionFailed:
            self._failure = self._overtaken()
            raise
        except PenstockError as error:
            self._failure = self._failure or error
            raise
        except (Py4JJavaError, PySparkException) as error:  # of a batch that is stopped too: why is known then
            if not (self._stopping and is_stopped(error)):
                self._failure = self._failure or failed(self._ready.pipeline, error)
            raise
        self._on_batch(done)
        on_stage(Stage.COMMITTING, batch)

    def wait(self, query: StreamingQuery, *, stop: Callable[[], bool] = lambda: False) -> None:
        """Until the query ends by itself, or `stop` says so, also in the middle of a batch; raises what went wrong in
        it.
        """
        try:
            while query.isActive and not stop():
                sleep(POLL.total_seconds())
                self._leave_if_overtaken(query)
                self._tell_idleness()
            self._stopping = query.isActive
            query.stop()
            if (error := query.exception()) is not None and not (self._stopping and is_stopped(error)):
                raise error
        except StreamingQueryException as error:
            raise self._failure or failed(self._ready.pipeline, error) from error
        if self._failure:
            raise self._failure

    def _tell_idleness(self) -> None:
        with suppress(ConditionFailed):  # a newer run has taken over: the next look at the epoch says so
            self._idleness.look()

    def _leave_if_overtaken(self, query: StreamingQuery) -> None:
        if self._is_over() and self._failure is None:
            self._failure = self._overtaken()
            query.stop()

    def _is_over(self) -> bool:
        return self._log.epoch(self._epoch.name) != self._epoch.value

    def _overtaken(self) -> EngineError:
        newest = self._log.epoch(self._epoch.name)
        return EngineError(
            f'a newer run of pipeline "{self._ready.pipeline.name}" has taken over',
            detail=f"This run has epoch {self._epoch.value}, the newest is {newest}.",
            hint="This run ends; it has changed nothing since.",
        )
