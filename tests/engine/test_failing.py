"""A query that fails says why in one line, changes nothing, and says what helps."""

from collections.abc import Callable
from pathlib import Path

import pytest

from penstock.errors import EngineError
from tests.engine.conftest import Bench
from tests.texts import assert_golden, refused

CITIES = """
    CREATE STREAM orders (id BIGINT, city STRING);
    CREATE VIEW cities AS SELECT city, count(*) AS n FROM orders GROUP BY city;
"""
STRICT = """
    CREATE STREAM orders (id BIGINT, city STRING);
    CREATE VIEW named AS SELECT id, coalesce(city, raise_error('a city has no name')) AS city FROM orders;
"""
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
