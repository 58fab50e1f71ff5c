"""Keeping: stores follow their pipeline's log, each in a thread of its own, while something else is done.

A store that fails does not end what is done meanwhile: the failure is told, once, and tried again; what the store has
missed it reads then. At the end the store is brought to where the log stands; if that fails too, the caller is told.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Event, Thread

from penstock.engine.stages import OnStage, Stage, nobody
from penstock.errors import PenstockError, ViewError
from penstock.log.protocol import OrderedLog
from penstock.views import Position, SqliteStore, catch_up, follow
from penstock.views.parquet import ParquetStore
from penstock.views.step import Kept

RETRY_SECONDS = 1.0
OnTrouble = Callable[[PenstockError], None]
AnyStore = SqliteStore | ParquetStore


@contextmanager
def kept(
    log: OrderedLog, pipeline: str, path: Path, on_trouble: OnTrouble, on_stage: OnStage = nobody
) -> Iterator[None]:
    """Inside, the tables in the store at `path` are kept up to date; after it, they stand where the log stands."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with _kept(_Keeper(log, pipeline, path, on_trouble, on_stage)):
        yield


@contextmanager
def filed(log: OrderedLog, pipeline: str, folder: Path, on_trouble: OnTrouble) -> Iterator[None]:
    """Inside, the views that are kept as files are; after it, they stand where the log stands."""
    with _kept(_Filer(log, pipeline, folder, on_trouble)):
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
        self, log: OrderedLog, pipeline: str, path: Path, on_trouble: OnTrouble, on_stage: OnStage = nobody
    ) -> None:
        self.ending = Event()
        self.failure: PenstockError | None = None
        self._log = log
        self._pipeline = pipeline
        self._path = path
        self._on_trouble = on_trouble
        self._on_stage = on_stage
        self._told = ""

    def run(self) -> None:
        while not self.ending.is_set():
            if failure := self._attempted(self._follow):
                self._tell(failure)
                self.ending.wait(RETRY_SECONDS)
        self.failure = self._attempted(self._finish)

    def _opened(self) -> AnyStore:
        return SqliteStore(self._path)

    def _attempted(self, work: Callable[[AnyStore], None]) -> PenstockError | None:
        """What went wrong with the store, which is opened anew each time: its file may be another one by now."""
        try:
            with self._opened() as store:
                work(store)
        except PenstockError as error:
            return error
        except Exception as error:  # in a thread nobody else would tell of it
            failure = ViewError(f'the store "{self._path}" failed', detail=f"{type(error).__name__}: {error}.")
            failure.__cause__ = error
            return failure
        return None

    def _follow(self, store: AnyStore) -> None:
        follow(self._log, self._pipeline, store, stop=self.ending.is_set, on_step=self._well, kept=self.kept)

    def _finish(self, store: AnyStore) -> None:
        catch_up(self._log, self._pipeline, store, on_step=self._well, kept=self.kept)

    def _tell(self, failure: PenstockError) -> None:
        if str(failure) != self._told:
            self._on_trouble(failure)
        self._told = str(failure)

    def _well(self, position: Position) -> None:
        self._told = ""
        if position.batch is not None:
            self._on_stage(Stage.STORED, position.batch)


class _Filer(_Keeper):
    kept = "files"

    def _opened(self) -> AnyStore:
        return ParquetStore(self._path)
