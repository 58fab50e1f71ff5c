"""Times that a view computes beyond the years that Python has: kept as they are, and readable as Arrow."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from penstock.engine.oracle import Oracle, compared
from penstock.errors import LogError
from penstock.views import SqliteStore, ViewReader, catch_up
from tests.engine.conftest import Bench
from tests.engine.test_large_batches import limited

FAR = """
    CREATE TABLE days (id BIGINT PRIMARY KEY, n BIGINT);
    CREATE VIEW far AS SELECT id, timestamp_seconds(n * 86400) AS t, date_from_unix_date(CAST(n AS INT)) AS d FROM days;
    CREATE VIEW latest AS SELECT max(t) AS t, min(d) AS d FROM far;
"""
pytestmark = pytest.mark.spark


@pytest.mark.parametrize("limit", [1 << 20, 100])
def test_an_answer_in_the_year_12000_does_not_stop_the_pipeline(
    bench: Callable[..., Bench], tmp_path: Path, limit: int
) -> None:
    made = limited(bench(FAR), limit)
    for far in (4_000_000, -1_000_000):
        made.append({"days": [{"id": 1, "n": 20_000}, {"id": 2, "n": far}]})
        made.drain()
    with SqliteStore(tmp_path / "views") as store:
        catch_up(made.log, "test", store)
    oracle = Oracle(made.spark, made.pipeline, made.log.folder, made.batches[-1].end)
    with ViewReader(tmp_path / "views") as reader:
        for view in ("far", "latest"):
            found = reader.rows(view).table
            assert not compared(oracle.rows(view), found)
        assert str(np.datetime64(found.column("d").cast("int32")[0].as_py(), "D")) == "-768-02-04"
        assert compared(oracle.rows("far"), reader.rows("far", limit=1).table)


def test_who_reads_entries_is_told(bench: Callable[..., Bench]) -> None:
    made = bench(FAR)
    made.append({"days": [{"id": 2, "n": 4_000_000}]})
    made.drain()
    with pytest.raises(LogError, match='a value of column "t" of topic'):
        list(made.log.read("test.1.far"))
    assert [batch.column("t").cast("int64").to_pylist() for batch in made.log.batches("test.1.far")] == [
        [4_000_000 * 86_400_000_000]
    ]
