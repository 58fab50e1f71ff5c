"""`penstock view` and what the other commands of pipelines print, without Spark."""

import json
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import IO

import pytest

from penstock.app.progress import Progress
from penstock.app.verifying import Verdict
from penstock.cli.plans import verdict_lines
from penstock.cli.run import progress_text
from penstock.cli.working import settings
from penstock.engine.oracle import Difference
from penstock.errors import CommandError
from penstock.log import Log
from penstock.views import Position, SqliteStore, catch_up
from tests.cli.conftest import Penstock, Ran
from tests.texts import assert_golden
from tests.views.shop import Declared, Shop, name, spend

SQL = """
    CREATE TABLE people (name STRING, age INT);
    CREATE VIEW spend AS SELECT 1 AS one FROM people;
    CREATE VIEW names WITH (store = 'topic') AS SELECT name, age FROM people;
    CREATE VIEW gone WITH (store = 'none') AS SELECT name FROM people;
"""
VIEWS = {
    "spend": Declared("city STRING, orders BIGINT, spend DECIMAL(12,2)", key=("city",)),
    "names": Declared("name STRING, age INT", store="topic"),
    "gone": Declared("name STRING", store="none"),
}


@pytest.fixture
def pipeline(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Shop]:
    """A pipeline that has run two batches, as its folder, log and store show it."""
    home = tmp_path / "shop" / ".penstock"
    home.mkdir(parents=True)
    (tmp_path / "shop" / "pipeline.sql").write_text(SQL)
    monkeypatch.chdir(tmp_path / "shop")
    with Log.open(home / "log") as log:
        shop = Shop(log, views=VIEWS)
        shop.announce()
        shop.batch(spend=[(None, spend("Bern", 1)), (None, spend("Zug", 2, "20.00"))], names=[(None, name("ann", 30))])
        shop.batch(spend=[(spend("Bern", 1), spend("Bern", 3, "9.50")), (None, spend(None, 1))])
        with SqliteStore(home / "views.sqlite") as store:
            catch_up(log, "shop", store)
        yield shop


def shown(penstock: Penstock, *arguments: str) -> Ran:
    ran = penstock.run("view", *arguments)
    assert ran.code == 0, ran.err
    return ran


def refused(penstock: Penstock, golden: str, *arguments: str) -> None:
    ran = penstock.run(*arguments)
    assert (ran.code, ran.out) == (1, "")
    assert_golden(f"cli/{golden}", ran.err.strip().replace(str(penstock.folder), "FOLDER"))


@pytest.fixture
def command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Penstock:
    return Penstock(tmp_path, monkeypatch)


@pytest.mark.usefixtures("pipeline")
def test_a_view_is_shown_as_a_table(command: Penstock) -> None:
    assert shown(command, "spend", "--order", "spend desc").lines == [
        "city  orders  spend",
        "Zug        2  20.00",
        "Bern       3   9.50",
        "           1   1.00",
    ]


@pytest.mark.usefixtures("pipeline")
def test_a_view_is_shown_as_json_and_csv_where_a_condition_holds(command: Penstock) -> None:
    where = ("--where", "spend > 5", "--order", "city", "--limit", "1")
    assert shown(command, "SPEND", *where, "--format", "json").lines == [
        '{"city": "Bern", "orders": 3, "spend": "9.50"}'
    ]
    assert shown(command, "spend", *where, "--format", "csv").lines == ["city,orders,spend", "Bern,3,9.50"]


@pytest.mark.usefixtures("pipeline")
def test_a_view_that_is_only_a_topic_is_folded_from_it(command: Penstock) -> None:
    assert shown(command, "names", "--format", "json").lines == ['{"name": "ann", "age": 30}']


