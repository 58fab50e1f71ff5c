"""A file system that really is full: nothing is corrupted, errors are clear, and the log goes on when there is room."""

from collections.abc import Callable, Iterator
from datetime import timedelta
from functools import partial
from pathlib import Path
from random import Random

import pytest

from penstock.errors import LogError
from penstock.log import Limits, Log
from penstock.log.consumers import Delivering, Message
from penstock.log.retention import Retention
from tests.effort import sample
from tests.small import Small, small_file_system

LIMITS = Limits(stretch_frames=8)
ROOM = [*range(0, 200_000, 8_192)]


@pytest.fixture
def small(tmp_path: Path) -> Iterator[Small]:
    with small_file_system(tmp_path / "small", 4) as small:
        yield small


def opened(small: Small) -> Log:
    return Log.open(small.path / "log", limits=LIMITS)


def row(number: int) -> dict[str, object]:
    return {"id": number, "text": Random(number).randbytes(4_000).hex()}


def told(act: Callable[[], object]) -> LogError:
    """It is refused, because there is no room, and says so."""
    with pytest.raises(LogError) as error:
        act()
    assert_for_room(error.value)
    return error.value


def assert_for_room(error: LogError) -> None:
    assert "No space left on device" in str(error) or "disk is full" in str(error)
    assert error.hint == "Make room on the disk."


def ids(log: Log, topic: str = "t") -> list[int]:
    return [entry.value["id"] for entry in log.read(topic)]  # type: ignore[index,call-overload]


def acknowledge_all(messages: list[Message]) -> None:
    for message in messages:
        message.acknowledge()


def assert_whole(small: Small, wanted: list[int]) -> None:
    with opened(small) as log:
        assert ids(log) == wanted and log.set_aside() == []
        assert all(not found.damage for found in log.check())


def appended_until_full(log: Log, number: int) -> int:
    """The first one that was refused; the next one may find the room that a sealing has given back meanwhile."""
    for each in range(number, number + 1_000):
        try:
            log.append("t", [row(each)], producer="p", sequence=each)
        except LogError as error:
            assert_for_room(error)
            return each
    raise AssertionError("it does not get full")


@pytest.mark.parametrize("leave", sample(ROOM, 6, always=[0]))
def test_appends_are_refused_and_go_on(small: Small, leave: int) -> None:
    """Sealed in the background meanwhile, which finds no room either."""
    with opened(small) as log:
        log.create_topic("t", "id BIGINT, text STRING")
        for number in range(10):
            log.append("t", [row(number)], producer="p", sequence=number)
        small.fill(leave=leave)
        done = appended_until_full(log, 10)
        assert ids(log)[:done] == [*range(done)]
        small.make_room()
        for number in range(done, done + 20):
            log.append("t", [row(number)], producer="p", sequence=number)
        assert ids(log) == [*range(done + 20)] and log.seal() == 0
    assert_whole(small, [*range(done + 20)])


def test_sealing_is_refused_and_goes_on(small: Small) -> None:
    with opened(small) as log:
        log.create_topic("t", "id BIGINT, text STRING")
        for number in range(7):
            log.append("t", [row(number)])
        small.fill(leave=12_288)  # for the new journal, not for a copy of the old one
        told(log.seal)
        assert ids(log) == [*range(7)]
        small.make_room()
        assert log.seal() == 0 and ids(log) == [*range(7)]
    assert_whole(small, [*range(7)])


def test_a_log_is_opened_and_read_on_a_full_disk(small: Small) -> None:
    with opened(small) as log:
        log.create_topic("t", "id BIGINT, text STRING")
        log.append("t", [row(0)])
    small.fill()
    with opened(small) as log:
        assert ids(log) == [0]
        told(partial(log.append, "t", [row(1)]))
    small.make_room()
    assert_whole(small, [0])


def test_groups_and_queues_find_no_room_and_go_on(small: Small) -> None:
    with opened(small) as log:
        log.create_topic("t", "id BIGINT, text STRING")
        log.append("t", [row(number) for number in range(20)])
        queue = log.create_queue("q", "t", Delivering(visibility=timedelta(minutes=5)))
        with log.group("g").join("t") as member, queue.worker() as worker:
            first, taken = member.poll(5), worker.take(5)
            member.commit()
            small.fill()
            more = member.poll(5)
            told(member.commit)
            assert log.group("g").committed() == {("t", 0): 5}
            told(lambda: acknowledge_all(taken))
            small.make_room()
            member.commit()
            acknowledge_all(taken)
            assert len(first) == len(more) == 5 and log.group("g").committed() == {("t", 0): 10}
        assert queue.describe().waiting == 15
    assert_whole(small, [*range(20)])


def test_retention_makes_room_on_a_full_disk(small: Small) -> None:
    with opened(small) as log:
        log.create_topic("t", "id BIGINT, text STRING")
        log.create_topic("old", "id BIGINT, text STRING")
        log.append("t", [row(0)])
        for number in range(24):
            log.append("old", [row(number)])
        log.seal()
    small.fill()
    with opened(small) as log:  # files that are removed and still open take room
        told(partial(log.append, "t", [row(1)]))
        log.change_retention("old", Retention(bytes=0))
        log.retain()
        log.append("t", [row(1)])
        assert ids(log, "old") == []
    assert_whole(small, [0, 1])


def test_compaction_finds_no_room_and_goes_on(small: Small) -> None:
    with opened(small) as log:
        log.create_topic("t", "id BIGINT, text STRING", key="id")
        for number in range(7):
            log.append("t", [row(number % 3)])
        log.seal()
    small.fill()
    with opened(small) as log:
        told(partial(log.compact, ["t"]))
        assert len(ids(log)) == 7
        small.make_room()
        log.compact(["t"])
        assert sorted(ids(log)) == [0, 1, 2]
    assert_whole(small, [1, 2, 0])
