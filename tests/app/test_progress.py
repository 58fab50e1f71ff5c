"""How far a run has come: gathered from its batches and the log."""

from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from pathlib import Path

import pytest

from penstock.app.counting import Counts
from penstock.app.progress import Alert, Meter, Progress
from penstock.cli.tellers import progress_text
from penstock.engine.batches import Committed
from penstock.log import Log


@pytest.fixture
def log(tmp_path: Path) -> Iterator[Log]:
    with Log.open(tmp_path) as opened:
        yield opened


def done(batch: int, start: int, end: int, **changes: int) -> Committed:
    return Committed(batch, start, end, changes, timedelta(seconds=2), repeated=False)


def test_batches_are_told_together_with_what_is_left_to_read(tmp_path: Path) -> None:
    told = list[Progress]()
    with Log.open(tmp_path) as log:
        for topic in ("orders", "others"):
            log.create_topic(topic, "id BIGINT")
        start = log.mark().next_frame
        for topic in ("orders", "others", "orders", "others", "orders", "others"):
            log.append(topic, [{"id": 1}, {"id": 2}])
        meter = Meter(Counts(log, ["orders"]), told.append)
        meter.add(done(4, start, start + 1, spend=1))
        meter.add(done(5, start + 1, start + 3, spend=2, total=1))
        meter.tell()
    assert told == [Progress(5, 2, frames=2, records=4, seconds=4.0, lag=1, changes={"spend": 3, "total": 1})]


def test_progress_is_told_at_most_once_a_second_unless_it_is_the_end(tmp_path: Path) -> None:
    told = list[Progress]()
    with Log.open(tmp_path) as log:
        meter = Meter(Counts(log, []), told.append)
        for batch in range(3):
            meter.add(done(batch, 0, 0))
            meter.tell()
        meter.tell(now=True)
    assert [each.batch for each in told] == [0, 2]


def test_dead_letters_are_counted_over_all_batches(tmp_path: Path) -> None:
    told = list[Progress]()
    with Log.open(tmp_path) as log:
        meter = Meter(Counts(log, []), told.append)
        for letters in (2, 0, 3):
            meter.add(replace(done(letters, 0, 0), letters=letters))
        meter.tell()
    assert [each.letters for each in told] == [5]


def test_too_many_late_rows_are_told(log: Log) -> None:
    for topic, count in {"events": 50, "others": 5_000}.items():
        log.create_topic(topic, "n BIGINT")
        log.append(topic, [{"n": number} for number in range(count)])
    told: list[Progress] = []
    most = {"strict": Decimal("1.5"), "lax": Decimal(2), "other": Decimal(0)}
    alerts = {view: Alert(share, frozenset({"events"})) for view, share in most.items()}
    meter = Meter(Counts(log, ["events", "others"]), told.append, alerts=alerts)
    meter.add(Committed(0, 0, 99, {}, timedelta(0), repeated=False, late={"strict": 1, "lax": 1}))
    meter.tell(now=True)
    assert told[0].alerts == {"strict": 2.0}
    assert "ALERT, too many late: strict 2 %" in progress_text(told[0])


def test_watermarks_and_open_windows_are_told(log: Log) -> None:
    log.create_topic("events", "n BIGINT")
    told: list[Progress] = []
    micros = 1_704_067_200_000_000
    meter = Meter(
        Counts(log, ["events"]),
        told.append,
        lambda frame: {"events": micros + frame, "past": -(2**62), "done": 2**62},
        of_views=lambda streams: {"hourly": streams["events"] - 5_000_000},
    )
    meter.add(Committed(0, 0, 7, {}, timedelta(0), repeated=False, open={"hourly": 3}))
    meter.tell(now=True)
    assert told[0].watermarks["events"] == datetime(2024, 1, 1, 0, 0, 0, 7, UTC)
    text = progress_text(told[0])
    assert "events 2024-01-01 00:00:00 (" in text and " ago)" in text
    assert "done the end" in text
    assert "; watermark of views: hourly 2023-12-31 23:59:55 (" in text
    assert text.endswith("; open windows: hourly 3")
