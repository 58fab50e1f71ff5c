"""The small run of Nexmark: the benchmark's own command over 200,000 events, its results in a folder of the test.

Penstock alone: what Flink does is in test_nexmark_flink.py, where it is installed.
"""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from benchmarks._report import RESULTS
from benchmarks.nexmark import summary

EVENTS, BATCH = 200_000, 50_000
BIDS = EVENTS * 46 // 50

pytestmark = [pytest.mark.spark, pytest.mark.timeout(900)]


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("results")


def ran(results: Path, *more: str) -> str:
    asked = [f"--events={EVENTS}", f"--batch={BATCH}", "--queries=q5,q10", "--systems=penstock", f"--results={results}"]
    command = [sys.executable, "-m", "benchmarks.nexmark", *asked, *more]
    return subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True).stdout


@pytest.fixture(scope="module")
def figures(results: Path) -> dict[str, Any]:
    before = [path.read_bytes() for path in (summary.README, RESULTS / "nexmark.json")]
    ran(results, "--unchecked")
    assert [path.name for path in results.iterdir()] == ["nexmark-quick.json"]
    assert [path.read_bytes() for path in (summary.README, RESULTS / "nexmark.json")] == before
    record = json.loads((results / "nexmark-quick.json").read_text())
    assert record["events"] == EVENTS and record["failed"] == {} and record["machine"]["java"]
    return {query: each["penstock"] for query, each in record["figures"].items()}


def test_every_measurement_has_read_all_events_in_several_batches(figures: dict[str, Any]) -> None:
    assert list(figures) == ["read", "q5", "q10", "q5 durably", "q10 durably"]
    for each in figures.values():
        assert each["events"] == EVENTS and each["batches"] == EVENTS // BATCH
        assert each["events_per_second"] == pytest.approx(EVENTS / each["seconds"])
        assert each["cpu_seconds"] > 0 and each["peak_memory_bytes"] > 100_000_000
    assert figures["q5"]["state_bytes"] > 0


def test_files_have_every_row_once_and_were_written_while_batches_came(figures: dict[str, Any]) -> None:
    assert figures["q10 durably"]["rows_out"] == BIDS
    assert figures["q10 durably"]["times_applied"] >= 1
    assert figures["q5 durably"]["rows_out"] > 0


def test_a_run_that_is_taken_up_measures_what_is_missing(figures: dict[str, Any], results: Path) -> None:
    file = results / "nexmark-quick.json"
    assert ran(results, "--unchecked", "--resume").startswith("0 measurements\n")
    record = json.loads(file.read_text())
    record["figures"]["q10"]["penstock"] = {"failed": "cut off"}
    file.write_text(json.dumps(record))
    assert ran(results, "--unchecked", "--resume").startswith("1 measurements\n")
    again = json.loads(file.read_text())["figures"]
    assert again["q10"]["penstock"]["events"] == EVENTS
    assert again["q5"]["penstock"] == figures["q5"]
