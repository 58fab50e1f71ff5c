"""100,000 rows behind one key: a change costs in proportion to what it reaches, not to the rows behind its key.

What is counted are the pages that the state store is asked for. One holds some tens of rows: whoever read all rows of
one operator would need more than a thousand.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from penstock.log import Record
from penstock.views import changes
from penstock.views.changelog import RowChange
from tests.engine.conftest import Bench

READINGS = 100_000
ODD = "s.sensor = r.sensor AND r.at BETWEEN s.lo AND s.hi AND (r.value + s.id) % 2 = 0"
"""Matches a range, and has more to say: of span 1 the readings with an odd value."""
VIEWS = {
    "within": """SELECT s.id, r.id AS reading FROM spans s JOIN readings r
                 ON s.sensor = r.sensor AND r.at BETWEEN s.lo AND s.hi""",
    "covered": """SELECT id FROM readings r WHERE EXISTS
                  (SELECT 1 FROM spans s WHERE s.sensor = r.sensor AND r.at BETWEEN s.lo AND s.hi)""",
    "beside": f"SELECT s.id, r.id AS reading FROM spans s LEFT JOIN readings r ON {ODD}",
    "both": f"SELECT count(*) AS n, count(s.id) AS met FROM spans s FULL JOIN readings r ON {ODD}",
    "uncovered": f"SELECT count(*) AS n FROM readings r WHERE NOT EXISTS (SELECT 1 FROM spans s WHERE {ODD})",
    "near": """SELECT p.id, r.id AS reading FROM probes p JOIN readings r
               ON p.sensor = r.sensor AND p.at BETWEEN r.at - 15 AND r.at + 15""",
    "named": "SELECT r.id, name, value FROM readings r JOIN sensors s ON r.sensor = s.sensor WHERE at % 1000 = 0",
    "joined": "SELECT r.id, name, value FROM readings r JOIN sensors s ON r.sensor = s.sensor",
    "extremes": """SELECT sensor, min(value) AS least, max(value) AS most, count(DISTINCT at) AS times
                   FROM readings GROUP BY sensor""",
    "middle": "SELECT sensor, median(value) AS middle, percentile(value, 0.99) AS high FROM readings GROUP BY sensor",
    "most": "SELECT id, value FROM readings ORDER BY value DESC LIMIT 3",
    "least": """SELECT id, value FROM (SELECT *, row_number() OVER (PARTITION BY sensor ORDER BY value) AS n
                FROM readings) WHERE n <= 2""",
    "ranked": """SELECT id, n, d FROM (SELECT *, rank() OVER (PARTITION BY sensor ORDER BY value DIV 2) AS n,
                 dense_rank() OVER (PARTITION BY sensor ORDER BY value DIV 2) AS d FROM readings) WHERE n <= 3""",
    "dense": """SELECT id, d FROM (SELECT *, dense_rank() OVER (PARTITION BY sensor ORDER BY value DIV 2) AS d
                FROM readings) WHERE d <= 2""",
    "around": """SELECT id, value - lag(value) OVER time AS step, sum(value) OVER rows AS total, max(value) OVER range
                 AS peak FROM readings WINDOW time AS (PARTITION BY sensor ORDER BY at),
                 rows AS (PARTITION BY sensor ORDER BY at ROWS BETWEEN 1 PRECEDING AND 1 FOLLOWING),
                 range AS (PARTITION BY sensor ORDER BY at RANGE BETWEEN 10 PRECEDING AND CURRENT ROW)""",
}
TABLES = """
CREATE TABLE readings (id BIGINT PRIMARY KEY, sensor BIGINT, at BIGINT, value BIGINT);
CREATE TABLE spans (id BIGINT PRIMARY KEY, sensor BIGINT, lo BIGINT, hi BIGINT);
CREATE TABLE probes (id BIGINT PRIMARY KEY, sensor BIGINT, at BIGINT);
CREATE TABLE sensors (sensor BIGINT PRIMARY KEY, name STRING);
"""
FEW = 150
"""Pages for a change that reaches a few rows of each view: some fifteen operators, each with a tree to go down."""

Row = tuple[Any, ...]


def value(i: int) -> int:
    """What reading `i` has at time 10 `i`, and no other has."""
    return i * 7919 % READINGS


HOLDERS = {value(i): i for i in range(READINGS)}


def reading(i: int, value: int) -> dict[str, int]:
    return {"id": i, "sensor": 1, "at": 10 * i, "value": value}


def span(first: int, last: int) -> dict[str, int]:
    """The one from a reading to another."""
    return {"id": 1, "sensor": 1, "lo": 10 * first, "hi": 10 * last}


def around(i: int, values: Mapping[int, int]) -> Row:
    """The row of the view of that name where some readings have other values."""
    before, here, after = (values.get(each, value(each)) for each in (i - 1, i, i + 1))
    return (i, here - before, before + here + after, max(before, here))


@dataclass(frozen=True)
class Outcome:
    """What a change has come to: in each view the rows that left and those that came, and how many pages were read and
    written.
    """

    left: Mapping[str, set[Row]]
    came: Mapping[str, set[Row]]
    reads: int
    writes: int


class Large:
    """A pipeline over the readings of one sensor."""

    def __init__(self, bench: Bench) -> None:
        self._bench = bench
        readings = pa.Table.from_pylist([reading(i, value(i)) for i in range(READINGS)])
        self._bench.append({"readings": readings, "sensors": [{"sensor": 1, "name": "roof"}]})
        self._bench.drain()

    def change(self, **rows: Any) -> Outcome:
        """Appends rows, in a batch of their own."""
        frame = self._bench.log.mark().next_frame
        self._bench.append(rows)
        run = self._bench.run()
        query = run.start(once=True)
        run.wait(query)
        counts = [each["customMetrics"] for batch in query.recentProgress for each in batch["stateOperators"]]
        reads, writes = (sum(each[f"rocksdb{what}Count"] for each in counts) for what in ("Get", "Put"))
        views = [view.name for view in self._bench.pipeline.views]
        found = {view: list(changes(self._bench.log, "test", view, frame)) for view in views}
        return Outcome(moved(found, -1), moved(found, 1), reads, writes)


def moved(found: Mapping[str, Sequence[RowChange]], weight: int) -> dict[str, set[Row]]:
    rows = {view: {tuple(each.row.values()) for each in its if each.weight == weight} for view, its in found.items()}
    return {view: its for view, its in rows.items() if its}


def declared(*views: str) -> str:
    return TABLES + "".join(f"CREATE VIEW {view} WITH (store = 'topic') AS {VIEWS[view]};" for view in views)


@pytest.fixture(scope="module")
def large(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Large]:
    bench = Bench(spark, tmp_path_factory.mktemp("large"), declared(*VIEWS))
    yield Large(bench)
    bench.log.close()


def test_a_range_costs_the_rows_in_it(large: Large) -> None:
    narrow = large.change(spans=[span(50_000, 50_005)])
    assert narrow.came == {
        "within": {(1, i) for i in range(50_000, 50_006)},
        "covered": {(i,) for i in range(50_000, 50_006)},
        "beside": {(1, i) for i in range(50_000, 50_006) if value(i) % 2},
        "both": {(READINGS, 3)},
        "uncovered": {(READINGS - 3,)},
    }
    assert narrow.left == {"both": {(READINGS, 0)}, "uncovered": {(READINGS,)}}
    assert narrow.reads < FEW and narrow.writes < FEW
    wide = large.change(spans=[span(50_000, 59_999)])
    assert wide.came["within"] == {(1, i) for i in range(50_006, 60_000)}
    assert wide.came["beside"] == {(1, i) for i in range(50_006, 60_000) if value(i) % 2}
    assert wide.came["uncovered"] == {(READINGS - 5_000,)} and set(wide.left) == {"both", "uncovered"}
    assert 2 * FEW < wide.reads < 20 * FEW  # a tenth of the rows is seen in what is counted
    gone = large.change(spans=[Record({"id": 1}, deleted=True)])
    assert len(gone.left["within"]) == len(gone.left["covered"]) == 10_000
    assert gone.came == {"both": {(READINGS, 0)}, "uncovered": {(READINGS,)}}


def test_a_range_without_rows_costs_little(large: Large) -> None:
    came = large.change(spans=[{"id": 1, "sensor": 1, "lo": 500_001, "hi": 500_009}])
    assert came.came == {"beside": {(1, None)}, "both": {(READINGS + 1, 1)}} and came.reads < FEW
    gone = large.change(spans=[Record({"id": 1}, deleted=True)])
    assert gone.left == came.came and gone.reads < FEW


def test_a_range_around_the_rows_costs_those_whose_range_it_is(large: Large) -> None:
    came = large.change(probes=[{"id": 1, "sensor": 1, "at": 500_003}])
    assert came.came == {"near": {(1, i) for i in (49_999, 50_000, 50_001)}}
    gone = large.change(probes=[Record({"id": 1}, deleted=True)])
    assert gone.left == came.came
    assert came.reads < FEW and gone.reads < FEW


def test_a_range_whose_bounds_may_fail_costs_the_rows_in_it(spark: SparkSession, tmp_path: Path) -> None:
    bench = Bench(spark, tmp_path, declared("near"), ansi=True)
    test_a_range_around_the_rows_costs_those_whose_range_it_is(Large(bench))
    bench.log.close()


def test_one_of_the_many_rows_costs_its_neighbours(large: Large) -> None:
    i, now = 12_300, 50
    large.change(spans=[span(i, i)])
    changed = large.change(readings=[reading(i, now)])
    assert changed.came["around"] == {around(each, {i: now}) for each in (i - 1, i, i + 1)}
    assert changed.left["around"] == {around(each, {}) for each in (i - 1, i, i + 1)}
    assert (changed.left["named"], changed.came["named"]) == ({(i, "roof", value(i))}, {(i, "roof", now)})
    assert (changed.left["joined"], changed.came["joined"]) == (changed.left["named"], changed.came["named"])
    assert set(changed.came) == {"around", "named", "joined"}
    gone = large.change(readings=[Record({"id": i}, deleted=True)])
    assert (gone.left["within"], gone.left["covered"]) == ({(1, i)}, {(i,)})
    assert gone.left["joined"] == {(i, "roof", now)}
    back = large.change(readings=[reading(i, value(i))])
    assert (back.came["within"], back.came["covered"]) == ({(1, i)}, {(i,)})
    for outcome in (changed, gone, back):
        assert outcome.reads < FEW and outcome.writes < FEW
    large.change(spans=[Record({"id": 1}, deleted=True)])


def test_the_row_that_all_are_joined_with_costs_all_of_them(large: Large) -> None:
    renamed = large.change(sensors=[{"sensor": 1, "name": "cellar"}])
    assert renamed.left["joined"] == {(i, "roof", value(i)) for i in range(READINGS)}
    assert renamed.came["joined"] == {(i, "cellar", value(i)) for i in range(READINGS)}
    assert set(renamed.came) == {"named", "joined"}
    assert 1_000 < renamed.reads < 10_000 and renamed.writes < FEW  # all rows are read, and stay as they are
    back = large.change(sensors=[{"sensor": 1, "name": "roof"}])
    assert (back.left, back.came) == (renamed.came, renamed.left)
    other = large.change(sensors=[{"sensor": 2, "name": "attic"}])
    assert (other.left, other.came) == ({}, {}) and other.reads < FEW


def test_a_percentile_moves_as_far_as_the_change_moves_it(large: Large) -> None:
    low = HOLDERS[10]
    changed = large.change(readings=[reading(low, 70_000)])
    assert (changed.left["middle"], changed.came["middle"]) == ({(1, 49_999.5, 98_999.01)}, {(1, 50_000.5, 98_999.01)})
    back = large.change(readings=[reading(low, 10)])
    assert (back.left["middle"], back.came["middle"]) == (changed.came["middle"], changed.left["middle"])
    for outcome in (changed, back):
        assert outcome.reads < FEW and outcome.writes < FEW


def test_the_extremes_and_the_first_rows_leave_and_come_back(large: Large) -> None:
    least, most = HOLDERS[0], HOLDERS[READINGS - 1]
    gone = large.change(readings=[Record({"id": least}, deleted=True), Record({"id": most}, deleted=True)])
    assert gone.left["extremes"] == {(1, 0, READINGS - 1, READINGS)}
    assert gone.came["extremes"] == {(1, 1, READINGS - 2, READINGS - 2)}
    assert (gone.left["most"], gone.came["most"]) == ({(most, 99_999)}, {(HOLDERS[99_996], 99_996)})
    assert (gone.left["least"], gone.came["least"]) == ({(least, 0)}, {(HOLDERS[2], 2)})
    assert gone.left["ranked"] == {(least, 1, 1), *((HOLDERS[each], 3, 2) for each in (2, 3))}
    assert gone.came["ranked"] == {(HOLDERS[each], 2, 2) for each in (2, 3)}
    assert (gone.left["dense"], gone.came.get("dense")) == ({(least, 1)}, None)
    back = large.change(readings=[reading(least, 0), reading(most, READINGS - 1)])
    assert (back.came["dense"], back.left.get("dense")) == (gone.left["dense"], None)
    for view in ("extremes", "most", "least", "ranked"):
        assert (back.left[view], back.came[view]) == (gone.came[view], gone.left[view])
    for outcome in (gone, back):
        assert outcome.reads < 2 * FEW and outcome.writes < FEW  # it reaches all views but those of ranges
