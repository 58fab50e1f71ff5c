"""`penstock late`: which windows late rows missed, as the notes of batches say."""

from pathlib import Path

import pytest

from penstock.log import Log
from tests.cli.conftest import Penstock
from tests.texts import assert_golden

HOUR = 3_600_000_000
NOON = 1_704_110_400_000_000
NOTES = (
    {"late": {"hourly": 4, "visits": 1}, "missed": {"hourly": [[NOON, NOON + HOUR, 3], [NOON - HOUR, NOON, 1]]}},
    {"late": {"hourly": 2}, "missed": {"hourly": [[NOON, NOON + HOUR, 1], [2**62, 2**62 + HOUR, 1]]}},
)
SQL = """
    CREATE TABLE orders (id BIGINT);
    CREATE VIEW hourly AS SELECT id FROM orders;
    CREATE VIEW visits AS SELECT id FROM orders;
"""


@pytest.fixture
def shop(penstock: Penstock, monkeypatch: pytest.MonkeyPatch) -> Penstock:
    """A pipeline that has not run yet."""
    folder = penstock.folder / "shop"
    folder.mkdir()
    (folder / "pipeline.sql").write_text(SQL)
    monkeypatch.delenv("PENSTOCK_LOG")
    monkeypatch.chdir(folder)
    Log.open(folder / ".penstock/log").close()
    return penstock


def run(folder: Path) -> None:
    """As a run would leave it behind."""
    with Log.open(folder / "shop/.penstock/log") as log:
        for batch, told in enumerate(NOTES):
            note = {"pipeline": "shop", "lineage": 1, "batch": batch, "from": 0, "until": 0, **told}
            log.append_all({}, producer="shop/1", sequence=batch, note=note)
        note = {"pipeline": "shop", "current": 1, "views": {}, "reads": []}
        log.append_all({}, producer="shop", sequence=1, note=note)


def test_the_newest_windows_come_first_and_rows_without_one_last(shop: Penstock) -> None:
    run(shop.folder)
    assert_golden("cli/late", shop.run("late").out.strip())


def test_one_view_and_so_many_windows(shop: Penstock) -> None:
    run(shop.folder)
    assert [line.split()[-1] for line in shop.run("late", "Visits").lines] == ["rows", "1"]
    few = shop.run("late", "hourly", "--limit", "1")
    assert (few.code, len(few.lines)) == (0, 2)
    assert few.err == "The first 1 of 3 windows; --limit shows more.\n"


def test_a_pipeline_that_has_not_run_has_no_late_rows(shop: Penstock) -> None:
    ran = shop.run("late")
    assert (ran.code, ran.out) == (1, "")
    assert_golden("cli/late-not-run", ran.err.strip())