@pytest.mark.usefixtures("pipeline")
@pytest.mark.parametrize(
    ("golden", "arguments"),
    [
        ("view_unknown", ["view", "spent"]),
        ("view_not_kept", ["view", "gone"]),
        ("view_follow_where", ["view", "spend", "--follow", "--where", "orders > 1"]),
        ("view_where", ["view", "spend", "--where", "citty = 'Bern'"]),
        ("view_no_pipeline", ["view", "spend", "--pipeline", "nowhere"]),
        ("init_again", ["init", "."]),
        ("run_no_pipeline", ["run", "nowhere"]),
        ("run_conf", ["run", ".", "--conf", "spark.x"]),
        ("verify_not_run", ["verify"]),
        ("explain_unknown", ["explain", "spent"]),
    ],
)
def test_what_cannot_be_done_is_refused(command: Penstock, golden: str, arguments: list[str]) -> None:
    refused(command, golden, *arguments)


def test_following_shows_all_rows_and_then_every_change(pipeline: Shop) -> None:
    penstock = [sys.executable, "-c", "from penstock.cli import main; main()", "view", "spend", "--follow"]
    with subprocess.Popen([*penstock, "--format", "json"], stdout=subprocess.PIPE, text=True) as follow:
        assert follow.stdout is not None
        assert {change(follow.stdout)[:2] for _ in range(3)} == {(1, "Bern"), (1, "Zug"), (1, None)}
        pipeline.batch(spend=[(spend("Zug", 2, "20.00"), spend("Zug", 3, "21.00"))])
        assert [change(follow.stdout) for _ in range(2)] == [(-1, "Zug", "20.00"), (1, "Zug", "21.00")]
        follow.send_signal(signal.SIGINT)
        assert follow.wait(timeout=20) == 0


def change(out: IO[str]) -> tuple[int, str | None, str]:
    row = json.loads(out.readline())
    return row["_change"], row["city"], row["spend"]


@pytest.mark.usefixtures("pipeline")
def test_a_view_is_shown_without_spark_and_in_well_under_a_second() -> None:
    script = "import sys; from penstock.cli import main\ntry: main()\nfinally: print('pyspark' in sys.modules)"
    began = time.monotonic()
    done = subprocess.run([sys.executable, "-c", script, "view", "spend"], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "False"
    assert time.monotonic() - began < 5  # on a quiet machine about half a second


def test_init_makes_a_pipeline_with_a_log_and_says_how_to_go_on(command: Penstock) -> None:
    ran = command.run("init", command.folder / "shop")
    assert_golden("cli/init", ran.out.strip().replace(str(command.folder), "FOLDER"))
    with Log.open(command.folder / "shop" / ".penstock" / "log", create=False) as log:
        assert {topic.name: topic.key for topic in log.topics()} == {"orders": (), "customers": ("id",)}


def test_settings_of_spark_are_pairs() -> None:
    assert settings(["spark.a=1", "spark.b=x=y"]) == {"spark.a": "1", "spark.b": "x=y"}
    with pytest.raises(CommandError, match="sets nothing"):
        settings(["spark.a"])


def test_progress_is_one_line() -> None:
    done = Progress(7, 3, frames=31, records=12_480, seconds=0.5, lag=1, changes={"total": 1, "spend": 214})
    assert progress_text(done) == (
        "batch 7: 12,480 records in 31 frames, 24,960/s; changes: spend 214, total 1; lag: 1 frame"
    )
    assert progress_text(Progress(0, 1, 0, 0, 0.1, 0)) == (
        "batch 0: 0 records in 0 frames; changes: none; lag: 0 frames"
    )


def test_a_verdict_shows_the_rows_that_differ() -> None:
    at = Position("log", 1, 9, 2, 6)
    different = Difference(missing=(("Rome", 3),), unexpected=(("Rome", 2), (None, 1)))
    assert list(verdict_lines(Verdict("spend", ("city", "n"), 3, at, different))) == [
        "spend: differs, 1 missing and 2 too many, up to frame 5",
        "     city  n",
        "  -  Rome  3",
        "  +  Rome  2",
        "  +  NULL  1",
    ]
    assert list(verdict_lines(Verdict("spend", ("city", "n"), 1, at, Difference((), ())))) == [
        "spend: equal, 1 row, up to frame 5"
    ]
    assert list(verdict_lines(Verdict("gone"))) == ["gone: is not kept, nothing to compare"]
