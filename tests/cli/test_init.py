"""`penstock init`: a folder gets a pipeline that works, or nothing at all."""

from pathlib import Path

import pytest

from penstock.app.place import log_in
from penstock.log import Log
from penstock.model import load_pipeline
from tests.cli.conftest import Penstock
from tests.texts import assert_golden


@pytest.fixture
def command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Penstock:
    monkeypatch.delenv("PENSTOCK_LOG", raising=False)
    monkeypatch.chdir(tmp_path)
    return Penstock(tmp_path, monkeypatch)


def topics(path: Path) -> dict[str, tuple[str, ...]]:
    """The topics of a log, each with its key."""
    with Log.open(path, create=False) as log:
        return {topic.name: topic.key for topic in log.topics()}


def refused(command: Penstock, golden: str, *arguments: str) -> None:
    """Nothing is done, and the error is the one in golden/cli."""
    before = sorted(command.folder.rglob("*"))
    ran = command.run("init", *arguments)
    assert (ran.code, ran.out) == (1, "")
    assert_golden(f"cli/{golden}", ran.err.strip())
    assert sorted(command.folder.rglob("*")) == before


def test_a_pipeline_is_made_with_a_log_and_how_to_go_on_is_said(command: Penstock) -> None:
    assert_golden("cli/init", command.run("init", "shop").out.strip())
    assert topics(Path("shop/.penstock/log")) == {"orders": (), "customers": ("id",)}
    assert [view.name for view in load_pipeline(Path("shop")).views] == ["spend_by_city"]


def test_an_empty_folder_and_one_of_git_will_do(command: Penstock) -> None:
    Path("shop/.git").mkdir(parents=True)
    assert command.run("init", "shop").code == 0


def test_a_folder_that_holds_something_is_refused(command: Penstock) -> None:
    Path("shop").mkdir()
    for name in ("a.txt", "b.txt", "c.txt", "d.txt"):
        Path("shop", name).touch()
    refused(command, "init_not_empty", "shop")


def test_a_folder_with_a_pipeline_is_refused(command: Penstock) -> None:
    command.run("init", "shop")
    refused(command, "init_twice", "shop")


def test_a_log_is_refused(command: Penstock) -> None:
    Log.open(Path("records")).close()
    refused(command, "init_log", "records")


def test_a_file_is_refused(command: Penstock) -> None:
    Path("shop").touch()
    refused(command, "init_file", "shop")


def test_a_name_that_no_pipeline_can_have_is_refused(command: Penstock) -> None:
    refused(command, "init_name", "my shop")


def test_a_log_that_does_not_fit_is_refused_before_anything_is_made(command: Penstock) -> None:
    with Log.open(Path("records")) as log:
        log.create_topic("orders", "id STRING")
    ran = command.run("init", "shop", "--log", "records")
    assert (ran.code, ran.err.splitlines()[0]) == (1, 'topic "orders" does not fit the declaration of "orders"')
    assert not Path("shop").exists()


@pytest.mark.parametrize("named_by", ["option", "environment"])
def test_a_log_elsewhere_is_written_into_the_pipeline(
    command: Penstock, named_by: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    records = command.folder / "it's a log"
    if named_by == "environment":
        monkeypatch.setenv("PENSTOCK_LOG", str(records))
    option = ["--log", str(records)] if named_by == "option" else []
    assert command.run("init", "shop", *option).code == 0
    assert topics(records) == {"orders": (), "customers": ("id",)}
    assert log_in(Path("shop")) == records
    assert not Path("shop/.penstock/log").exists()


def test_in_a_pipelines_folder_its_log_is_meant(command: Penstock, monkeypatch: pytest.MonkeyPatch) -> None:
    command.run("init", "shop")
    monkeypatch.chdir("shop")
    appended = command.run("log", "append", "customers", given='{"id": 1, "city": "Rome"}')
    assert (appended.code, appended.err) == (0, '1 record appended to "customers"\n')
    assert command.run("log", "read", "customers").lines == ['{"id": 1, "name": null, "city": "Rome"}']
