"""The test kit passes stores that keep their promises, and names the promise that another one breaks."""

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from penstock.views import Lineage, Position, SqliteStore, Step, Store, ViewReader
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
