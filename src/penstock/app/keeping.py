"""Keeping: stores and sinks follow their pipeline's log, each in a thread of its own, while something else is done.

One that fails does not end what is done meanwhile: the failure is told, once, and tried again; what it has missed it
reads then. At the end it is brought to where the log stands; if that fails too, the caller is told.
"""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from functools import partial
from pathlib import Path
from threading import Event, Thread

from penstock.app.stores import Where, opened_store
from penstock.engine.stages import OnStage, Stage, nobody
from penstock.errors import PenstockError, ViewError
from penstock.log.protocol import OrderedLog
from penstock.views import Position, Store, catch_up, follow
from penstock.views.parquet import ParquetStore
from penstock.views.step import Kept

RETRY_SECONDS = 1.0
MOST_SECONDS = 30.0
"""From one try to the next; each time that it fails twice as long, up to the most."""
OnTrouble = Callable[[PenstockError], None]
Opened = Callable[[], AbstractContextManager[Store]]
Stop = Callable[[], bool]
Work = Callable[[Stop | None, Callable[[], None]], None]
"""Follows the log until it is told to stop, or without a stop to where the log stands; it tells when it goes well."""


@contextmanager
def kept(
    log: OrderedLog, pipeline: str, where: Where, on_trouble: OnTrouble, on_stage: OnStage = nobody
) -> Iterator[None]:
    """Inside, the tables in the store are kept up to date; after it, they stand where the log stands."""
    if isinstance(where, Path):
        where.parent.mkdir(parents=True, exist_ok=True)

    def stored(position: Position) -> None:
        if position.batch is not None:
            on_stage(Stage.STORED, position.batch)

    opened = partial(opened_store, where, pipeline, say=lambda text: on_trouble(ViewError(text)))
    work = partial(_follow, log, pipeline, opened, "table", stored)
    with working_beside(f'the store "{where}"', work, on_trouble):
        yield


@contextmanager
def filed(log: OrderedLog, pipeline: str, folder: Path, on_trouble: OnTrouble) -> Iterator[None]:
    """Inside, the views that are kept as files are; after it, they stand where the log stands."""
    work = partial(_follow, log, pipeline, partial(ParquetStore, folder), "files", lambda _: None)
    with working_beside(f'the store "{folder}"', work, on_trouble):
        yield


def _follow(  # noqa: PLR0913 (what a follower is made of)
    log: OrderedLog,
    pipeline: str,
    opened: Opened,
    kept: Kept,
    stored: Callable[[Position], None],
    stop: Stop | None,
    well: Callable[[], None],
) -> None:
    """The store is opened anew each time: its file may be another one by now, its connection lost."""

    def on_step(position: Position) -> None:
        well()
        stored(position)

    with opened() as store:
        if stop is None:
            catch_up(log, pipeline, store, on_step=on_step, kept=kept)
        else:
            follow(log, pipeline, store, stop=stop, on_step=on_step, kept=kept)


@contextmanager
def working_beside(what: str, work: Work, on_trouble: OnTrouble) -> Iterator[None]:
    """Inside, the work is done; after it, it is done to the end of the log."""
    keeper = _Keeper(what, work, on_trouble)
    thread = Thread(target=keeper.run, name=f"penstock {what}", daemon=True)
    thread.start()
    try:
        yield
    finally:
        keeper.ending.set()
        thread.join()
    if keeper.failure is not None:
        raise keeper.failure


class _Keeper:
    def __init__(self, what: str, work: Work, on_trouble: OnTrouble) -> None:
        self.ending = Event()
        self.failure: PenstockError | None = None
        self._what = what
        self._work = work
        self._wait = RETRY_SECONDS
        self._on_trouble = on_trouble
        self._told = ""

    def run(self) -> None:
        while not self.ending.is_set():
            if failure := self._attempted(self.ending.is_set):
                self._tell(failure)
                self.ending.wait(self._wait)
                self._wait = min(2 * self._wait, MOST_SECONDS)
        self.failure = self._attempted(None)

    def _attempted(self, stop: Stop | None) -> PenstockError | None:
        """What went wrong."""
        try:
            self._work(stop, self._well)
        except PenstockError as error:
            return error
        except Exception as error:  # in a thread nobody else would tell of it
            failure = ViewError(f"{self._what} failed", detail=f"{type(error).__name__}: {error}.")
            failure.__cause__ = error
            return failure
        return None

    def _tell(self, failure: PenstockError) -> None:
        if str(failure) != self._told:
            self._on_trouble(failure)
        self._told = str(failure)

    def _well(self) -> None:
        self._told, self._wait = "", RETRY_SECONDS
