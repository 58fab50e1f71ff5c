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
from penstock.cli.tellers import progress_text
from penstock.cli.working import settings
from penstock.engine.oracle import Difference
from penstock.errors import CommandError
from penstock.log import Log
from penstock.views import Position, SqliteStore, catch_up
from penstock.views.parquet import ParquetStore
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
    monkeypatch.delenv("PENSTOCK_LOG", raising=False)
    return Penstock(tmp_path, monkeypatch)


@pytest.mark.usefixtures("pipeline")
def test_a_view_is_shown_as_a_table(command: Penstock) -> None:
    assert shown(command, "spend", "--order", "spend desc").lines == [
        "city  orders  spend",
        "Zug        2  20.00",
        "Bern       3   9.50",
        "NULL       1   1.00",
    ]


@pytest.mark.usefixtures("pipeline")
def test_a_table_without_an_order_is_ordered_by_the_views_key(command: Penstock) -> None:
    assert [line.split()[0] for line in shown(command, "spend").lines] == ["city", "NULL", "Bern", "Zug"]


@pytest.mark.usefixtures("pipeline")
def test_a_view_is_shown_as_json_and_csv_where_a_condition_holds(command: Penstock) -> None:
    where = ("--where", "spend > 5", "--order", "city", "--limit", "1")
    assert shown(command, "SPEND", *where, "--format", "json").lines == [
        '{"city": "Bern", "orders": 3, "spend": "9.50"}'
    ]
    assert shown(command, "spend", *where, "--format", "csv").lines == ["city,orders,spend", "Bern,3,9.50"]


def test_of_a_view_that_is_kept_as_files_it_is_said_where_they_are(command: Penstock, tmp_path: Path) -> None:
    home = tmp_path / "bids" / ".penstock"
    home.mkdir(parents=True)
    (tmp_path / "bids" / "pipeline.sql").write_text(
        "CREATE STREAM s (n INT); CREATE VIEW all_bids WITH (store = 'files') AS SELECT n FROM s;"
    )
    with Log.open(home / "log") as log:
        shop = Shop(log, pipeline="bids", views={"all_bids": Declared("n INT", store="files")})
        shop.announce()
        shop.batch(all_bids=[(None, {"n": 7})])
        catch_up(log, "bids", ParquetStore(home / "files"), kept="files")
    ran = shown(command, "ALL_bids", "--pipeline", str(tmp_path / "bids"))
    assert ran.lines == ["n", "7"]
    assert ran.err.strip() == f"Its files are in {home}/files/current/all_bids."


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
        ("view_outside", ["view", "spend", "--pipeline", ".."]),
        ("init_again", ["init", "."]),
        ("run_no_pipeline", ["run", "nowhere"]),
        ("run_conf", ["run", ".", "--conf", "spark.x"]),
        ("verify_not_run", ["verify"]),
        ("explain_unknown", ["explain", "spent"]),
        ("explain_outside", ["explain", "--pipeline", ".."]),
        ("run_outside", ["run", ".."]),
    ],
)
def test_what_cannot_be_done_is_refused(command: Penstock, golden: str, arguments: list[str]) -> None:
    refused(command, golden, *arguments)


def test_a_pipeline_that_has_not_run_yet_says_so(command: Penstock) -> None:
    command.run("init", command.folder / "shop")
    refused(command, "view_not_run", "view", "spend_by_city", "--pipeline", str(command.folder / "shop"))


def test_a_store_that_is_being_made_is_not_one_of_something_else(command: Penstock) -> None:
    command.run("init", command.folder / "shop")
    (command.folder / "shop/.penstock/views.sqlite").touch()
    refused(command, "view_not_run", "view", "spend_by_city", "--pipeline", str(command.folder / "shop"))


@pytest.mark.usefixtures("pipeline")
def test_a_view_that_was_declared_after_the_last_run_says_so(command: Penstock) -> None:
    Path("pipeline.sql").write_text(SQL + "CREATE VIEW more AS SELECT name FROM people;")
    refused(command, "view_new", "view", "more")


