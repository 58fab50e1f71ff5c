"""How many changed rows a store of views takes in a second, on one connection.

A view with a key (BIGINT, STRING, DECIMAL, DOUBLE, TIMESTAMP) and a bag of the same columns. First rows only come, then
rows are replaced, then as many leave as come. Steps are made beforehand; what is measured is `apply`.
"""

import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from penstock.schema import arrow_schema, parse_schema
from penstock.views import Lineage, Position, SqliteStore, Step, Store
from penstock.views.postgres import PostgresStore
from penstock.views.step import Change, View
from services.postgres import server_in

SCHEMA = parse_schema("id BIGINT, city STRING, spend DECIMAL(12,2), share DOUBLE, at TIMESTAMP")
ROWS = 400_000
STEP = 20_000


def rows(first: int, count: int, version: int) -> pa.StructArray:
    ids = np.arange(first, first + count)
    columns = [
        pa.array(ids),
        pa.array([f"city {each % 1000}" for each in ids]),
        pa.array((ids + version) % 100_000).cast(pa.decimal128(19, 0)).cast(pa.decimal128(12, 2)),
        pa.array(ids / 7 + version),
        pa.array(ids * 1_000_000 + version).cast(pa.timestamp("us", "UTC")),
    ]
    return pa.StructArray.from_arrays(columns, fields=list(arrow_schema(SCHEMA)))


def steps(make: Callable[[int], Change], first: int) -> list[Step]:
    return [Step(Position("log", 1, first + at, at, at), (make(at),)) for at in range(ROWS // STEP)]


def nothing(count: int) -> pa.StructArray:
    return pa.nulls(count, rows(0, 1, 0).type)


def phases(view: str, *, key: bool) -> Iterator[tuple[str, int, list[Step]]]:
    """What is measured: its name, changed rows, steps."""
    come = steps(lambda at: Change(view, nothing(STEP), rows(at * STEP, STEP, 0)), 100)
    yield "rows come", ROWS, come
    if key:
        yield (
            "rows are replaced",
            ROWS,
            steps(lambda at: Change(view, rows(at * STEP, STEP, 0), rows(at * STEP, STEP, 1)), 200),
        )
        yield "rows leave", ROWS, steps(lambda at: Change(view, rows(at * STEP, STEP, 1), nothing(STEP)), 300)
        return
    half = STEP // 2

    def moved(at: int) -> Change:
        old, new = rows(at * STEP, half, 0), rows(at * STEP, half, 1)
        return Change(view, pa.concat_arrays([old, nothing(half)]), pa.concat_arrays([nothing(half), new]))

    yield "half leave, half come", ROWS, steps(moved, 200)
    yield "rows leave", ROWS // 2, steps(lambda at: Change(view, rows(at * STEP, half, 1), nothing(half)), 300)


def measured(name: str, store: Store) -> None:
    for view in (View("keyed", SCHEMA, key=("id",)), View("bag", SCHEMA)):
        frame = 50 if view.key else 1050
        store.switch(Lineage("bench", 1, frame, (view,)), [Step(Position("log", 1, frame))])
        for phase, count, found in phases(view.name, key=bool(view.key)):
            moved = [replace(s, position=replace(s.position, frame=s.position.frame + frame)) for s in found]
            began = time.perf_counter()
            for step in moved:
                store.apply([step])
            print(
                f"{name:12} {view.name:6} {phase:22} {count / (time.perf_counter() - began):>10,.0f} rows/s", flush=True
            )


@contextmanager
def postgres() -> Iterator[Any]:
    """A server as it comes, on disk, with its syncs."""
    with tempfile.TemporaryDirectory() as folder:
        Path(folder).chmod(0o755)
        server = server_in(Path(folder) / "postgres", dies_with_us=True)
        server.start()
        try:
            with PostgresStore(server.url(), "bench") as store:
                yield store
        finally:
            server.stop()


def main() -> None:
    with postgres() as store:
        measured("PostgreSQL", store)
    with tempfile.TemporaryDirectory() as folder, closing(SqliteStore(Path(folder) / "views.sqlite")) as store:
        measured("SQLite", store)


if __name__ == "__main__":
    main()
