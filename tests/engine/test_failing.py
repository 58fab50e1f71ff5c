"""A query that fails says why in one line, changes nothing, and says what helps."""

from collections.abc import Callable
from pathlib import Path

import pytest
from pyspark.errors import ArithmeticException

from penstock.errors import EngineError
from penstock.log import Record
from tests.engine.conftest import Bench, QuickOracle
from tests.texts import assert_golden, refused

CITIES = """
    CREATE STREAM orders (id BIGINT, city STRING);
    CREATE VIEW cities AS SELECT city, count(*) AS n FROM orders GROUP BY city;
"""
STRICT = """
    CREATE STREAM orders (id BIGINT, city STRING);
    CREATE VIEW named AS SELECT id, coalesce(city, raise_error('a city has no name')) AS city FROM orders;
"""
NEAR = "a.k = b.k AND a.x BETWEEN b.y - 1 AND b.y + 1"
RANGES = f"""
    SET ansi = true;
    CREATE TABLE a (id BIGINT PRIMARY KEY, k BIGINT, x BIGINT);
    CREATE TABLE b (id BIGINT PRIMARY KEY, k BIGINT, y BIGINT);
    CREATE VIEW near AS SELECT a.id, b.id AS other FROM a JOIN b ON {NEAR};
    CREATE VIEW near_or_not AS SELECT a.id, b.id AS other FROM a FULL JOIN b ON {NEAR};
    CREATE VIEW alone AS SELECT id FROM b WHERE NOT EXISTS (SELECT 1 FROM a WHERE {NEAR});
"""
UNMATCHED = """
    SET ansi = true;
    CREATE TABLE a (id BIGINT PRIMARY KEY, k BIGINT, x BIGINT);
    CREATE TABLE b (id BIGINT PRIMARY KEY, k BIGINT, y BIGINT, text STRING);
    CREATE VIEW squares AS SELECT a.id, b.id AS other FROM a JOIN b ON a.k = b.k AND a.x < (b.y + 1) * (b.y + 1);
    CREATE VIEW decoded AS
      SELECT a.id, b.id AS other FROM a LEFT JOIN b ON a.k = b.k AND a.x < length(url_decode(b.text));
"""
LEAST, MOST = -(2**63), 2**63 - 1
pytestmark = pytest.mark.spark


@pytest.fixture
def three(bench: Callable[..., Bench]) -> Bench:
    """Three batches."""
    made = bench(CITIES)
    for number in range(3):
        made.append({"orders": [{"id": number, "city": "Bern"}]})
        made.drain()
    return made


def message(bench: Bench) -> str:
    """What the next run says, with the folder left out."""
    bench.start()
    with pytest.raises(EngineError) as error:
        bench.drain()
    return str(error.value).replace(f"file:{bench.home}", "HOME")


def test_a_row_that_raises_stops_the_pipeline_and_changes_nothing(bench: Callable[..., Bench]) -> None:
    one = bench(STRICT)
    one.append({"orders": [{"id": 1, "city": "Bern"}]})
    one.drain()
    one.append({"orders": [{"id": 2, "city": None}]})
    with refused("engine/failed-row"):
        one.drain()
    one.check()
    assert one.checked == 1


def test_a_range_whose_bound_fails_without_a_partner_stops_nothing(bench: Callable[..., Bench]) -> None:
    """Whatever it is made of: parts that it has twice, functions that do not say that they may fail."""
    one = bench(UNMATCHED)
    one.append({"b": [{"id": 1, "k": 1, "y": 1, "text": "abc"}, {"id": 2, "k": 9, "y": MOST, "text": "%zz"}]})
    one.append({"a": [{"id": 1, "k": 1, "x": 1}]})
    one.drain()
    one.check()
    assert one.content("squares") == one.content("decoded") == [{"id": 1, "other": 1}]


@pytest.mark.parametrize("last", ["a", "b"])
def test_a_range_whose_bound_fails_stops_the_pipeline_where_batch_fails(bench: Callable[..., Bench], last: str) -> None:
    """As in batch: where there is a partner, and what comes before it in the condition does not decide."""
    one = bench(RANGES)
    failing = {"a": [{"id": 2, "k": 2, "x": 7}], "b": [{"id": 2, "k": 2, "y": LEAST}]}
    others = [{"id": 1, "k": 1, "y": 5}, {"id": 3, "k": 1, "y": MOST}, {"id": 4, "k": 3, "y": LEAST}]
    one.append({"a": [{"id": 1, "k": 1, "x": 5}], "b": others})
    one.append({table: rows for table, rows in failing.items() if table != last})
    one.drain()
    one.append({"b": [Record({"id": 4}, deleted=True), {"id": 5, "k": 4, "y": LEAST}, {"id": 6, "k": 1, "y": None}]})
    one.drain()
    one.check()
    assert one.content("near") == [{"id": 1, "other": 1}]
    one.append({last: failing[last]})
    with pytest.raises(EngineError, match="overflow"):
        one.drain()
    with pytest.raises(ArithmeticException, match="overflow"):
        QuickOracle(one.spark, one.pipeline, one.log.folder, one.log.mark().next_frame).rows("near")


def test_a_state_file_that_is_gone_is_named(three: Bench) -> None:
    state = three.ready.lineage.checkpoint / "state"
    for path in [*state.rglob("3.changelog"), *state.rglob("3.zip")]:
        path.unlink()
    three.append({"orders": [{"id": 4, "city": "Bern"}]})
    told = message(three)
    assert told.startswith('the checkpoint of pipeline "test" is damaged\n') and "3.changelog does not exist" in told


@pytest.mark.parametrize(("folder", "batch"), [("commits", 2), ("offsets", 1)])
def test_a_note_of_spark_that_is_gone_or_torn_is_named(three: Bench, folder: str, batch: int) -> None:
    path: Path = three.ready.lineage.checkpoint / folder / str(batch)
    path.write_text("torn") if folder == "commits" else path.unlink()
    three.append({"orders": [{"id": 4, "city": "Bern"}]})
    assert_golden(f"engine/failed-{folder}", message(three))
    assert len([header for header in three.log.frames() if header.producer == "test/1"]) == 3
