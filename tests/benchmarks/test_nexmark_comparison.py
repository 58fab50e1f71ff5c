"""A long run of Nexmark: failures are noted, figures kept, what is missing is known; and the README's words."""

import json
from pathlib import Path

import pytest

from benchmarks._report import RESULTS
from benchmarks.nexmark import summary
from benchmarks.nexmark.__main__ import EVENTS, given, main
from benchmarks.nexmark.comparison import Found, Job, compare, jobs, missing
from benchmarks.nexmark.flink import client
from benchmarks.nexmark.place import Figures, RunFailed
from benchmarks.nexmark.queries import QUERIES

BOTH = ("penstock", "flink_durable")
MACHINE = {"cores": 2, "pyspark": "4", "flink": "2", "java": "17"}


def figures(rate: float) -> Figures:
    return {"events_per_second": rate, "seconds": 1e6 / rate}


def test_a_failure_is_noted_and_the_run_goes_on() -> None:
    def measure(system: str, query: str, sink: str) -> Figures:
        if (system, query) == ("flink_durable", "q0"):
            raise RunFailed("Flink failed at q0", detail="Java heap space")
        return figures(1000)

    found: Found = {}
    kept: list[str] = []
    wrong = {("q1", "penstock"): "wrong answer: 1 row is missing"}
    compare(jobs(["q0", "q1"], BOTH), found, measure, wrong, lambda: kept.append(json.dumps(found)))
    assert found["q0"]["flink_durable"] == {"failed": "Flink failed at q0 detail: Java heap space"}
    assert found["q1"]["penstock"] == found["q1 durably"]["penstock"] == {"failed": "wrong answer: 1 row is missing"}
    assert found["q1"]["flink_durable"] == found["q1 durably"]["flink_durable"] == figures(1000)
    assert len(set(kept)) == 8


def test_what_is_missing_or_has_failed_is_measured_again() -> None:
    found: Found = {
        "read": {"penstock": figures(1)},
        "q6": {"penstock": {"failed": "?"}, "flink_durable": {"reason": ""}},
    }
    assert missing(jobs(["q6"], BOTH), found) == [
        Job("read", "nothing", "flink_durable"),
        Job("q6", "nothing", "penstock"),
    ]


def test_only_a_run_with_everything_is_for_the_record(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(client, "PYTHON", tmp_path)  # as if Flink were there
    assert given([]).whole and given(["--events", str(EVENTS), "--resume"]).file.name == "nexmark-partial.json"
    looks = ["--events=200000"], ["--queries=q3"], ["--systems=penstock"], ["--batch=50000"], ["--unchecked"]
    assert {given(look).file.name for look in looks} == {"nexmark-quick.json"}


@pytest.mark.parametrize(("option", "said"), [("--queries=q3,q99", "there is no q99"), ("--systems=storm", "no storm")])
def test_what_is_not_there_is_refused_at_once(capsys: pytest.CaptureFixture[str], option: str, said: str) -> None:
    assert main([option]) == 2
    assert said in capsys.readouterr().err


def test_a_missing_flink_is_told_before_anything_is_measured(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(client, "PYTHON", tmp_path / "python")
    assert main([f"--results={tmp_path}"]) == 2
    assert "make flink, or take --systems penstock" in capsys.readouterr().err


def test_figures_of_other_events_are_not_taken_up(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    summary.write(summary.record_of(MACHINE, 5, [], {}), tmp_path / "nexmark-quick.json")
    assert main(["--systems=penstock", "--events=7", "--resume", f"--results={tmp_path}"]) == 2
    assert "nexmark-quick.json is of another run" in capsys.readouterr().err


def test_the_record_names_what_is_below_flink_and_what_has_failed() -> None:
    found: Found = {
        "read": {"penstock": figures(9e5), "flink_durable": figures(2e5)},
        "q0": {"penstock": figures(4e5), "flink_durable": figures(1e5), "flink_fastest": figures(8e5)},
        "q3": {"penstock": figures(1e5), "flink_durable": figures(1e5), "flink_fastest": {"failed": "no memory"}},
    }
    record = summary.record_of(MACHINE, 1_000_000, [*QUERIES], found)
    assert (record["geometric_mean_against_flink_durable"], record["below_flink_durable"]) == (2.0, {})
    assert record["below_flink_fastest"] == {"q0": 0.5}
    said = summary.sentences(record)
    assert "**2.00 times Flink durable**" in said and "no query is below it" in said and "below it: q0 0.50" in said
    assert "takes Flink durable 5.0 s; its whole q0, which needs fewer columns, takes 10.0 s" in said
    assert "Failed: q3 on Flink fastest (no memory)." in said and "flink 2, java 17" in said


def test_the_readme_says_what_the_record_says() -> None:
    record = json.loads((RESULTS / "nexmark.json").read_text())
    before, after = summary.MARKS
    assert before + summary.block(record) + after in summary.README.read_text()


def test_a_new_record_takes_the_place_of_the_old_words(tmp_path: Path) -> None:
    readme = tmp_path / "README.md"
    readme.write_text(f"above\n{summary.MARKS[0]}old\n{summary.MARKS[1]}\nbelow\n")
    record = summary.record_of(MACHINE, 10, [], {"q0": {"penstock": figures(5)}})
    summary.put_into(readme, record)
    text = readme.read_text()
    assert text.startswith("above\n") and text.endswith("\nbelow\n") and "old" not in text and "| q0 | 5 |" in text
