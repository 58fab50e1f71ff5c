"""What goes to Flink and comes back from it, without Flink: files, changes, checkpoints, answers."""

import json
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pytest

from benchmarks.nexmark.events import Shape, events
from benchmarks.nexmark.flink import agreement, client, files
from benchmarks.nexmark.flink.changes import completed, folded
from benchmarks.nexmark.flink.checkpoints import Checkpoints, checkpoints
from benchmarks.nexmark.flink.files import Format, write_files
from penstock.errors import PenstockError

FORMS: list[Format] = ["csv", "json"]


def lines(folder: Path, kind: str) -> list[list[str]]:
    return [path.read_text().splitlines() for path in sorted((folder / kind).iterdir())]


@pytest.mark.parametrize("form", FORMS)
def test_files_do_not_depend_on_how_the_events_were_cut(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, form: Format
) -> None:
    write_files(tmp_path / "whole", 5_000, Shape(), form=form)
    monkeypatch.setattr(files, "CHUNK", 777)
    write_files(tmp_path / "cut", 5_000, Shape(), form=form)
    for path in (each for each in (tmp_path / "whole").rglob("*") if each.is_file()):
        assert path.read_bytes() == (tmp_path / "cut" / path.relative_to(tmp_path / "whole")).read_bytes()


def test_bids_are_dealt_in_turn(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(files, "files_of", lambda: {"person": 1, "auction": 1, "bid": 2})
    write_files(tmp_path, 1_000, Shape())
    bids, hands = events(0, 1_000, Shape())["bid"], lines(tmp_path, "bid")
    micros = [int(time.timestamp() * 1_000_000 + 0.5) for time in bids["at"].to_pylist()]
    assert [[int(line.rpartition(",")[2]) for line in hand] for hand in hands] == [micros[::2], micros[1::2]]


def test_both_forms_hold_the_events(tmp_path: Path) -> None:
    for form in FORMS:
        write_files(tmp_path / form, 1_000, Shape(), form=form)
    for kind, table in events(0, 1_000, Shape()).items():
        objects = [json.loads(line) for hand in lines(tmp_path / "json", kind) for line in hand]
        cells = [line.split(",") for hand in lines(tmp_path / "csv", kind) for line in hand]
        assert [[str(value) for value in each.values()] for each in objects] == cells
        assert len(objects) == len(table)


def test_progress_is_told_up_to_the_last_event(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(files, "CHUNK", 400)
    told: list[int] = []
    write_files(tmp_path / "files", 1_000, Shape(), told=told.append)
    assert told == [400, 800, 1_000]


def change(op: str, **row: int) -> str:
    return json.dumps({"before": row if op == "d" else None, "after": row if op == "c" else None, "op": op})


def test_rows_that_went_are_not_left_in_whichever_order_changes_are_read() -> None:
    story = [change("c", n=1), change("d", n=1), change("c", n=2), change("c", n=2)]
    assert folded(story) == folded(story[::-1]) == ['{"n": 2}\n'] * 2


def test_columns_that_only_folders_name_are_in_the_rows(tmp_path: Path) -> None:
    file = tmp_path / "day=2024-01-01" / "minute=00%3A07" / "part-0"
    file.parent.mkdir(parents=True)
    file.write_text('{"auction": 1}\n')
    assert list(completed(file)) == ['{"auction": 1, "day": "2024-01-01", "minute": "00:07"}\n']


def test_a_row_that_never_came_cannot_go() -> None:
    with pytest.raises(ValueError, match="had not come"):
        folded([change("d", n=1)])


LOG = """1000 Triggering checkpoint 1 (type=CheckpointType) @ 1000 for job aa.
1100 Completed checkpoint 1 for job aa (70 bytes, checkpointDuration=90 ms, finalizationTime=1 ms).
1200 Triggering checkpoint 2 (type=CheckpointType) @ 1200 for job aa.
1250 Decline checkpoint 2 by task 0_1 of job aa at localhost.
1260 Triggering Checkpoint 2 for job aa failed due to task is closing.
1300 Completed checkpoint 1 for job bb (9000 bytes, checkpointDuration=90 ms, finalizationTime=1 ms).
3250 Triggering checkpoint 3 (type=CheckpointType) @ 3250 for job aa.
3300 Completed checkpoint 3 for job aa (75 bytes, checkpointDuration=40 ms, finalizationTime=1 ms).
"""


def test_the_wait_for_a_last_checkpoint_is_told_apart(tmp_path: Path) -> None:
    (tmp_path / "log").write_text(LOG)
    assert checkpoints(tmp_path / "log", "aa") == Checkpoints(2, 75, 2.0)
    assert checkpoints(tmp_path / "log", "cc") == Checkpoints(0, None, 0.0)


def test_answers_agree_whatever_form_numbers_and_times_have() -> None:
    at = datetime(2024, 1, 1, 0, 0, 0, 400, UTC)
    ours = pa.table({"auction": [1], "price": [Decimal("0.908")], "at": [at]})
    assert agreement.verdict("q1", ours, [{"auction": 1, "price": 0.908, "at": "2024-01-01 00:00:00.0004"}])


def test_an_answer_that_differs_is_an_error() -> None:
    ours = pa.table({"auction": [1, 1]})
    with pytest.raises(AssertionError, match="of 2 rows Flink misses 1 and has 0 others"):
        agreement.verdict("q0", ours, [{"auction": 1}])


def test_bids_with_one_price_may_come_in_any_order() -> None:
    ours = pa.table({"auction": [1, 1], "bidder": [3, 4], "price": [7, 7], "place": [1, 2]})
    theirs = [{"auction": 1, "bidder": 4, "price": 7, "place": 1}, {"auction": 1, "bidder": 3, "price": 7, "place": 2}]
    assert agreement.verdict("q19", ours, theirs).startswith("the same 2 rows")


def test_a_missing_flink_says_how_to_get_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(client, "PYTHON", tmp_path / "python")
    with pytest.raises(PenstockError) as refused:
        client.answer("q0", tmp_path)
    assert str(refused.value).splitlines() == [
        "Flink is not installed",
        f"  detail: There is no {tmp_path / 'python'}.",
        "  hint:   make flink",
    ]


def test_a_query_that_flink_does_not_run_has_its_reason(tmp_path: Path) -> None:
    assert client.measure("q6", tmp_path, "durable", "blackhole", 1)["reason"]
