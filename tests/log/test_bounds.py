"""Bounds: producers wait for the slowest reader of a topic, leave records out, or are refused."""

import time
from collections.abc import Callable
from datetime import timedelta
from threading import Thread
from typing import Any

import pytest

from penstock.errors import LogError, TopicFull
from penstock.log import Log
from penstock.log.bound import Bound
from penstock.log.consumers import Delivering
from tests.log.disks import QuickDisk
from tests.log.test_places import staged
from tests.texts import refused

Opener = Callable[..., Log]
SECOND = timedelta(seconds=1)


@pytest.fixture
def log(open_log: Opener) -> Log:
    """A log with the topic `items`, of two partitions, that group g reads, and `others`."""
    log = open_log(disk=QuickDisk())
    log.create_topic("items", "n BIGINT", partitions=2)
    log.create_topic("others", "n BIGINT")
    log.group("g").reset("items", "earliest")
    return log


def rows(count: int) -> list[dict[str, Any]]:
    return [{"n": each} for each in range(count)]


def read_on(log: Log, count: int, group: str = "g") -> None:
    with log.group(group).join("items") as member:
        assert len(member.poll(count)) == count
        member.commit()


def test_an_append_beyond_the_bound_is_refused(log: Log) -> None:
    log.set_bound("items", Bound(10, "fail"))
    log.append("items", rows(6))
    log.append("items", rows(4))
    with refused("log/topic-full"):
        log.append("items", rows(1))
    with pytest.raises(TopicFull):
        log.append_all({"others": rows(1), "items": rows(1)})
    assert sum(log.ends("items")) == 10 and log.ends("others") == (0,)


def test_there_is_room_again_when_the_slowest_group_has_read(log: Log) -> None:
    log.group("slow").reset("items", "earliest")
    log.set_bound("items", Bound(10, "fail"))
    log.append("items", rows(10))
    read_on(log, 10)
    with pytest.raises(TopicFull, match="is full"):
        log.append("items", rows(1))
    read_on(log, 3, "slow")
    log.append("items", rows(3))
    with pytest.raises(TopicFull):
        log.append("items", rows(1))


def test_a_queue_is_a_reader_too(log: Log) -> None:
    queue = log.create_queue("q", "items", Delivering())
    log.group("g").delete()
    log.set_bound("items", Bound(10, "fail"))
    log.append("items", rows(10))
    with queue.worker() as worker:
        messages = worker.take(10)
        with refused("log/topic-full-queue"):
            log.append("items", rows(1))
        for message in messages[4:]:  # also while the first ones are not done
            message.acknowledge()
        worker.sync()
        log.append("items", rows(6))
        with pytest.raises(TopicFull):
            log.append("items", rows(1))


def test_a_topic_that_nobody_reads_is_not_bounded(log: Log) -> None:
    log.set_bound("others", Bound(1, "fail"))
    for _ in range(3):
        log.append("others", rows(5))


def test_dropped_records_are_counted(log: Log, open_log: Opener) -> None:
    log.set_bound("items", Bound(10, "drop"))
    assert log.append("items", rows(8)).dropped == 0
    done = log.append("items", rows(3))
    assert (done.dropped, done.spans) == (3, ())
    assert log.append("items", rows(2)).dropped == 0
    assert sum(log.ends("items")) == 10
    assert log.describe("items").dropped == open_log().describe("items").dropped == 3


def test_of_an_append_to_several_topics_only_what_does_not_fit_is_dropped(log: Log) -> None:
    log.set_bound("items", Bound(1, "drop"))
    done = log.append_all({"items": rows(2), "others": rows(2)})
    assert done.dropped == 2 and [span.topic for span in done.spans] == ["others"]


def test_a_dropped_append_that_is_repeated_is_still_dropped(log: Log) -> None:
    log.set_bound("items", Bound(1, "drop"))
    first = log.append("items", rows(2), producer="p", sequence=0)
    log.set_bound("items", None)
    again = log.append("items", rows(2), producer="p", sequence=0)
    assert (again.dropped, again.repeated, again.frame) == (2, True, first.frame)
    assert sum(log.ends("items")) == 0 and log.describe("items").dropped == 2


def test_a_repeated_append_needs_no_room(log: Log) -> None:
    log.set_bound("items", Bound(2, "fail"))
    log.append("items", rows(2), producer="p", sequence=0)
    assert log.append("items", rows(2), producer="p", sequence=0).repeated