@pytest.mark.usefixtures("pipeline")
def test_a_store_that_was_taken_away_is_no_loss(command: Penstock) -> None:
    before = shown(command, "spend", "--order", "city").out
    Path(".penstock/views.sqlite").unlink()
    assert shown(command, "spend", "--order", "city").out == before


@pytest.mark.usefixtures("pipeline")
def test_changes_of_another_log_are_not_followed(command: Penstock, tmp_path: Path) -> None:
    with Log.open(tmp_path / "other") as log:
        Shop(log, views=VIEWS).announce()
    ran = command.run("view", "spend", "--follow", "--log", tmp_path / "other")
    assert (ran.code, ran.out) == (1, "")
    assert ran.err.startswith('the store is not one of pipeline "shop" in this log\n')
    assert "PENSTOCK_LOG" in ran.err


@pytest.mark.usefixtures("pipeline")
def test_the_environment_names_the_log_of_a_pipeline_too(
    command: Penstock, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    Path(".penstock/lineages/1").mkdir(parents=True)
    monkeypatch.setenv("PENSTOCK_LOG", str(tmp_path / "nowhere"))
    for arguments in (["verify"], ["view", "names", "--follow"]):
        ran = command.run(*arguments)
        assert (ran.code, ran.err.splitlines()[0]) == (1, f'there is no log at "{tmp_path / "nowhere"}"'), arguments


@pytest.mark.usefixtures("pipeline")
def test_followed_changes_are_a_table_with_signs() -> None:
    with following() as follow:
        assert follow.stdout is not None
        assert follow.stdout.readline() == "   city  orders  spend\n"
        rows = [follow.stdout.readline() for _ in range(3)]
        assert rows == ["+  NULL  1       1.00\n", "+  Bern  3       9.50\n", "+  Zug   2       20.00\n"]
        follow.send_signal(signal.SIGINT)
        assert follow.wait(timeout=20) == 0


def following(*arguments: str) -> subprocess.Popen[str]:
    penstock = [sys.executable, "-c", "from penstock.cli import main; main()", "view", "spend", "--follow"]
    return subprocess.Popen([*penstock, *arguments], stdout=subprocess.PIPE, text=True)


def test_following_shows_all_rows_and_then_every_change(pipeline: Shop) -> None:
    with following("--format", "json") as follow:
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


def test_settings_of_spark_are_pairs() -> None:
    assert settings(["spark.a=1", "spark.b=x=y"]) == {"spark.a": "1", "spark.b": "x=y"}
    with pytest.raises(CommandError, match="sets nothing"):
        settings(["spark.a"])


def test_progress_is_one_line() -> None:
    done = Progress(7, 3, frames=31, records=12_480, seconds=0.5, lag=1, changes={"total": 1, "spend": 214})
    assert progress_text(done) == (
        "batch 7: 12,480 records in 31 frames, 24,960/s; changes: spend 214, total 1; lag: 1 frame"
    )
    assert progress_text(Progress(8, 1, 1, 1, 0.5, 0, letters=2)) == (
        "batch 8: 1 record in 1 frame, 2/s; changes: none; dead letters: 2; lag: 0 frames"
    )
    assert progress_text(Progress(9, 1, 1, 1, 0.5, 0, late={"b": 2, "a": 1000})) == (
        "batch 9: 1 record in 1 frame, 2/s; changes: none; late: a 1,000, b 2; lag: 0 frames"
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
    assert list(verdict_lines(Verdict("spend", ("city", "n"), 1, at, Difference((), ()), settled=2))) == [
        "spend: equal, 1 row, up to frame 5; corrections came too late for 2 rows"
    ]
    assert list(verdict_lines(Verdict("gone"))) == ["gone: is not kept, nothing to compare"]
