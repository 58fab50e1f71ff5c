"""Pipelines at work: what the commands do, without the terminal.

A run reads the log, appends changes to it, and its store follows them. It leaves promptly, whatever happens: when the
log is drained (`once`), when `stop` says so, on Ctrl-C, on an error. Then Spark is gone, the store stands where the
log stands, and another run can go on.
"""

import os
import signal
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from threading import current_thread, main_thread
from typing import Any, ParamSpec, Unpack

from penstock.app.chronicle import Chronicle, StoreClock
from penstock.app.counting import Counts
from penstock.app.keeping import filed, kept
from penstock.app.place import Opening, Place, place_of
from penstock.app.progress import Alert, Meter, Progress
from penstock.app.sinks import sinks_at_work
from penstock.app.stores import Where as Store
from penstock.app.stores import remove
from penstock.app.telemetry import check_protocol, heard, unheard
from penstock.engine.asked import told_since
from penstock.engine.checkpoint import check_fits
from penstock.engine.compile import compiled
from penstock.engine.executors import Attendance, check_sees_checkpoints, check_sees_log
from penstock.engine.explain import explained
from penstock.engine.fingerprint import check_unchanged, fingerprint_of
from penstock.engine.kafka import lies_in_kafka
from penstock.engine.lineage import newest
from penstock.engine.locking import LOCK, locked
from penstock.engine.master import is_local
from penstock.engine.plangraph import plan_graph
from penstock.engine.plantext import plan_text
from penstock.engine.query import Query, Tuning
from penstock.engine.run import Prepared, Run, epoch_name, goes_on_together, prepared, raised_epoch, settings_of
from penstock.engine.session import session
from penstock.engine.stages import OnStage, nobody
from penstock.engine.topics import ensure_sources
from penstock.errors import PenstockError
from penstock.log.opening import opened_log
from penstock.log.protocol import OrderedLog
from penstock.log.where import Where
from penstock.model import History, Pipeline, load_pipeline
from penstock.serve.diary import Diary


@dataclass(frozen=True)
class Setting:
    """Where and how Spark runs, and which log, where that is not as the pipeline says."""

    master: str = "local[*]"
    conf: Mapping[str, str] = field(default_factory=dict)
    log: str | Path | None = None


@dataclass(frozen=True)
class Watch:
    """Who is told: that the run begins (with its lineage and its log), of its progress, of the stages of its batches,
    of a store that fails, of brokers that are away, of what was asked for and does not happen.
    """

    on_ready: Callable[[int, Where], None] = lambda *_: None
    on_progress: Callable[[Progress], None] = lambda _: None
    on_stage: OnStage = nobody
    on_trouble: Callable[[PenstockError], None] = lambda _: None
    on_wait: Callable[[str], None] | None = None
    on_warning: Callable[[PenstockError], None] = lambda _: None


P = ParamSpec("P")
HERE = Setting()
NOBODY = Watch()


@dataclass(frozen=True)
class Opened:
    """A pipeline, loaded, and where it lies."""

    place: Place
    pipeline: Pipeline
    setting: Setting

    @property
    def log(self) -> Where:
        return self.place.log(self.pipeline, self.setting.log)

    @property
    def store(self) -> Store:
        """Where the tables of the views are."""
        return self.pipeline.options.store or self.place.store

    @property
    def checkpoints(self) -> Path:
        """The folder of the lineages, which whoever works on them locks."""
        return self.place.checkpoints(self.pipeline)

    @property
    def on_cluster(self) -> bool:
        """Whether executors do the work that may not see what this process sees."""
        return not is_local(self.setting.master)

    @contextmanager
    def opened_log(self, *, create: bool = True, **how: Unpack[Opening]) -> Iterator[OrderedLog]:
        with opened_log(self.log, self.place.opening(self.pipeline, **how), create=create) as log:
            yield log

    @property
    def has_files(self) -> bool:
        """Whether views are kept as files, or were."""
        return any(view.options.store == "files" for view in self.pipeline.views) or self.place.files.is_dir()

    @contextmanager
    def session(self) -> Iterator[Any]:
        """A session of Spark with all its settings, in which Ctrl-C means what it meant before."""
        interrupt = signal.getsignal(signal.SIGINT)
        with session(self.pipeline.name, master=self.setting.master, conf=self.conf()) as spark:
            if current_thread() is main_thread():
                # PySpark's own handler calls Java, maybe in the middle of another call on the same line.
                signal.signal(signal.SIGINT, interrupt)
            yield spark

    def conf(self) -> dict[str, str]:
        """The settings of Spark: the pipeline's options, then what the command adds."""
        options = self.pipeline.options
        ours = {
            "spark.sql.ansi.enabled": str(options.ansi).lower(),
            "spark.sql.session.timeZone": options.time_zone,
            "spark.driver.memory": options.memory,
        }
        if options.shuffle_partitions is not None:
            ours["spark.sql.shuffle.partitions"] = str(options.shuffle_partitions)
        return {**ours, **options.spark, **self.setting.conf}


