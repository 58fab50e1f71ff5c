"""A pipeline that cannot be run: the command says why, and nothing has happened."""

import subprocess
import sys
from pathlib import Path

import pytest

from tests.texts import assert_golden

RUN = [sys.executable, "-c", "from penstock.cli import main; main()", "run"]
PIPELINE = """\
CREATE STREAM orders (id BIGINT, customer BIGINT);
CREATE VIEW chosen AS
  SELECT id FROM orders
  WHERE rand() < 0.5;
"""


@pytest.mark.spark
def test_a_refused_pipeline_leaves_nothing_behind(tmp_path: Path) -> None:
    (tmp_path / "pipeline.sql").write_text(PIPELINE)
    done = subprocess.run(RUN, cwd=tmp_path, capture_output=True, text=True, timeout=250, check=False)
    assert (done.returncode, done.stdout) == (1, "")
    assert_golden("cli/run_refused", done.stderr.rstrip())
    assert [path.name for path in tmp_path.iterdir()] == ["pipeline.sql"]
