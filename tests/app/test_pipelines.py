"""Pipelines from the command line, in processes of their own: from an appended record to a served answer."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from prometheus_client import CollectorRegistry, generate_latest

from penstock.log import Log
from penstock.model import load_pipeline
from penstock.serve.metrics import Ran
from penstock.serve.source import Served
from penstock.views import current
from tests.test_demo import children

PENSTOCK = [sys.executable, "-c", "from penstock.cli import main; main()"]
pytestmark = pytest.mark.spark


@dataclass(frozen=True)
class Shop:
    """The pipeline that `penstock init` makes, in a folder of the test's own."""

    folder: Path
    marker: str

    @property
    def surroundings(self) -> dict[str, str]:
        name, _, value = self.marker.partition("=")
        return os.environ | {name: value}

    def run(self, *arguments: str, given: str = "") -> str:
        return self._done(*arguments, given=given).stdout

    def told(self, *arguments: str) -> str:
        """What it says beside its answer."""
        return self._done(*arguments).stderr

    def _done(self, *arguments: str, given: str = "") -> subprocess.CompletedProcess[str]:
        done = subprocess.run(
            [*PENSTOCK, *arguments],
            cwd=self.folder,
            env=self.surroundings,
            input=given,
            capture_output=True,
            text=True,
            timeout=200,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        return done

    def append(self, topic: str, *rows: dict[str, Any]) -> None:
        self.run("log", "append", topic, "--log", "shop/.penstock/log", given="\n".join(map(json.dumps, rows)))

    def spend(self) -> list[dict[str, Any]]:
        rows = self.run("view", "spend_by_city", "--pipeline", "shop", "--order", "city", "--format", "json")
        return [json.loads(line) for line in rows.splitlines()]

    def lineage(self) -> int | None:
        with Log.open(self.folder / "shop" / ".penstock" / "log", create=False) as log:
            found = current(log, "shop")
        return found.number if found else None


@pytest.fixture
def shop(tmp_path: Path) -> Shop:
    shop = Shop(tmp_path, f"PENSTOCK_PIPELINES_TEST={os.getpid()}-{tmp_path.name}")
    shop.run("init", "shop")
    shop.append("customers", customer(1, "Rome"), customer(2, "Oslo"))
    shop.append("orders", order(1, 1, "12.50"), order(2, 2, "30.00"), order(3, 1, "7.50"))
    return shop


def customer(number: int, city: str) -> dict[str, Any]:
    return {"id": number, "name": f"customer {number}", "city": city}


def order(number: int, customer: int, amount: str) -> dict[str, Any]:
    return {"id": number, "customer": customer, "amount": amount}


def spend(*rows: tuple[str, int, str]) -> Sequence[dict[str, Any]]:
    return [{"city": city, "orders": orders, "spend": spend} for city, orders, spend in rows]


def soon(holds: Callable[[], bool], *, seconds: float = 120) -> bool:
    until = time.monotonic() + seconds
    while not holds() and time.monotonic() < until:
        time.sleep(0.1)
    return holds()


def sold(shop: Shop) -> list[int]:
    """The orders in the files of the pipeline."""
    return sorted(pq.read_table(shop.folder / "shop/.penstock/files/current/sold").column("id").to_pylist())


@pytest.mark.timeout(600)  # Spark is started five times
def test_a_pipeline_is_run_changed_verified_and_reset(shop: Shop) -> None:
    (shop.folder / "shop" / "sold.sql").write_text(
        "CREATE VIEW sold WITH (store = 'files', partition_by = 'customer') AS SELECT id, customer FROM orders"
    )
    shop.run("run", "shop", "--once")
    assert sold(shop) == [1, 2, 3]
    assert shop.spend() == spend(("Oslo", 1, "30.00"), ("Rome", 2, "20.00"))

    shop.append("customers", customer(2, "Rome"))
    shop.append("orders", order(4, 1, "0.00"))
    shop.run("run", "shop", "--once")
    assert shop.spend() == spend(("Rome", 4, "50.00"))
    assert sold(shop) == [1, 2, 3, 4]
    verified = shop.run("verify", "--pipeline", "shop").splitlines()
    assert [", ".join(line.split(", ")[:2]) for line in verified] == [
        "spend_by_city: equal, 1 row",
        "sold: equal, 4 rows",
    ]

    shop.run("reset", "shop")
    assert (shop.spend(), shop.lineage()) == (spend(("Rome", 4, "50.00")), 1)
    shop.run("run", "shop", "--once")
    assert (shop.spend(), shop.lineage()) == (spend(("Rome", 4, "50.00")), 2)
    assert sold(shop) == [1, 2, 3, 4]
    assert sorted(path.name for path in (shop.folder / "shop/.penstock/files").iterdir()) == [".lock", "2", "current"]
    assert children(shop.marker) == []


def test_a_run_that_is_interrupted_leaves_promptly_and_nothing_behind(shop: Shop) -> None:
    run = subprocess.Popen(
        [*PENSTOCK, "run", "shop"], cwd=shop.folder, env=shop.surroundings, stderr=subprocess.PIPE, text=True
    )
    assert soon((shop.folder / "shop/.penstock/views.sqlite").exists)
    assert soon(lambda: shop.lineage() == 1)
    assert soon(lambda: shop.spend() == spend(("Oslo", 1, "30.00"), ("Rome", 2, "20.00")))
    shop.append("orders", order(4, 2, "5.00"))
    assert soon(lambda: shop.spend() == spend(("Oslo", 2, "35.00"), ("Rome", 2, "20.00")))

    run.send_signal(signal.SIGINT)
    asked = time.monotonic()
    _, said = run.communicate(timeout=60)
    assert (run.returncode, "Traceback" in said) == (130, False), said
    assert time.monotonic() - asked < 20
    assert children(shop.marker) == []


TIMED = """
CREATE STREAM visits (page STRING, at TIMESTAMP) WITH (event_time = 'at', watermark = '1 hour');
CREATE TABLE pages (page STRING PRIMARY KEY, title STRING);
CREATE VIEW daily WITH (emit = 'final', late_alert = '10 %') AS
  SELECT window.start AS day, count(*) AS visits FROM visits GROUP BY window(at, '1 day');
CREATE VIEW stays AS SELECT page, count(*) AS visits FROM visits GROUP BY page, session_window(at, '30 minutes');
CREATE VIEW titled WITH (retain = '1 hour') AS SELECT title, at FROM visits JOIN pages USING (page);
CREATE VIEW visited_again WITH (emit = 'final') AS
  SELECT window.start AS day, count(*) AS n FROM visits v JOIN visits w
  ON v.page = w.page AND w.at > v.at AND w.at <= v.at + INTERVAL 10 MINUTES GROUP BY window(v.at, '1 day');
"""


@pytest.mark.timeout(600)
def test_windows_are_closed_by_hand(shop: Shop) -> None:
    """What is appended after that is late; of corrections it is said how many rows they would have concerned."""
    pipeline = shop.folder / "timed"
    pipeline.mkdir()
    pipeline.joinpath("pipeline.sql").write_text(TIMED)
    with Log.open(pipeline / ".penstock/log") as log:
        log.create_topic("visits", "page STRING, at TIMESTAMP", event_time="at")
        log.create_topic("pages", "page STRING, title STRING", key="page")
    late = ["late: daily 1, stays 1, titled 1, visited_again 1;", "ALERT, too many late: daily 100 %"]
    times = ["watermark: visits 2024-01-01 11:00:00 (", "watermark of views: daily 2024-01-01 11:00:00 ("]
    again = "visited_again 2024-01-01 10:50:00 ("  # pairs come ten minutes later
    over = "watermark of views: daily the end, stays the end, titled the end, visited_again the end;"
    for title, options, told, metric in [
        ("A", [], [*times, again, "open windows: daily 1, stays 1"], 'penstock_open_windows{view="stays"} 1.0'),
        ("B", ["--close"], [over, "open windows: daily 0, stays 0"], 'penstock_open_windows{view="stays"} 0.0'),
        ("C", [], late, 'penstock_late_rows_total{view="daily"} 1.0'),
    ]:
        with Log.open(pipeline / ".penstock/log", create=False) as log:
            if options != ["--close"]:
                log.append("visits", [{"page": "a", "at": datetime(2024, 1, 1, 12, tzinfo=UTC)}])
            log.append("pages", [{"page": "a", "title": title}])
        said = shop.told("run", "timed", "--once", *options)
        assert [each for each in told if each not in said] == [], said
        assert metric in measured(pipeline)
    days = shop.run("view", "daily", "--pipeline", "timed", "--format", "csv").splitlines()
    assert days[1:] == ["2024-01-01T00:00:00Z,1"]
    missed = [line.split() for line in shop.run("late", "--pipeline", "timed").splitlines()]
    assert missed == [
        ["view", "window_start", "window_end", "rows"],
        ["daily", "2024-01-01T00:00:00Z", "2024-01-02T00:00:00Z", "1"],
        *([view, "NULL", "NULL", "1"] for view in ("stays", "titled", "visited_again")),
    ]
    left = shop.run("log", "read", "timed.1.daily-late", "--log", "timed/.penstock/log")
    assert json.loads(left)["row"] == '{"page":"a","at":"2024-01-01T12:00:00.000000Z"}'
    verdicts = shop.run("verify", "--pipeline", "timed").splitlines()
    assert [line.partition(", up to")[0] for line in verdicts] == [
        "daily: equal, 1 row",
        "stays: equal, 1 row",
        "titled: equal, 2 rows",
        "visited_again: equal, 0 rows",
    ]
    assert verdicts[2].endswith("; corrections came too late for 2 rows")


def measured(folder: Path) -> set[str]:
    """What Prometheus would read of the last run."""
    registry, home = CollectorRegistry(), folder / ".penstock"
    with Log.open(home / "log", create=False) as log:
        registry.register(Ran(Served(log, load_pipeline(folder), home / "views.sqlite", home)))
        return set(generate_latest(registry).decode().splitlines())