@pytest.mark.parametrize("policy", ["drop", "fail"])
def test_files_that_do_not_fit_are_not_left_behind(log: Log, policy: Any) -> None:
    log.set_bound("items", Bound(1, policy))
    path = staged(log, "items", rows(2))
    if policy == "fail":
        with pytest.raises(TopicFull):
            log.append_files({("items", 0): [path]})
    else:
        assert log.append_files({("items", 0): [path], ("others", 0): [staged(log, "others", rows(1))]}).dropped == 2
        assert log.ends("others") == (1,)
    assert not [each for each in (log.folder / "staged").iterdir() if each.name.endswith(f"+{path.name}")]


def test_an_append_waits_for_room(log: Log, open_log: Opener) -> None:
    log.set_bound("items", Bound(10, "block"))
    log.append("items", rows(10))
    appender = Thread(target=lambda: open_log(disk=QuickDisk()).append("items", rows(5)))
    appender.start()
    appender.join(0.1)
    assert appender.is_alive() and sum(log.ends("items")) == 10
    read_on(log, 5)
    appender.join(30)
    assert sum(log.ends("items")) == 15


def test_an_append_does_not_wait_for_ever(log: Log) -> None:
    log.set_bound("items", Bound(10, "block", timeout=timedelta(milliseconds=50)))
    log.append("items", rows(10))
    begun = time.monotonic()
    with refused("log/topic-full-waited"):
        log.append("items", rows(1))
    assert time.monotonic() - begun >= 0.05


def test_an_append_that_never_fits_does_not_wait(log: Log) -> None:
    log.set_bound("items", Bound(10, "block", timeout=timedelta(hours=1)))
    with pytest.raises(TopicFull):
        log.append("items", rows(11))


def test_other_appends_do_not_wait(log: Log) -> None:
    log.set_bound("items", Bound(1, "block", timeout=30 * SECOND))
    log.append("items", rows(1))
    blocked = Thread(target=lambda: log.append("items", rows(1)))
    blocked.start()
    assert log.append("others", rows(1)).spans
    read_on(log, 1)
    blocked.join(30)
    assert not blocked.is_alive()


def test_a_topic_never_gets_beyond_its_bound_however_many_append(log: Log, open_log: Opener) -> None:
    log.set_bound("items", Bound(50, "fail"))

    def append(mine: Log) -> None:
        for _ in range(40):
            try:
                mine.append("items", rows(3))
            except TopicFull:
                return

    threads = [Thread(target=append, args=(open_log(disk=QuickDisk()),)) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sum(log.ends("items")) == 48


def test_a_bound_lasts_until_it_is_taken_away(log: Log, open_log: Opener) -> None:
    log.set_bound("items", Bound(7, "drop", timeout=SECOND))
    log.append("items", rows(8))
    log.seal()
    log.close()
    log = open_log(disk=QuickDisk())
    described = log.describe("items")
    assert (described.bound, described.dropped) == (Bound(7, "drop", timeout=SECOND), 8)
    log.set_bound("items", None)
    assert log.describe("items").bound is None
    log.append("items", rows(8))


def test_a_bound_that_is_set_again_equally_writes_nothing(log: Log) -> None:
    log.set_bound("items", Bound(7))
    before = log.mark()
    log.set_bound("items", Bound(7))
    assert log.mark() == before


@pytest.mark.parametrize("bound", [None, Bound(5, "fail")])
def test_an_append_that_waits_goes_on_when_the_bound_is_another(log: Log, bound: Bound | None) -> None:
    log.set_bound("items", Bound(1, "block", timeout=timedelta(hours=1)))
    log.append("items", rows(1))
    blocked = Thread(target=lambda: log.append("items", rows(1)))
    blocked.start()
    blocked.join(0.05)
    assert blocked.is_alive()
    log.set_bound("items", bound)
    blocked.join(30)
    assert sum(log.ends("items")) == 2


def test_dead_letters_are_not_bounded(log: Log) -> None:
    log.create_queue("q", "items")
    with refused("log/dead-letters-bounded"):
        log.set_bound("q.dead-letters", Bound(1))


def test_an_unknown_topic_is_not_bounded(log: Log) -> None:
    with pytest.raises(LogError, match='topic "item" does not exist'):
        log.set_bound("item", Bound(1))


@pytest.mark.parametrize("given", [(0, "fail"), (1, "wait"), (1, "block", -SECOND)])
def test_a_bound_that_makes_no_sense_is_refused(given: Any) -> None:
    with pytest.raises(LogError):
        Bound(*given)
