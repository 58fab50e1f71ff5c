"""The test kit passes stores that keep their promises, and names the promise that another one breaks."""

import pickle
import time
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from penstock.errors import ViewError
from penstock.views import Lineage, Position, SqliteStore, Step, Store, ViewReader
from penstock.views.parquet import ParquetStore
from penstock.views.postgres import PostgresStore, rows_in
from penstock.views.testing import check_store
from services.postgres import Server
from tests.effort import SOAK

KILLS = 60 if SOAK else 2


@pytest.mark.parametrize("seed", range(3))
def test_sqlite_passes(seed: int, path: Path) -> None:
    def rows(_: Store, view: str) -> Iterable[Any]:
        with ViewReader(path) as reader:
            return list(reader.rows(view))

    check_store(lambda: SqliteStore(path), rows, seed=seed, kills=KILLS)


def test_postgresql_passes(postgres: Server, schema: str) -> None:
    def rows(_: Store, view: str) -> Iterable[Any]:
        pieces = rows_in(postgres.url(), schema, view)[2]
        return [row for piece in pieces for row in pa.RecordBatch.from_struct_array(piece).to_pylist()]

    check_store(lambda: PostgresStore(postgres.url(), schema), rows, kills=KILLS)


def rows_of_files(store: Store, view: str) -> Iterable[Any]:
    assert isinstance(store, ParquetStore)
    files = sorted((store.path / "current" / view).glob("*.parquet"))
    return [row for file in files for row in pq.ParquetFile(file).read(use_threads=False).to_pylist()]


def test_a_store_of_files_passes(path: Path) -> None:
    check_store(lambda: ParquetStore(path), rows_of_files, kills=KILLS, kept="files")


class ForgetfulFiles(ParquetStore):
    """Takes the steps of a call one by one."""

    def apply(self, steps: Sequence[Step]) -> None:
        for step in steps:
            super().apply([step])


def test_a_store_of_files_that_breaks_a_promise_is_found(path: Path) -> None:
    with pytest.raises(AssertionError, match="was refused, but the position went on"):
        check_store(lambda: ForgetfulFiles(path), rows_of_files, kept="files")


class Forgetful(SqliteStore):
    """Takes the steps of a call one by one."""

    def apply(self, steps: Sequence[Step]) -> None:
        for step in steps:
            super().apply([step])


class Doubling(SqliteStore):
    """Does not look where it stands."""

    def position(self) -> Position | None:
        found = super().position()
        return None if found is None else Position(found.log, found.lineage, found.frame - 1, found.batch, found.until)


class Hasty(SqliteStore):
    """Does not look whether a switch was done."""

    def switch(self, lineage: Lineage, steps: Iterable[Step]) -> None:
        super().switch(lineage, list(steps))


class Early:
    """Writes down its position before the rows, in two files."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._positions, self._rows = folder / "position", folder / "rows"

    def position(self) -> Position | None:
        return pickle.loads(self._positions.read_bytes()) if self._positions.exists() else None

    def rows(self, view: str) -> Iterable[Any]:
        return self._held().get(view, [])

    def _held(self) -> dict[str, list[Any]]:
        return dict(pickle.loads(self._rows.read_bytes())) if self._rows.exists() else {}

    def apply(self, steps: Sequence[Step]) -> None:
        position = self.position()
        assert position is not None
        fresh = [step for step in steps if step.position.frame > position.frame]
        if any(step.position.lineage != position.lineage for step in fresh):
            raise ViewError("a step of another lineage")
        self._take(self._held(), fresh)

    def switch(self, lineage: Lineage, steps: Iterable[Step]) -> None:
        position = self.position()
        if position is None or position.frame < lineage.frame:
            self._take({view.name: [] for view in lineage.tables}, list(steps))

    def _take(self, held: dict[str, list[Any]], steps: Sequence[Step]) -> None:
        for step in steps:
            for change in step.changes:
                for old, new in change.pairs():
                    if old is not None:
                        held[change.view].remove(old)
                    held[change.view] += [] if new is None else [new]
        if steps:
            self._replace(self._positions, steps[-1].position)
            time.sleep(0.005)  # as a disk may
            self._replace(self._rows, held)

    def _replace(self, path: Path, value: object) -> None:
        (self._folder / "new").write_bytes(pickle.dumps(value))
        (self._folder / "new").replace(path)


def test_a_store_that_writes_its_position_first_is_found(tmp_path: Path) -> None:
    def rows(store: Store, view: str) -> Iterable[Any]:
        assert isinstance(store, Early)
        return store.rows(view)

    with pytest.raises(AssertionError, match=r"after its process was killed: .* lacks"):
        check_store(lambda: Early(tmp_path), rows, kills=20)


@pytest.mark.parametrize(
    ("kind", "said"),
    [
        (Forgetful, "was refused, but the position went on"),
        (Doubling, "the position is"),
        (Hasty, "a switch that was done already read its steps"),
    ],
)
def test_a_store_that_breaks_a_promise_is_found(kind: type[SqliteStore], said: str, path: Path) -> None:
    def rows(_: Store, view: str) -> Iterable[Any]:
        with ViewReader(path) as reader:
            return list(reader.rows(view))

    with pytest.raises(AssertionError, match=said):
        check_store(lambda: kind(path), rows)
