"""`penstock demo`: an answer changes, the demo ends by itself, and nothing is left."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

DEMO = [sys.executable, "-c", "from penstock.cli import main; main()", "demo"]


def answers(text: str) -> list[dict[str, str]]:
    """The answer after each step: the spend by city, without the rows that left."""
    steps = re.split(r"^\d  ", text, flags=re.MULTILINE)[1:]
    rows = r"^   [+ ]  (\w+) +\d+ +([\d.]+)$"
    return [dict(re.findall(rows, step, flags=re.MULTILINE)) for step in steps]


def children(marker: str) -> list[str]:
    """The command lines of all processes whose environment has the marker."""
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        try:
            if marker.encode() in (process / "environ").read_bytes():
                found.append((process / "cmdline").read_text())
        except OSError:
            continue
    return found


@pytest.mark.spark
def test_the_demo_shows_an_answer_that_changes_and_leaves_nothing_behind(tmp_path: Path) -> None:
    marker = f"PENSTOCK_DEMO_TEST={os.getpid()}"
    name, _, value = marker.partition("=")
    surroundings = os.environ | {name: value, "TMPDIR": str(tmp_path)}
    done = subprocess.run(DEMO, env=surroundings, capture_output=True, text=True, timeout=280, check=False)
    assert done.returncode == 0, done.stderr
    assert answers(done.stdout) == [
        {"Oslo": "30.00", "Rome": "20.00"},
        {"Oslo": "35.00", "Rome": "40.00"},
        {"Rome": "75.00"},
        {"Lima": "72.50", "Rome": "42.50"},
        {"Lima": "72.50", "Rome": "35.00"},
        {"Oslo": "35.00", "Rome": "40.00"},
    ]
    assert children(marker) == []
    assert list(tmp_path.iterdir()) == []