Beside = Callable[[Opened, OrderedLog], AbstractContextManager[object]]


def opened(path: Path, setting: Setting) -> Opened:
    return Opened(place_of(path), load_pipeline(path), setting)


@dataclass(frozen=True)
class Working:
    """A pipeline that is ready to be driven, with what it works on."""

    spark: Any
    log: OrderedLog
    run: Run
    meter: Meter
    chronicle: Chronicle
    lineage: int


@contextmanager
def working(at: Opened, watch: Watch = NOBODY, *, anew: bool = False, once: bool = False) -> Iterator[Working]:
    """Inside, the pipeline can be driven, and its store follows. A pipeline that is refused leaves nothing behind. With
    `anew` it begins a new lineage; for `once`, what is in the log now has its place in the order.
    """
    name, home = at.pipeline.name, at.checkpoints
    # What is held is held until Spark is gone: it may be writing to the log and the checkpoint until then.
    with at.place.hinted(), ExitStack() as held, at.session() as spark:
        plan = compiled(spark, at.pipeline)
        log = held.enter_context(at.opened_log(say=watch.on_wait, admits=True, owner=epoch_name(at.pipeline.name)))
        ensure_sources(log, at.pipeline)
        if at.on_cluster and not lies_in_kafka(log.folder):
            check_sees_log(spark, log)
        on_trouble, stored = _naming(at.place, watch.on_trouble), StoreClock()
        if at.store != at.place.store:  # what lies there would be taken for the answers
            remove(at.place.store)
        held.enter_context(kept(log, name, at.store, on_trouble, _both(watch.on_stage, stored)))
        if at.has_files:
            held.enter_context(filed(log, name, at.place.files, on_trouble))
        held.enter_context(sinks_at_work(at.place, at.pipeline, log, on_trouble, to_the_end=once))
        if (
            not anew and (lineage := newest(home, name)) is not None
        ):  # who would be refused must not end the run that is there
            check_unchanged(lineage, fingerprint_of(at.pipeline, plan, log, settings_of(spark)))
            goes_on_together(spark, lineage)
            check_fits(lineage, log)
        # An older run sees this and leaves; only then can we have the lock. If a newer one comes meanwhile, we leave.
        epoch = raised_epoch(log, at.pipeline)
        held.enter_context(locked(home, name))
        if at.on_cluster:
            check_sees_checkpoints(spark, home / LOCK, name)
        ready = prepared(spark, at.pipeline, log, home, anew=anew, plan=plan)
        counts = Counts(log, [relation.topic for relation in at.pipeline.relations])
        of_views = ready.query.watermarks
        meter = Meter(counts, watch.on_progress, lambda frame: run.watermarks(frame), _alerts(ready), of_views=of_views)
        diary = _begun_diary(at, ready)
        # A history has the records of its table.
        topics = {each.name: each.topic for each in at.pipeline.relations if not isinstance(each, History)}
        chronicle = Chronicle(diary, counts, topics, lambda frame: run.watermarks(frame), stored)
        if once:
            log.settle()
        run = Run(spark, log, home, ready, _both(meter.add, chronicle.add), epoch)
        watch.on_ready(ready.lineage.number, at.log)
        yield Working(spark, log, run, meter, chronicle, ready.lineage.number)


