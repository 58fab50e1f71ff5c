"""A run: a pipeline at work as one streaming query.

What is promised: after every batch the change topics fold to exactly what the views' queries give over the prefix of
the log that was read; a batch is in the log once, however often Spark ran it; of two runs of one pipeline the newer
goes on and the older ends with an error, having changed nothing since.
"""

import fcntl
import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta
from itertools import takewhile
from pathlib import Path
from time import monotonic, sleep
from typing import Any

from pyspark.errors import StreamingQueryException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from penstock.engine.batches import Batches, Committed
from penstock.engine.catalyst import Handle
from penstock.engine.compile import Compiled, compiled
from penstock.engine.lineage import (
    Lineage,
    begun,
    check_unchanged,
    current,
    drop_older,
    fingerprint_of,
    make_current,
    newest,
)
from penstock.engine.query import Query, Tuning
from penstock.engine.source import stream_topic
from penstock.engine.topics import ensure_changes, ensure_sources
from penstock.errors import ConditionFailed, EngineError, PenstockError
from penstock.log import Epoch, Log
from penstock.model import Pipeline, Stream
from penstock.schema import Schema, parse_schema

LOCK_PATIENCE = timedelta(seconds=30)
POLL = timedelta(milliseconds=20)


@dataclass(frozen=True)
class Prepared:
    """A pipeline that is ready to run: planned, its topics there, its lineage chosen."""

    pipeline: Pipeline
    compiled: Compiled
    query: Query
    lineage: Lineage

    def views(self) -> dict[str, dict[str, Any]]:
        """What the frame that makes a lineage current says of each view."""
        return {
            view.name: {"key": list(self.compiled.key_of(view.name)), "store": view.options.store}
            for view in self.pipeline.views
        }


def prepared(
    spark: SparkSession, pipeline: Pipeline, log: Log, home: Path, *, anew: bool = False, plan: Compiled | None = None
) -> Prepared:
    """Plans the pipeline, unless that is done, and chooses its lineage: the newest, unless the pipeline has changed
    (refused) or `anew` asks for another.
    """
    plan = plan or compiled(spark, pipeline)
    query = Query(spark, plan.graph, Tuning())
    ensure_sources(log, pipeline)
    fingerprint = fingerprint_of(pipeline, plan, log, settings_of(spark))
    lineage = newest(home, pipeline.name)
    if lineage is None or anew:
        lineage = begun(home, log, pipeline.name, fingerprint)
    check_unchanged(lineage, fingerprint)
    return Prepared(pipeline, plan, query, lineage)


def epoch_name(pipeline: Pipeline) -> str:
    """The counter in the log that the newest run has raised."""
    return f"pipeline {pipeline.name}"


def settings_of(spark: SparkSession) -> dict[str, str]:
    """The settings that answers and state depend on."""
    names = ("spark.sql.ansi.enabled", "spark.sql.session.timeZone", "spark.sql.shuffle.partitions")
    return {name: str(spark.conf.get(name)) for name in names}


