"""Pipelines at work: what the commands do, without the terminal.

A run reads the log, appends changes to it, and its store follows them. It leaves promptly, whatever happens: when the
log is drained (`once`), when `stop` says so, on Ctrl-C, on an error. Then Spark is gone, the store stands where the
log stands, and another run can go on.
"""

from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from penstock.app.keeping import kept
from penstock.app.place import Place, place_of
from penstock.app.progress import Meter, Progress
from penstock.engine.compile import compiled
from penstock.engine.explain import explained, plan_text
from penstock.engine.lineage import check_unchanged, fingerprint_of, newest
from penstock.engine.query import Query, Tuning
from penstock.engine.run import Run, epoch_name, locked, prepared, settings_of
from penstock.engine.session import session
from penstock.errors import PenstockError
from penstock.log import Log
from penstock.model import Pipeline, load_pipeline


@dataclass(frozen=True)
class Setting:
    """Where and how Spark runs, and which log, where that is not as the pipeline says."""

    master: str = "local[*]"
    conf: Mapping[str, str] = field(default_factory=dict)
    log: Path | None = None


@dataclass(frozen=True)
class Watch:
    """Who is told: that the run begins (with its lineage and its log), of its progress, of a store that fails."""

    on_ready: Callable[[int, Path], None] = lambda *_: None
    on_progress: Callable[[Progress], None] = lambda _: None
    on_trouble: Callable[[PenstockError], None] = lambda _: None


HERE = Setting()
NOBODY = Watch()


@dataclass(frozen=True)
class Opened:
    """A pipeline, loaded, and where it lies."""

    place: Place
    pipeline: Pipeline
    setting: Setting

    @property
    def log(self) -> Path:
        return self.place.log(self.pipeline, self.setting.log)

    def session(self) -> AbstractContextManager[Any]:
        """A session of Spark with all its settings."""
        return session(self.pipeline.name, master=self.setting.master, conf=self.conf())

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


def opened(path: Path, setting: Setting) -> Opened:
    return Opened(place_of(path), load_pipeline(path), setting)


def run_pipeline(
    path: Path,
    *,
    once: bool = False,
    setting: Setting = HERE,
    watch: Watch = NOBODY,
    stop: Callable[[], bool] = lambda: False,
) -> None:
    """Runs until everything that is in the log now has been read (`once`), or until `stop` says so."""
    at = opened(path, setting)
    name, home = at.pipeline.name, at.place.home
    # The lock is held until Spark is gone: it may be writing to the checkpoint until then.
    with (
        Log.open(at.log) as log,
        kept(log, name, at.place.store, watch.on_trouble),
        ExitStack() as held,
        at.session() as spark,
    ):
        plan = compiled(spark, at.pipeline)
        if (lineage := newest(home, name)) is not None:  # who would be refused must not end the run that is there
            check_unchanged(lineage, fingerprint_of(at.pipeline, plan, log, settings_of(spark)))
        # An older run sees this and leaves; only then can we have the lock.
        log.raise_epoch(epoch_name(at.pipeline))
        held.enter_context(locked(home, name))
        ready = prepared(spark, at.pipeline, log, home, plan=plan)
        meter = Meter(log, [relation.topic for relation in at.pipeline.relations], watch.on_progress)
        run = Run(spark, log, home, ready, meter.add)
        watch.on_ready(ready.lineage.number, log.folder)
        _drive(run, meter, once=once, stop=stop)


def _drive(run: Run, meter: Meter, *, once: bool, stop: Callable[[], bool]) -> None:
    def told_and_stopped() -> bool:
        meter.tell()
        return stop()

    try:
        run.wait(run.start(once=once), stop=told_and_stopped)
    finally:
        meter.tell(now=True)


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
    name, home = at.pipeline.name, at.place.home
    with Log.open(at.log) as log, locked(home, name), at.session() as spark:
        return prepared(spark, at.pipeline, log, home, anew=True).lineage.number
