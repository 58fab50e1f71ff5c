"""Where things lie, found without running the pipeline."""

from pathlib import Path

from penstock.app.place import log_in


def test_the_log_of_a_pipeline_that_has_run_is_found_without_running_its_files(tmp_path: Path) -> None:
    (tmp_path / ".penstock" / "log").mkdir(parents=True)
    (tmp_path / "pipeline.py").write_text(f"open({str(tmp_path / 'ran')!r}, 'w')")
    assert log_in(tmp_path) == tmp_path / ".penstock" / "log"
    assert not (tmp_path / "ran").exists()
