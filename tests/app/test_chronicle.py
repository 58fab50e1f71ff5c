"""What a run writes down of its batches: when, and what is in it."""

from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from time import perf_counter
from typing import Any

import pytest

from penstock.app import chronicle
from penstock.app.chronicle import Chronicle, StoreClock
from penstock.app.counting import Counts
from penstock.engine.asked import Told, told
from penstock.engine.batches import Committed
from penstock.engine.stages import Stage
from penstock.log import Log
from penstock.serve.diary import Diary, batches_in, run_in

AT = datetime(2024, 1, 31, 12, tzinfo=UTC)


@pytest.fixture
def log(tmp_path: Path) -> Iterator[Log]:
    with Log.open(tmp_path / "log") as opened:
        for topic in ("orders", "customers"):
            opened.create_topic(topic, "id BIGINT")
        yield opened


def written(log: Log, stored: StoreClock | None = None) -> Chronicle:
    marks = {"orders": 1_704_067_200_000_000}
    counts = Counts(log, ["orders", "customers"])
    topics = {"orders": "orders", "people": "customers"}
    return Chronicle(Diary(folder(log)), counts, topics, lambda _: marks, stored)


def folder(log: Log) -> Path:
    return Path(log.folder).parent


def done(batch: int, start: int, end: int, **more: Any) -> Committed:
    made = Committed(batch, start, end, {"spend": 2}, timedelta(seconds=3), repeated=False)
    return replace(made, frame=end, at=AT, computing=2.0, appending=1.0, framed=perf_counter(), **more)


def test_a_batch_is_written_with_what_all_say_of_it(log: Log) -> None:
    start = log.mark().next_frame
    log.append_all({"orders": [{"id": 1}, {"id": 2}], "customers": [{"id": 1}]})
    log.append("orders", [{"id": 3}])
    end = log.mark().next_frame
    stored = StoreClock()
    chronicle = written(log, stored)
    one = done(7, start, end, late={"spend": 1, "total": 0}, letters=4, open={"hourly": 2})
    chronicle.add(one)
    stored.at[7] = one.framed + 0.5
    chronicle.write(lambda _: [Told(7, 4.5, 1.0, 0.25, state=(100, 20))])
    assert batches_in(folder(log), 10) == [
        {
            "batch": 7,
            "frame": end,
            "until": end,
            "at": "2024-01-31T12:00:00+00:00",
            "seconds": 4.5,
            "phases": {"planning": 1.0, "computing": 2.0, "appending": 1.0, "committing": 0.25, "storing": 0.5},
            "records": {"orders": 3, "people": 1},
            "changes": {"spend": 2},
            "late": {"spend": 1},
            "letters": 4,
            "watermarks": {"orders": "2024-01-01T00:00:00+00:00"},
            "state_bytes": 120,
        }
    ]


def test_a_batch_waits_for_spark_and_the_store_but_not_for_ever(log: Log, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(chronicle, "EVERY_SECONDS", 0.0)
    stored = StoreClock()
    made = written(log, stored)
    old = chronicle.PATIENCE_SECONDS + 1
    made.add(done(0, 0, 0))
    made.write(lambda _: [])
    stored(Stage.FRAMED, 0)
    made.write(lambda _: [Told(0, 1.0, 0.0, 0.0)])
    assert batches_in(folder(log), 10) == []
    stored(Stage.STORED, 0)
    made.add(replace(done(1, 0, 0), framed=perf_counter() - old))
    made.add(done(2, 0, 0))
    made.write(lambda _: [])
    assert [each["batch"] for each in batches_in(folder(log), 10)] == [0, 1]
    made.write(lambda _: [], now=True)
    assert [each["phases"].keys() for each in batches_in(folder(log), 10)] == [
        {"planning", "computing", "appending", "committing", "storing"},
        {"computing", "appending"},
        {"computing", "appending"},
    ]


def test_spark_is_asked_for_what_it_has_not_told_yet(log: Log, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(chronicle, "EVERY_SECONDS", 0.0)
    asked: list[int] = []

    def ask(since: int) -> list[Told]:
        asked.append(since)
        return [Told(batch, 1.0, 0.0, 0.0) for batch in (4, 3) if batch > since]

    made = written(log)
    for batch in (3, 4, 5):
        made.add(done(batch, 0, 0))
        made.write(ask)
    assert asked == [-1, 4, 4]


def test_what_the_run_has_done_is_summed_up(log: Log) -> None:
    start = log.mark().next_frame
    log.append("orders", [{"id": 1}, {"id": 2}])
    made = written(log)
    for batch in range(3):
        made.add(done(batch, start, start + 1, late={"spend": 2}, letters=1, open={"hourly": batch}))
    made.write(lambda _: [Told(1, 3.0, 0.0, 0.0, state=(5, 6))], now=True)
    found = run_in(folder(log))
    assert found is not None and found.pop("started_at") <= datetime.now(UTC).isoformat()
    assert found == {
        "format": 1,
        "batches": 3,
        "seconds": 9.0,
        "frames": 3,
        "letters": 3,
        "phases": {"computing": 6.0, "appending": 3.0, "planning": 0.0, "committing": 0.0},
        "records": {"orders": 6, "people": 0},
        "changes": {"spend": 6},
        "late": {"spend": 6},
        "watermarks": {"orders": "2024-01-01T00:00:00+00:00"},
        "open": {"hourly": 2},
        "state": {"1": 5, "2": 6},
    }


def test_of_what_spark_says_only_batches_count() -> None:
    took = "latestOffset=3, walCommit=5, getBatch=1, queryPlanning=11, addBatch=40, commitOffsets=7"
    assert told(2, f"{{triggerExecution=70, {took}}}") == Told(2, 0.07, 0.02, 0.007)
    assert told(3, "{latestOffset=3, triggerExecution=3}") is None
