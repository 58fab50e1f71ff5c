"""How many changed rows a store of views takes in a second, on one connection.

`python -m benchmarks.stores [--quick]`. A view with a key (BIGINT, STRING, DECIMAL, DOUBLE, TIMESTAMP) and a bag of the
same columns. First rows only come; then, of the view with a key, all are replaced, and of the bag as many leave as
come; then rows leave. Steps are made beforehand; what is measured is `apply`; and, of the view with a key, `catch_up`
from a log in which every row comes and is replaced.

A changed row is one record of the change topic: a row that comes, one that leaves, or, in a view with a key, one that
is replaced, which is one record with the old row and the new. In a bag that is two, one that leaves and one that comes.
"""

import argparse
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from benchmarks._report import report
from penstock.log import Log, Record
from penstock.schema import arrow_schema, parse_schema
from penstock.views import Lineage, Position, SqliteStore, Step, Store, catch_up
from penstock.views.postgres import PostgresStore
from penstock.views.redis import RedisStore
from penstock.views.step import Change, View
from services.postgres import server_in
from services.redis import server_in as redis_in

SCHEMA = parse_schema("id BIGINT, city STRING, spend DECIMAL(12,2), share DOUBLE, at TIMESTAMP")
STEP = 20_000
KINDS = ("come", "are_replaced", "leave")
GOALS = {
    f"postgres_{view}_rows_{kind}_per_s": ">= 100,000"
    for view, kinds in {"keyed": KINDS, "bag": ("come", "change", "leave")}.items()
    for kind in kinds
} | {"postgres_catch_up_per_s": ">= 100,000"}


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


def steps(make: Callable[[int], Change], first: int, count: int) -> list[Step]:
    return [Step(Position("log", 1, first + at, at, at), (make(at),)) for at in range(count)]


def nothing(count: int) -> pa.StructArray:
    return pa.nulls(count, rows(0, 1, 0).type)


def phases(view: str, count: int, *, key: bool) -> Iterator[tuple[str, list[Step]]]:
    """What is measured: its name, and steps."""
    yield "come", steps(lambda at: Change(view, nothing(STEP), rows(at * STEP, STEP, 0)), 100, count)
    if key:

        def replaced(at: int) -> Change:
            return Change(view, rows(at * STEP, STEP, 0), rows(at * STEP, STEP, 1))

        yield "are_replaced", steps(replaced, 200, count)
        yield "leave", steps(lambda at: Change(view, rows(at * STEP, STEP, 1), nothing(STEP)), 300, count)
        return
    half = STEP // 2

    def moved(at: int) -> Change:
        old, new = rows(at * STEP, half, 0), rows(at * STEP, half, 1)
        return Change(view, pa.concat_arrays([old, nothing(half)]), pa.concat_arrays([nothing(half), new]))

    yield "change", steps(moved, 200, count)
    yield "leave", steps(lambda at: Change(view, rows(at * STEP, half, 1), nothing(half)), 300, count)


def applied(name: str, store: Store, count: int) -> Iterator[tuple[str, float]]:
    for view in (View("keyed", SCHEMA, key=("id",)), View("bag", SCHEMA)):
        frame = 50 if view.key else 1050
        store.switch(Lineage("bench", 1, frame, (view,)), [Step(Position("log", 1, frame))])
        for phase, found in phases(view.name, count, key=bool(view.key)):
            changed = sum(len(change) for step in found for change in step.changes)
            moved = [replace(s, position=replace(s.position, frame=s.position.frame + frame)) for s in found]
            began = time.perf_counter()
            for step in moved:
                store.apply([step])
            yield f"{name}_{view.name}_rows_{phase}_per_s", changed / (time.perf_counter() - began)


@contextmanager
def history(count: int) -> Iterator[Log]:
    """A log in which so many steps of rows come, and then are replaced."""
    with tempfile.TemporaryDirectory() as folder, Log.open(Path(folder) / "log") as log:
        log.create_topic("orders", "id BIGINT")
        log.create_topic("bench.1.keyed", str(SCHEMA), key="id", own=True)
        views = {"keyed": {"key": ["id"], "store": "table"}}
        log.append_all({}, producer="bench", sequence=1, note={"pipeline": "bench", "current": 1, "views": views})
        for batch in range(2 * count):
            version, at = divmod(batch, count)
            new = rows(at * STEP, STEP, version).to_pylist()
            old = rows(at * STEP, STEP, 0).to_pylist() if version else [None] * STEP
            records = [Record(row, replaces=before) for row, before in zip(new, old, strict=True)]
            note = {"pipeline": "bench", "lineage": 1, "batch": batch, "from": 0, "until": log.mark().next_frame}
            log.append_all({"bench.1.keyed": records}, producer="bench/1", sequence=batch, note=note)
        log.seal()
        yield log


def caught_up(name: str, store: Store, log: Log, count: int) -> tuple[str, float]:
    began = time.perf_counter()
    catch_up(log, "bench", store)
    return f"{name}_catch_up_per_s", 2 * count * STEP / (time.perf_counter() - began)


Opened = Callable[[str], Any]


@contextmanager
def postgres() -> Iterator[Opened]:
    """A server as it comes, on disk, with its syncs."""
    with tempfile.TemporaryDirectory() as folder:
        Path(folder).chmod(0o755)
        server = server_in(Path(folder) / "postgres", dies_with_us=True)
        server.start()
        try:
            yield lambda name: PostgresStore(server.url(), name)
        finally:
            server.stop()


@contextmanager
def redis() -> Iterator[Opened]:
    """A server that writes down what it does once a second."""
    with tempfile.TemporaryDirectory() as folder:
        server = redis_in(Path(folder), dies_with_us=True)
        server.start()
        try:
            yield lambda name: RedisStore(server.url, name)
        finally:
            server.kill()


@contextmanager
def sqlite() -> Iterator[Opened]:
    with tempfile.TemporaryDirectory() as folder:
        yield lambda name: SqliteStore(Path(folder) / f"{name}.sqlite")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true")
    quick = parser.parse_args().quick
    count = 2 if quick else 10
    found: dict[str, float] = {}
    with history(count // 2) as log:
        for name, kind in {"postgres": postgres, "sqlite": sqlite, "redis": redis}.items():
            with kind() as opened:
                with closing(opened("bench")) as store:
                    found |= applied(name, store, count)
                with closing(opened("caught")) as store:
                    found |= [caught_up(name, store, log, count // 2)]
    report("stores-quick" if quick else "stores", found, GOALS)


if __name__ == "__main__":
    main()