class Run:
    """A prepared pipeline with its epoch raised; `start` begins its query."""

    def __init__(
        self, spark: SparkSession, log: Log, home: Path, ready: Prepared, on_batch: Callable[[Committed], None]
    ) -> None:
        self._spark = spark
        self._log = log
        self._home = home
        self._ready = ready
        self._on_batch = on_batch
        self._failure: PenstockError | None = None
        self._goal = log.mark().next_frame
        self._current = False
        self._epoch = Epoch(epoch_name(ready.pipeline), log.raise_epoch(epoch_name(ready.pipeline)))
        self._ensure_change_topics()
        if ready.lineage.number == 1 or self._has_caught_up(self._read_before()):
            self._become_current()

    def _ensure_change_topics(self) -> None:
        for view in self._ready.pipeline.views:
            if view.options.store != "none":
                schema = schema_of(self._ready.compiled.schemas[view.name])
                ensure_changes(
                    self._log, self._ready.lineage, view.name, schema, self._ready.compiled.key_of(view.name)
                )

    def _become_current(self) -> None:
        self._current = True
        if current(self._log, self._ready.pipeline.name) != self._ready.lineage.number:
            make_current(self._log, self._ready.lineage, self._ready.views())
            drop_older(self._home, self._ready.lineage)

    def _read_before(self) -> int:
        """How far the batches of earlier runs have read."""
        last = self._log.last(self._ready.lineage.producer)
        return 0 if last is None else int(last.note["until"])

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

    def start(self, *, once: bool) -> StreamingQuery:
        """Begins the query; with `once` it ends when everything that is in the log now has been read."""
        door, graph = self._ready.compiled.graph.door, self._ready.compiled.graph
        specs = graph.handles(
            [self._spec(door, view.name) for view in self._ready.pipeline.views if view.options.store != "none"]
        )

        def collect(frame: Handle, folder: str) -> Mapping[str, int]:
            return dict(door.collect(frame, specs, folder))

        batches = Batches(self._log, self._ready.lineage, self._epoch, collect)
        options = self._ready.pipeline.options
        writer = (
            self._ready.query.streaming(self._sources())
            .writeStream.outputMode("append")
            .queryName(self._ready.pipeline.name)
            .option("checkpointLocation", str(self._ready.lineage.checkpoint))
            .foreachBatch(lambda frame, batch: self._commit(batches, frame, batch))
        )
        interval = f"{options.trigger_interval // timedelta(milliseconds=1)} milliseconds"
        return (writer.trigger(availableNow=True) if once else writer.trigger(processingTime=interval)).start()

    def _spec(self, door: Handle, view: str) -> Handle:
        plan = self._ready.compiled
        sink, flow = plan.graph.views[view]
        names = [column.name() for column in flow.out]
        key = [names.index(name) for name in plan.key_of(view)]
        return door.view(sink.id, view, plan.schemas[view], plan.graph.handles(key))

    def _sources(self) -> dict[str, DataFrame]:
        options, found = self._ready.pipeline.options, {}
        for relation in self._ready.pipeline.relations:
            watermark = relation.watermark if isinstance(relation, Stream) else None
            stream = stream_topic(
                self._spark,
                self._log.folder,
                relation.topic,
                watermark=watermark,
                max_records_per_batch=options.max_records_per_batch,
                scope=self._ready.pipeline.name,
            )
            found[relation.name] = stream.select(
                "*", "_deleted", "_place", "_watermark", "_partition", "_offset", "_appended_at"
            )
        return found

    def _commit(self, batches: Batches, frame: DataFrame, batch: int) -> None:
        try:
            done = batches.commit(frame, batch)
        except ConditionFailed as error:
            self._failure = EngineError(
                f'a newer run of pipeline "{self._ready.pipeline.name}" has taken over',
                detail=error.detail,
                hint="This run ends; it has changed nothing since.",
            )
            raise
        except PenstockError as error:
            self._failure = error
            raise
        if not self._current and self._has_caught_up(done.end):
            self._become_current()
        self._on_batch(done)

    def wait(self, query: StreamingQuery, *, stop: Callable[[], bool] = lambda: False) -> None:
        """Until the query ends by itself, or `stop` says so; raises what went wrong in it."""
        try:
            while query.isActive and not stop():
                sleep(POLL.total_seconds())
                self._leave_if_overtaken(query)
            query.stop()
            if (error := query.exception()) is not None:
                raise error
        except StreamingQueryException as error:
            raise self._failure or failed(self._ready.pipeline, error) from error
        if self._failure:
            raise self._failure

    def _leave_if_overtaken(self, query: StreamingQuery) -> None:
        if self._log.epoch(self._epoch.name) != self._epoch.value and self._failure is None:
            self._failure = EngineError(
                f'a newer run of pipeline "{self._ready.pipeline.name}" has taken over',
                hint="This run ends; it has changed nothing since.",
            )
            query.stop()


def failed(pipeline: Pipeline, error: StreamingQueryException) -> EngineError:
    text = str(error).split("JVM stacktrace")[0].strip()
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return EngineError(
        f'pipeline "{pipeline.name}" stopped',
        detail=lines[0] if lines else "",
        hint="Its views are as they were after the last batch; --debug shows all that Spark says.",
    )


def schema_of(struct: Handle) -> Schema:
    """A view's columns, all nullable, as the log declares them."""
    fields = [f"`{f.name().replace('`', '``')}` {f.dataType().sql()}" for f in struct.fields()]
    return parse_schema(", ".join(fields))


@contextmanager
def locked(home: Path, pipeline: str) -> Iterator[None]:
    """Only one process works on the checkpoints of a pipeline; a newer one waits a while for the older to leave."""
    home.mkdir(parents=True, exist_ok=True)
    with open(home / "lock", "a+") as file:
        waited_until = monotonic() + LOCK_PATIENCE.total_seconds()
        while True:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                if monotonic() > waited_until:
                    raise _held(file.name, pipeline) from None
                sleep(POLL.total_seconds())
        file.truncate(0)
        file.write(str(os.getpid()))
        file.flush()
        yield


def _held(path: str, pipeline: str) -> EngineError:
    holder = Path(path).read_text().strip()
    return EngineError(
        f'pipeline "{pipeline}" is held by another process',
        detail=f"Process {holder} has not left within {LOCK_PATIENCE.seconds} seconds.",
        hint="Stop it, then try again.",
    )
