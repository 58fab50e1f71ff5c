"""`penstock demo`: views change, batch agrees, the demo ends by itself, and nothing is left."""

import os
import pty
import re
import signal
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from penstock.cli.demo import changes
from tests.cli.test_processes import shown
from tests.texts import assert_golden

DEMO = [sys.executable, "-c", "from penstock.cli import main; main()", "demo"]
ROOT = Path(__file__).parents[1]
PROMPT_SECONDS = 20
TESTS_ONLY = ("SPARK_SUBMIT_OPTS", "SPARK_LOCAL_DIRS")


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


class Surroundings:
    """A folder for everything temporary, and a mark by which the demo's processes are known."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.marker = f"PENSTOCK_DEMO_TEST={os.getpid()}-{folder.name}"

    @property
    def environment(self) -> dict[str, str]:
        """As users have it: nothing that only tests set."""
        name, _, value = self.marker.partition("=")
        kept = {key: text for key, text in os.environ.items() if key not in TESTS_ONLY}
        return kept | {name: value, "TMPDIR": str(self.folder), "COLUMNS": "80"}

    def assert_clean(self) -> None:
        assert children(self.marker) == []
        assert list(self.folder.iterdir()) == []


@pytest.fixture
def surroundings(tmp_path: Path) -> Surroundings:
    return Surroundings(tmp_path)


@pytest.mark.spark
def test_the_demo_shows_views_that_change_and_leaves_nothing_behind(surroundings: Surroundings) -> None:
    done = subprocess.run(DEMO, env=surroundings.environment, capture_output=True, text=True, timeout=600, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    # How many batches it took to read the records is not the same every time.
    assert_golden("demo", re.sub(r"(?<=up to frame )\d+", "N", done.stdout).rstrip())
    surroundings.assert_clean()


@pytest.mark.spark
def test_a_demo_that_is_interrupted_ends_promptly_and_leaves_nothing_behind(surroundings: Surroundings) -> None:
    terminal, slave = pty.openpty()
    with (
        ThreadPoolExecutor() as watching,
        subprocess.Popen(DEMO, env=surroundings.environment, text=True, stdout=subprocess.PIPE, stderr=slave) as demo,
    ):
        os.close(slave)
        said = watching.submit(shown, terminal)  # a terminal that nobody reads holds up who writes to it
        assert demo.stdout is not None
        while not demo.stdout.readline().startswith("1  "):  # then Spark has been started
            assert demo.poll() is None
        demo.send_signal(signal.SIGINT)
        asked_at = time.monotonic()
        demo.communicate(timeout=120)
        took = time.monotonic() - asked_at
    assert (demo.returncode, "Traceback" in said.result()) == (130, False)
    assert 0 <= said.result().find("starting Spark") < said.result().find("stopping")
    assert took < PROMPT_SECONDS
    surroundings.assert_clean()


@pytest.mark.parametrize(("asked", "command"), [([], "penstock demo"), (["KEEP=1"], "penstock demo --keep")])
def test_make_keeps_the_demo_open_only_where_that_is_asked_for(asked: list[str], command: str) -> None:
    outside = {name: text for name, text in os.environ.items() if not name.startswith("MAKE") and name != "KEEP"}
    said = subprocess.check_output(["make", "-n", "demo", *asked], cwd=ROOT, env=outside, text=True)
    assert said.rstrip().endswith(f"/{command}")


def test_changed_rows_are_signed_and_stand_by_their_key() -> None:
    before = [{"city": "Oslo", "spend": 3}, {"city": "Rome", "spend": 2}, {"city": "Bern", "spend": 1}]
    after = [{"city": "Rome", "spend": 5}, {"city": "Bern", "spend": 1}, {"city": "Lima", "spend": 4}]
    assert list(changes(before, after, key=["city"])) == [
        (" ", "Bern", "1"),
        ("+", "Lima", "4"),
        ("-", "Oslo", "3"),
        ("-", "Rome", "2"),
        ("+", "Rome", "5"),
    ]
