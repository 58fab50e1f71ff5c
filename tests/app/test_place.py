"""Where a pipeline's things lie."""

from pathlib import Path

import pytest

from penstock.app import place_of
from penstock.app.place import log_in
from penstock.errors import EngineError
from penstock.model import pipeline_of

BAG = "CREATE TABLE bag (x BIGINT);"


def test_a_folder_has_everything_in_its_home(tmp_path: Path) -> None:
    place = place_of(tmp_path)
    assert (place.home, place.store) == (tmp_path / ".penstock", tmp_path / ".penstock" / "views.sqlite")
    assert place.log(pipeline_of(BAG)) == tmp_path / ".penstock" / "log"


def test_a_file_named_pipeline_is_the_pipeline_of_its_folder(tmp_path: Path) -> None:
    file = tmp_path / "pipeline.sql"
    file.write_text(BAG)
    assert place_of(file).home == place_of(tmp_path).home


def test_files_side_by_side_share_a_log_and_nothing_else(tmp_path: Path) -> None:
    for name in ("one", "two"):
        (tmp_path / f"{name}.sql").write_text(BAG)
    one, two = place_of(tmp_path / "one.sql"), place_of(tmp_path / "two.sql")
    assert one.home != two.home
    assert one.log(pipeline_of(BAG)) == two.log(pipeline_of(BAG)) == tmp_path / ".penstock" / "log"


def test_the_command_names_the_log_before_the_pipeline_does(tmp_path: Path) -> None:
    pipeline = pipeline_of(BAG, options={"log": "../shared"})
    assert place_of(tmp_path).log(pipeline) == tmp_path / ".." / "shared"
    assert place_of(tmp_path).log(pipeline, Path("elsewhere")) == Path("elsewhere")


def test_a_hint_names_the_path_that_a_command_needs(tmp_path: Path) -> None:
    place = place_of(tmp_path / "my shop")
    with pytest.raises(EngineError) as error, place.hinted():
        raise EngineError("it has changed", hint="Begin anew: penstock reset PIPELINE")
    assert error.value.hint == f"Begin anew: penstock reset '{tmp_path}/my shop'"


def test_a_folder_in_which_nothing_was_run_has_no_log_and_its_files_are_left_alone(tmp_path: Path) -> None:
    (tmp_path / "script.py").write_text("raise SystemExit('this was run')")
    assert log_in(tmp_path) is None


def test_the_log_of_a_folder_is_the_one_that_its_pipeline_names(tmp_path: Path) -> None:
    (tmp_path / ".penstock").mkdir()
    (tmp_path / "pipeline.sql").write_text(f"SET log = '../records'; {BAG}")
    assert log_in(tmp_path) == tmp_path / ".." / "records"


def test_pipelines_side_by_side_have_the_log_that_they_share(tmp_path: Path) -> None:
    for name in ("one", "two"):
        (tmp_path / f"{name}.sql").write_text(BAG)
    (tmp_path / ".penstock" / "log").mkdir(parents=True)
    assert log_in(tmp_path) == tmp_path / ".penstock" / "log"
