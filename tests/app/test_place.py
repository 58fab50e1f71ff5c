"""Where things lie, found without running the pipeline."""

from pathlib import Path

from penstock.app.place import log_in, place_of
from penstock.model import load_pipeline


def test_the_log_of_a_pipeline_that_has_run_is_found_without_running_its_files(tmp_path: Path) -> None:
    (tmp_path / ".penstock" / "log").mkdir(parents=True)
    (tmp_path / "pipeline.py").write_text(f"open({str(tmp_path / 'ran')!r}, 'w')")
    assert log_in(tmp_path) == tmp_path / ".penstock" / "log"
    assert not (tmp_path / "ran").exists()


def test_checkpoints_lie_at_home_or_under_the_pipelines_name_in_a_folder_that_it_names(tmp_path: Path) -> None:
    shop = tmp_path / "shop"
    shop.mkdir()
    for named, found in (("", shop / ".penstock"), ("../shared", shop / "../shared/shop"), ("/mnt", Path("/mnt/shop"))):
        chosen = f"SET checkpoints = '{named}';" if named else ""
        (shop / "pipeline.sql").write_text(f"{chosen} CREATE STREAM orders (id BIGINT);")
        assert place_of(shop).checkpoints(load_pipeline(shop)) == found
