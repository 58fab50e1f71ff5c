"""Keeping: stores follow their pipeline's log, each in a thread of its own, while something else is done.

A store that fails does not end what is done meanwhile: the failure is told, once, and tried again; what the store has
missed it reads then. At the end the store is brought to where the log stands; if that fails too, the caller is told.
"""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from functools import partial
from pathlib import Path
from threading import Event, Thread

from penstock.app.stores import postgres_store
from penstock.engine.stages import OnStage, Stage, nobody
from penstock.errors import PenstockError, ViewError
from penstock.log.protocol import OrderedLog
from penstock.model.stores import OnPostgres
from penstock.views import Position, SqliteStore, Store, catch_up, follow
from penstock.views.parquet import ParquetStore
from penstock.views.step import Kept

RETRY_SECONDS = 1.0
MOST_SECONDS = 30.0
"""From one try to the next; each time that it fails twice as long, up to the most."""
OnTrouble = Callable[[PenstockError], None]
Opened = Callable[[], AbstractContextManager[Store]]


@contextmanager
def kept(
    log: OrderedLog, pipeline: str, where: Path | OnPostgres, on_trouble: OnTrouble, on_stage: OnStage = nobody
) -> Iterator[None]:
    """Inside, the tables in the store are kept up to date; after it, they stand where the log stands."""
    if isinstance(where, Path):
        where.parent.mkdir(parents=True, exist_ok=True)
        opened: Opened = partial(SqliteStore, where)
    else:
        opened = partial(postgres_store, where, pipeline, say=lambda text: on_trouble(ViewError(text)))
    with _kept(_Keeper(log, pipeline, str(where), opened, on_trouble, on_stage)):
        yield


@contextmanager
def filed(log: OrderedLog, pipeline: str, folder: Path, on_trouble: OnTrouble) -> Iterator[None]:
    """Inside, the views that are kept as files are; after it, they stand where the log stands."""
    with _kept(_Filer(log, pipeline, str(folder), partial(ParquetStore, folder), on_trouble)):
        yield


@contextmanager
def _kept(keeper: "_Keeper") -> Iterator[None]:
    thread = Thread(target=keeper.run, name=f"penstock-{keeper.kept}", daemon=True)
    thread.start()
    try:
        yield
    finally:
        keeper.ending.set()
        thread.join()
    if keeper.failure is not None:
        raise keeper.failure


class _Keeper:
    kept: Kept = "table"

    def __init__(
        self,
        log: OrderedLog,
        pipeline: str,
        where: str,
        opened: Opened,
        on_trouble: OnTrouble,
        on_stage: OnStage = nobody,
    ) -> None:
        self.ending = Event()
        self.failure: PenstockError | None = None
        self._log = log
        self._pipeline = pipeline
        self._where = where
        self._opened = opened
        self._wait = RETRY_SECONDS
        self._on_trouble = on_trouble
        self._on_stage = on_stage
        self._told = ""

    def run(self) -> None:
        while not self.ending.is_set():
            if failure := self._attempted(self._follow):
                self._tell(failure)
                self.ending.wait(self._wait)
                self._wait = min(2 * self._wait, MOST_SECONDS)
        self.failure = self._attempted(self._finish)

    def _attempted(self, work: Callable[[Store], None]) -> PenstockError | None:
        """What went wrong with the store, which is opened anew each time: its file may be another one by now, its
        connection lost.
        """
        try:
            with self._opened() as store:
                work(store)
        except PenstockError as error:
            return error
        except Exception as error:  # in a thread nobody else would tell of it
            failure = ViewError(f'the store "{self._where}" failed', detail=f"{type(error).__name__}: {error}.")
            failure.__cause__ = error
            return failure
        return None

    def _follow(self, store: Store) -> None:
        follow(self._log, self._pipeline, store, stop=self.ending.is_set, on_step=self._well, kept=self.kept)

    def _finish(self, store: Store) -> None:
        catch_up(self._log, self._pipeline, store, on_step=self._well, kept=self.kept)

    def _tell(self, failure: PenstockError) -> None:
        if str(failure) != self._told:
            self._on_trouble(failure)
        self._told = str(failure)

    def _well(self, position: Position) -> None:
        self._told, self._wait = "", RETRY_SECONDS
        if position.batch is not None:
            self._on_stage(Stage.STORED, position.batch)


class _Filer(_Keeper):
    kept = "files"
