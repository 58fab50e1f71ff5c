"""How far a run has come: gathered from its batches and the log."""

from dataclasses import replace
from datetime import timedelta
from pathlib import Path

from penstock.app.progress import Meter, Progress
from penstock.engine.batches import Committed
from penstock.log import Log


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
        meter = Meter(log, ["orders"], told.append)
        meter.add(done(4, start, start + 1, spend=1))
        meter.add(done(5, start + 1, start + 3, spend=2, total=1))
        meter.tell()
    assert told == [Progress(5, 2, frames=2, records=4, seconds=4.0, lag=1, changes={"spend": 3, "total": 1})]


def test_progress_is_told_at_most_once_a_second_unless_it_is_the_end(tmp_path: Path) -> None:
    told = list[Progress]()
    with Log.open(tmp_path) as log:
        meter = Meter(log, [], told.append)
        for batch in range(3):
            meter.add(done(batch, 0, 0))
            meter.tell()
        meter.tell(now=True)
    assert [each.batch for each in told] == [0, 2]


def test_dead_letters_are_counted_over_all_batches(tmp_path: Path) -> None:
    told = list[Progress]()
    with Log.open(tmp_path) as log:
        meter = Meter(log, [], told.append)
        for letters in (2, 0, 3):
            meter.add(replace(done(letters, 0, 0), letters=letters))
        meter.tell()
    assert [each.letters for each in told] == [5]
