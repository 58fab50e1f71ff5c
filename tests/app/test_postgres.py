"""A pipeline whose tables are in PostgreSQL: run, read, verified, reset."""

import subprocess
import sys
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path

import pytest

from penstock.log import Log
from services.postgres import Server
from tests.views.postgres import asked, new_schema, server_for_tests

pytestmark = [pytest.mark.spark, pytest.mark.postgres]
SQL = """
SET store = '{url}?schema={schema}';
CREATE STREAM orders (id BIGINT, city STRING, amount DECIMAL(10,2), at TIMESTAMP);
CREATE VIEW spend WITH (index = 'orders') AS
  SELECT city, count(*) AS orders, sum(amount) AS spend FROM orders GROUP BY city;
CREATE VIEW lines AS SELECT city, amount FROM orders;
"""
CHANGED = [
    'pipeline "shop" is not what it was when its answers were begun',
    "  detail: What changed: view spend.",
    "  hint:   To compute its answers anew from the log: penstock reset .",
]


@pytest.fixture(scope="module")
def postgres() -> Iterator[Server]:
    yield from server_for_tests()


def test_a_pipeline_keeps_its_views_in_postgresql(postgres: Server, tmp_path: Path) -> None:
    folder, schema = tmp_path / "shop", new_schema()
    folder.mkdir()
    text = SQL.format(url=postgres.url(), schema=schema)
    (folder / "pipeline.sql").write_text(text)
    with Log.open(folder / ".penstock" / "log") as log:
        log.create_topic("orders", "id BIGINT, city STRING, amount DECIMAL(10,2), at TIMESTAMP")
        rows = [
            {"id": at, "city": "Bern" if at % 2 else None, "amount": Decimal(f"{at}.50"), "at": None} for at in range(7)
        ]
        log.append("orders", rows)
    penstock(folder, "run", "--once")
    assert asked(postgres, f'SELECT city, orders FROM "{schema}".spend ORDER BY city') == [("Bern", 3), (None, 4)]
    penstock(folder, "verify")
    assert not (folder / ".penstock" / "views.sqlite").exists()
    (folder / "pipeline.sql").write_text(text.replace("SELECT city, count", "SELECT upper(city) AS town, count"))
    assert penstock(folder, "run", "--once", code=1).splitlines()[-3:] == CHANGED
    assert asked(postgres, f'SELECT city FROM "{schema}".spend ORDER BY city') == [("Bern",), (None,)]
    penstock(folder, "reset")
    penstock(folder, "run", "--once")
    assert asked(postgres, f'SELECT town FROM "{schema}".spend ORDER BY town') == [("BERN",), (None,)]


def penstock(folder: Path, *arguments: str, code: int = 0) -> str:
    """Ends with that code; what it said."""
    command = [sys.executable, "-c", "from penstock.cli import main; main()", *arguments]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=250, check=False)
    assert done.returncode == code, done.stderr
    return done.stderr