def _alerts(ready: Prepared) -> dict[str, Alert]:
    topics = {each.name: each.topic for each in ready.pipeline.relations}
    return {
        view.name: Alert(most, frozenset(topics[name] for name in ready.compiled.late_from(view.name)))
        for view in ready.pipeline.views
        if (most := view.options.late_alert) is not None
    }


def _begun_diary(at: Opened, ready: Prepared) -> Diary:
    diary = Diary(ready.lineage.folder)
    drawn = plan_graph(at.pipeline, explained(at.pipeline, ready.compiled, ready.query.layout))
    diary.describe({"name": at.pipeline.name, "log": str(at.log), "lineage": ready.lineage.number, **drawn})
    return diary


def _both(one: Callable[P, None], other: Callable[P, None]) -> Callable[P, None]:
    def called(*args: P.args, **kwargs: P.kwargs) -> None:
        one(*args, **kwargs)
        other(*args, **kwargs)

    return called


def _naming(place: Place, tell: Callable[[PenstockError], None]) -> Callable[[PenstockError], None]:
    def told(error: PenstockError) -> None:
        place.name_in(error)
        tell(error)

    return told


def run_pipeline(  # noqa: PLR0913 (what a command knows)
    path: Path,
    *,
    once: bool = False,
    close: bool = False,
    anew: bool = False,
    setting: Setting = HERE,
    watch: Watch = NOBODY,
    stop: Callable[[], bool] = lambda: False,
    beside: Beside = lambda *_: nullcontext(),
) -> None:
    """Runs until everything that is in the log now has been read (`once`), or until `stop` says so. With `close`, what
    is in the log now is all that there will be: every window closes. With `anew` all answers are computed anew. What is
    `beside` it is done meanwhile, with the run's log.
    """
    loaded = opened(path, setting)
    check_protocol(os.environ)
    if (warning := unheard(os.environ)) is not None:
        watch.on_warning(warning)
    with (
        working(loaded, watch, anew=anew, once=once) as at,
        beside(loaded, at.log),
        heard(os.environ, loaded.pipeline.name, at.lineage) as hear,
    ):
        if close:
            at.run.end_time()

        attendance = Attendance(at.spark, watch.on_wait or (lambda _: None)) if loaded.on_cluster else None
        query = at.run.start(once=once, on_stage=watch.on_stage)

        def tell(*, now: bool = False) -> None:
            for written in at.chronicle.write(partial(told_since, query), now=now):
                hear(written)
            at.meter.tell(now=now)

        def told_and_stopped() -> bool:
            tell()
            if attendance is not None:
                attendance.look()
            return stop()

        try:
            at.run.wait(query, stop=told_and_stopped)
        finally:
            tell(now=True)


def explain(path: Path, view: str | None = None, *, setting: Setting = HERE) -> str:
    """The plan of a pipeline, or of what one of its views needs."""
    at = opened(path, setting)
    wanted = None if view is None else at.pipeline.view(view).name
    with at.session() as spark:
        plan = compiled(spark, at.pipeline)
        return plan_text(explained(at.pipeline, plan, Query(spark, plan.graph, Tuning()).layout), wanted)


def reset(path: Path, *, setting: Setting = HERE) -> int:
    """Begins a new lineage, which the next run computes from the log; its number."""
    at = opened(path, setting)
    name, home = at.pipeline.name, at.checkpoints
    with at.place.hinted(), ExitStack() as held:
        if home.is_dir():  # a run that is under way is found before Spark is started
            held.enter_context(locked(home, name))
        spark = held.enter_context(at.session())
        plan = compiled(spark, at.pipeline)
        log = held.enter_context(at.opened_log())
        return prepared(spark, at.pipeline, log, home, anew=True, plan=plan).lineage.number
