"""Serving: a pipeline's views over HTTP, by themselves or beside a run. Without Spark."""

from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

from penstock.app.keeping import Stop, kept
from penstock.app.place import Place
from penstock.app.sinks import redriven
from penstock.app.stores import position_of
from penstock.errors import PenstockError, ServeError
from penstock.log.opening import opened_log
from penstock.log.protocol import OrderedLog
from penstock.model import Pipeline, load_pipeline
from penstock.serve import Served, Settings
from penstock.serve.elsewhere import Elsewhere
from penstock.serve.server import serving
from penstock.serve.telling import Tell


@contextmanager
def served_pipeline(
    place: Place, settings: Settings, *, log: str | None = None, tell: Tell | None = None
) -> Iterator[Settings]:
    """Inside, the views of a pipeline are served as they are in its store; somebody else runs it, or nobody."""
    pipeline = load_pipeline(place.path)
    where = place.log(pipeline, log)
    if isinstance(where, Path) and not where.exists():
        raise ServeError(
            f'pipeline "{pipeline.name}" has no log yet', hint="Run the pipeline first: penstock run PIPELINE"
        )
    with (
        opened_log(where, place.opening(pipeline), create=False) as source,
        served_beside(place, pipeline, source, settings, tell=tell) as listening,
    ):
        yield listening


@contextmanager
def served_beside(
    place: Place,
    pipeline: Pipeline,
    log: OrderedLog,
    settings: Settings,
    *,
    tell: Tell | None = None,
) -> Iterator[Settings]:
    """Inside, the views are served from a log that is open already."""
    with (
        _tables(place, pipeline, log, tell) as tables,
        serving(_served(place, pipeline, log, tables), settings, tell=tell) as listening,
    ):
        yield listening


def _served(place: Place, pipeline: Pipeline, log: OrderedLog, tables: Path) -> Served:
    store = pipeline.options.store
    elsewhere = None if store is None else Elsewhere(partial(position_of, store, pipeline.name))

    def resend(view: str, kind: str, limit: int, stop: Stop) -> int:
        return redriven(place, pipeline, log, view, kind=kind, limit=limit, stop=stop).get(kind, 0)

    home = place.checkpoints(pipeline)
    return Served(log, pipeline, tables, home, sinks=place.sinks, elsewhere=elsewhere, resend=resend)


@contextmanager
def _tables(place: Place, pipeline: Pipeline, log: OrderedLog, tell: Tell | None) -> Iterator[Path]:
    """The file in which rows are looked for: the pipeline's store, or where that is elsewhere one that follows the log
    beside it, as long as somebody serves.
    """
    if pipeline.options.store is None:
        yield place.store
        return

    def on_trouble(error: PenstockError) -> None:
        if tell is not None:
            tell("failure", error=str(error))

    with kept(log, pipeline.name, place.served, on_trouble):
        yield place.served
