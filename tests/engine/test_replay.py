"""A batch that is run again gives the same rows, bit by bit, in whatever order its rows arrive."""

import random
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import DataFrame

from penstock.engine.run import Run
from penstock.log import Log, Record
from tests.engine.conftest import Bench
from tests.engine.folded import Exact, exact
from tests.engine.rows import NAN

SUMS = "sum(x) AS s, avg(x) AS a, sum(f) AS sf, min(x) AS lo, max(x) AS hi, max(o) AS o, bit_xor(k) AS e, count(*) AS n"
LISTS = "collect_list(x) AS xs, collect_set(x) AS distinct_xs, collect_list(t) AS ts, array_agg(o) AS os"
BY_ORDER = """first(x) AS first, last(t) AS last, any_value(o) AS any, max_by(x, k) AS best, min_by(t, k) AS worst,
    mode(t) AS mode, listagg(t, '/') AS texts, stddev(x) AS deviation, corr(x, k) AS correlation, skewness(x) AS skew"""
SKETCHES = """approx_count_distinct(x) AS c, percentile_approx(x, 0.3, 3) AS p, histogram_numeric(x, 3) AS h,
    count_min_sketch(k, 0.1d, 0.9d, 7) AS cms, hll_sketch_agg(t) AS hll, kurtosis(x) AS kurtosis"""
SQL = f"""
    CREATE STREAM s (k BIGINT, x DOUBLE, f FLOAT, t STRING, o STRUCT<x: DOUBLE, t: STRING>);
    CREATE TABLE d (id BIGINT PRIMARY KEY, k BIGINT, x DOUBLE, f FLOAT, t STRING, o STRUCT<x: DOUBLE, t: STRING>);
    CREATE TABLE g (k BIGINT, x DOUBLE, t STRING);
    CREATE VIEW whole AS SELECT {SUMS}, {LISTS}, {BY_ORDER}, {SKETCHES} FROM s;
    CREATE VIEW by_text AS SELECT t AS key, {SUMS}, {LISTS}, {BY_ORDER}, {SKETCHES} FROM s GROUP BY t;
    CREATE VIEW of_table AS SELECT k, {SUMS}, {LISTS} FROM d GROUP BY k;
    CREATE VIEW joined AS SELECT s.k, s.x, d.f, g.t, d.o FROM s JOIN d ON s.k = d.id JOIN g ON g.k = d.k AND g.x <= s.x;
    CREATE VIEW of_join AS SELECT t AS key, {SUMS}, {LISTS} FROM joined GROUP BY t;
    CREATE VIEW of_groups AS SELECT n, sum(s) AS s, collect_list(key) AS keys, max(hi) AS hi FROM by_text GROUP BY n;
    CREATE VIEW united AS SELECT count(*) AS n, sum(x) AS s, collect_list(x) AS xs
      FROM (SELECT x FROM s UNION ALL SELECT x FROM d UNION ALL SELECT x FROM g);
"""
VALUES = (0.1, 0.2, 0.3, -0.1, 1e16, -1e16, 1e-9, 0.0, -0.0)
"""Their sums depend on the order, if they are rounded on the way."""
pytestmark = pytest.mark.spark


class Shuffled(Run):
    """A run whose sources give every batch in pieces and in a random order."""

    def __init__(self, seed: int, *given: Any) -> None:
        super().__init__(*given)
        self._seed = seed

    def _sources(self) -> dict[str, DataFrame]:
        return {name: shuffled(stream, self._seed) for name, stream in super()._sources().items()}


