"""What benchmarks compute from what they saw, without running them."""

import json
from collections import Counter
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

from benchmarks._batches import records_read
from benchmarks.latency import GOALS, batch_times, planned, shown_at, spans
from benchmarks.streams.data import tables
from benchmarks.streams.jobs import Answer, closed, right_answer
from benchmarks.visibility.producer import produce
from penstock.log import Log


@pytest.mark.parametrize(
    "look", [["--seconds", "5"], ["--quick"], ["--only", "join"], ["--rates", "1000"], ["--trigger", "0 seconds"]]
)
def test_a_look_at_latency_does_not_touch_the_record(look: list[str]) -> None:
    assert planned([]).file == "latency"
    assert planned(look).file == "latency-quick"


def test_latency_has_its_goal_in_the_log_and_in_the_store() -> None:
    assert {"join_10000_p99_ms", "join_10000_store_p99_ms"} <= set(GOALS)


def test_a_frame_shows_with_the_first_batch_that_has_read_beyond_it() -> None:
    seen = np.array([(3, 100), (3, 110), (7, 200), (9, 300)])
    assert shown_at(np.array([0, 2, 3, 6, 7, 8]), seen).tolist() == [100, 100, 200, 200, 300, 300]


def test_a_frame_that_no_batch_has_read_is_an_error() -> None:
    with pytest.raises(IndexError):
        shown_at(np.array([9]), np.array([(3, 100), (9, 300)]))


def test_a_batch_takes_from_its_start_to_the_next_one() -> None:
    stages = ("PLANNED", "STATE_COMMITTED", "FRAMED", "STORED", "COMMITTING")
    notes = [
        (stage, batch, 10_000_000 * batch + 1_000_000 * at) for batch in (1, 2, 3) for at, stage in enumerate(stages)
    ]
    found = batch_times({"stages": notes, "spark": [{"addBatch": 3}]}, since=0)
    assert (found["batch_ms"], found["batch_computing_ms"], found["batch_between_ms"]) == (10.0, 1.0, 6.0)
    assert found["spark_addBatch_ms"] == 3.0


def test_a_span_to_a_stage_that_was_not_reached_is_left_out() -> None:
    assert list(spans({1: 0, 2: 5_000_000}, {1: 3_000_000})) == [3.0]


def test_the_producer_tells_of_every_append(tmp_path: Path) -> None:
    with Log.open(tmp_path / "log") as log:
        log.create_topic("events", "k BIGINT, v BIGINT, sent BIGINT")
        frame, count, due, handed = produce(log, "events", rate=1000, seconds=0.1).T
        assert count.sum() == 100 == log.ends("events")[0]
        assert [header.frame for header in log.frames() if header.blocks] == frame.tolist()
        assert (due <= handed).all() and (np.diff(handed) > 0).all()
        sent = [time for batch in log.batches("events") for time in batch["sent"].to_pylist()]
        assert Counter(sent) == dict(zip(handed.tolist(), count.tolist(), strict=True))


def test_the_rows_of_a_batch_are_those_of_its_frames(tmp_path: Path) -> None:
    with Log.open(tmp_path / "log") as log:
        for topic in ("bid", "auction", "pipeline.1.view"):
            log.create_topic(topic, "n BIGINT")
        appended = (("bid", 1), ("pipeline.1.view", 2), ("auction", 4))
        ends = [log.append(topic, [{"n": n}] * n).frame + 1 for topic, n in appended]
        offsets = ["null", *(json.dumps({"log": "x", "frame": end}) for end in ends)]
        found = [{"sources": [{"startOffset": a, "endOffset": b, "numInputRows": 9}]} for a, b in pairwise(offsets)]
        assert [records_read(each, log) for each in found] == [1, 0, 4]


def test_the_right_answers_are_those_of_a_loop() -> None:
    bids = next(tables(90_000)).slice(0, 90_000)
    rows = list(zip(*(bids[name].to_pylist() for name in ("auction", "price", "at")), strict=True))
    counts, totals, windows = Counter[int](), Counter[int](), Counter[tuple[int, int]]()
    for auction, price, at in rows:
        counts[auction] += 1
        totals[auction] += price
        windows[auction, at.minute] += 1
    assert right_answer("map", bids) == Counter([(len(rows), sum(price * 908 // 1000 for _, price, _ in rows))])
    assert right_answer("count", bids) == Counter((each, counts[each], totals[each]) for each in counts)
    all_windows: Answer = Counter((*each, n) for each, n in windows.items())
    assert right_answer("window", bids) == closed(all_windows, bids) != all_windows