def shuffled(stream: DataFrame, seed: int) -> DataFrame:
    def in_any_order(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            order = list(range(len(batch)))
            random.Random(seed).shuffle(order)
            yield batch.take(pa.array(order, pa.int64()))

    return stream.repartition(3, "_place").mapInArrow(in_any_order, stream.schema)


def append(bench: Bench, seed: int) -> None:
    """A few frames of random records for all relations."""
    chance = random.Random(seed)

    def row() -> dict[str, Any]:
        x, t = chance.choice(VALUES), chance.choice(["a", "b", "ab", None])
        return {"k": chance.randrange(4), "x": x, "f": x / 3, "t": t, "o": {"x": chance.choice([*VALUES, NAN]), "t": t}}

    for _ in range(3):
        table = [{"id": chance.randrange(5), **row()} for _ in range(4)]
        bag = [{name: value for name, value in row().items() if name in "kxt"} for _ in range(4)]
        gone: list[Any] = [Record({"id": chance.randrange(5)}, deleted=True)]
        bench.append({"s": [row() for _ in range(12)], "d": table + gone, "g": [*bag, Record(bag[0], deleted=True)]})


def history(log: Log, views: list[str]) -> list[Exact]:
    """Everything that is in the change topics of the views: by view, frame by frame, bit by bit."""
    return [
        (view, entry.place.frame, entry.deleted, exact(entry.value), exact(entry.replaces))
        for view in views
        for entry in log.read(f"test.1.{view}")
    ]


def test_the_same_log_gives_the_same_changes_in_whatever_order_rows_arrive(
    bench: Callable[..., Bench], tmp_path: Path
) -> None:
    one = bench(SQL, max_records_per_batch=40)
    append(one, seed=1)
    shutil.copytree(one.log.folder, tmp_path / "copied" / "log")
    one.drain()
    two = bench(SQL, max_records_per_batch=40, folder=tmp_path / "copied", shuffle_partitions=5)
    run = Shuffled(7, two.spark, two.log, two.home, two.ready, two.batches.append)
    run.wait(run.start(once=True))
    views = [view.name for view in one.pipeline.views]
    assert len(one.batches) > 1
    assert history(two.log, views) == history(one.log, views)


@pytest.mark.parametrize("seed", [1, 2])
def test_a_batch_that_is_run_again_computes_the_same_and_changes_nothing(
    bench: Callable[..., Bench], seed: int
) -> None:
    two = bench(SQL)
    views = [view.name for view in two.pipeline.views]
    for chapter in range(2):
        append(two, seed=seed + chapter)
        two.drain()
        before, last = history(two.log, views), two.batches[-1]
        forget_last_commit(two.ready.lineage.checkpoint)
        two.start()
        run = Shuffled(seed, two.spark, two.log, two.home, two.ready, two.batches.append)
        run.wait(run.start(once=True))
        again = two.batches[-1]
        assert (again.batch, again.repeated, again.changes) == (last.batch, True, last.changes)
        assert history(two.log, views) == before
        assert computed(two.ready.lineage.folder / "changes", views) == of_batch(two.log, views, again.batch)


def forget_last_commit(checkpoint: Path) -> None:
    """As if the process had died between the batch's frame and Spark's own commit."""
    last = max(
        (path for path in (checkpoint / "commits").iterdir() if path.name.isdigit()), key=lambda path: int(path.name)
    )
    last.unlink()


def computed(folder: Path, views: list[str]) -> dict[str, list[Exact]]:
    """What the batch has computed, as Arrow files, view by view."""
    found = {}
    for view in views:
        if (path := folder / f"{view}.arrow").exists():
            rows = pa.ipc.open_file(path).read_all().to_pylist()
            found[view] = [exact(row) for row in rows]
    return found


def of_batch(log: Log, views: list[str], batch: int) -> dict[str, list[Exact]]:
    header = log.find("test/1", batch)
    assert header is not None
    found: dict[str, list[Exact]] = {}
    for view in views:
        for entry in log.read(f"test.1.{view}"):
            if entry.place.frame == header.frame:
                row = {**entry.value, "_deleted": entry.deleted}  # type: ignore[dict-item]
                keyed = {"_replaces": entry.replaces} if log.topic(f"test.1.{view}").key else {}
                found.setdefault(view, []).append(exact(row | keyed))
    return found
