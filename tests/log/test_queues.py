"""Queues: each message to one worker at a time, settled one by one, delivered again when it is not."""

import os
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from threading import Thread
from typing import Any

import pytest

from penstock.errors import LogError
from penstock.log import Log, Record
from penstock.log.consumers import Delivering, Message, Queue, Worker
from penstock.log.consumers.dead import bury
from penstock.log.consumers.worker import MOST_PENDING
from tests.log.test_groups import Shrunk, lose_facts
from tests.texts import refused

Opener = Callable[..., Log]
SECOND = timedelta(seconds=1)
TEN = Delivering(visibility=10 * SECOND, deliveries=3)


@pytest.fixture
def clock() -> list[int]:
    return [1_000_000_000]


def pass_time(clock: list[int], by: timedelta) -> None:
    clock[0] += by // timedelta(microseconds=1)


@pytest.fixture
def log(open_log: Opener, clock: list[int]) -> Log:
    """A log with the topic `jobs`, with the records 0 to 9 in two partitions."""
    log = open_log(clock=lambda: clock[0])
    log.create_topic("jobs", "n BIGINT NOT NULL", partitions=2)
    for partition in range(2):
        log.append("jobs", [{"n": partition * 5 + each} for each in range(5)], partition=partition)
    return log


@pytest.fixture
def queue(log: Log) -> Queue:
    return log.create_queue("q", "jobs", TEN)


@pytest.fixture
def worker(queue: Queue) -> Iterator[Worker]:
    with queue.worker() as worker:
        yield worker


def numbers(messages: list[Message]) -> list[int]:
    return sorted(message.entry.value["n"] for message in messages)  # type: ignore[index,call-overload]


def counts(queue: Queue) -> tuple[int, int, int]:
    """Waiting, in flight, dead."""
    state = queue.describe()
    return state.waiting, state.in_flight, state.dead


def letters(log: Log) -> list[tuple[int, str, str]]:
    """Number, deliveries and reason of every dead letter."""
    found = []
    for entry in log.read("q.dead-letters"):
        told = {name.removeprefix("penstock."): value.decode() for name, value in entry.headers.items()}
        assert (told["queue"], told["topic"]) == ("q", "jobs")
        [message] = log.read(
            "jobs", partition=int(told["partition"]), start=int(told["offset"]), end=int(told["offset"]) + 1
        )
        assert message.value == entry.value
        found.append((entry.value["n"], told["deliveries"], told["reason"]))  # type: ignore[index,call-overload]
    return found


# Taking and settling


def test_each_message_goes_to_one_worker(queue: Queue, open_log: Opener) -> None:
    with queue.worker() as one, queue.worker() as two:
        found = [*one.take(3), *two.take(4), *one.take(9), *two.take(9)]
        assert numbers(found) == list(range(10))
        assert {message.deliveries for message in found} == {1}


def test_what_is_acknowledged_does_not_come_again(queue: Queue, worker: Worker, clock: list[int]) -> None:
    for message in worker.take(4):
        message.acknowledge()
    assert counts(queue) == (6, 0, 0)
    pass_time(clock, 11 * SECOND)
    assert len(worker.take(99)) == 6


def test_what_is_not_settled_in_time_comes_again(queue: Queue, worker: Worker, clock: list[int]) -> None:
    first = worker.take(10)
    assert counts(queue) == (0, 10, 0)
    pass_time(clock, 10 * SECOND - timedelta(microseconds=1))
    assert worker.take() == []
    pass_time(clock, timedelta(microseconds=1))
    with queue.worker() as other:
        again = other.take(99)
        assert numbers(again) == numbers(first)
        assert {message.deliveries for message in again} == {2}


def test_what_is_released_comes_again_at_once(worker: Worker) -> None:
    [message, *_] = worker.take(10)
    message.release()
    [again] = worker.take(10)
    assert (again.entry, again.deliveries) == (message.entry, 2)


def test_what_is_released_for_later_comes_later(queue: Queue, worker: Worker, clock: list[int]) -> None:
    [message, *_] = worker.take(10)
    message.release(after=3 * SECOND)
    assert counts(queue) == (1, 9, 0)
    pass_time(clock, 2 * SECOND)
    assert worker.take() == []
    pass_time(clock, SECOND)
    assert [each.entry for each in worker.take()] == [message.entry]


def test_what_is_extended_stays_longer(worker: Worker, clock: list[int]) -> None:
    [message, *others] = worker.take(10)
    pass_time(clock, 9 * SECOND)
    message.extend(10 * SECOND)
    pass_time(clock, 9 * SECOND)
    assert numbers(worker.take(99)) == numbers(others)
    message.acknowledge()


@pytest.mark.parametrize("how", ["acknowledge", "release", "extend", "reject"])
def test_what_was_given_to_another_cannot_be_settled(queue: Queue, worker: Worker, clock: list[int], how: str) -> None:
    [message, *_] = worker.take(10)
    pass_time(clock, 10 * SECOND)
    with queue.worker() as other:
        assert len(other.take(99)) == 10
        with refused("log/message-lost", offset=f"offset {message.ack.offset} of partition {message.ack.partition}"):
            settle(message, how)
        assert counts(queue) == (0, 10, 0)


def settle(message: Message, how: str) -> None:
    match how:
        case "extend":
            message.extend(SECOND)
        case "reject":
            message.reject("bad")
        case _:
            getattr(message, how)()


@pytest.mark.parametrize("how", ["acknowledge", "release", "extend", "reject"])
def test_a_late_worker_may_settle_what_nobody_else_has(
    queue: Queue, worker: Worker, clock: list[int], how: str
) -> None:
    [message] = worker.take()
    pass_time(clock, 60 * SECOND)
    settle(message, how)
    assert (
        counts(queue)
        == {"acknowledge": (9, 0, 0), "release": (10, 0, 0), "extend": (9, 1, 0), "reject": (9, 0, 1)}[how]
    )


def test_a_message_is_settled_once(worker: Worker) -> None:
    [message] = worker.take()
    message.acknowledge()
    with refused("log/message-settled", offset=f"offset {message.ack.offset} of partition {message.ack.partition}"):
        message.release()


def test_a_closed_worker_gives_everything_back(queue: Queue) -> None:
    worker = queue.worker()
    one, two, *_ = worker.take(6)
    one.acknowledge()
    worker.close()
    worker.close()
    assert counts(queue) == (9, 0, 0)
    for use in (worker.take, two.acknowledge):
        with pytest.raises(LogError, match="is closed"):
            use()


def test_messages_come_one_by_one(queue: Queue, worker: Worker, log: Log) -> None:
    found = []
    for message in worker.messages(ahead=4):
        found.append(message)
        message.acknowledge()
        if len(found) == 10:
            break
    assert numbers(found) == list(range(10))
    assert counts(queue) == (0, 0, 0)


def test_messages_taken_ahead_and_not_used_do_not_count_as_delivered(worker: Worker) -> None:
    for message in worker.messages(ahead=10):
        message.acknowledge()
        break
    found = worker.take(10)
    assert len(found) == 9 and {message.deliveries for message in found} == {1}


def test_a_take_waits_for_messages(queue: Queue, open_log: Opener) -> None:
    log = open_log()
    with log.create_queue("late", "jobs", start="latest").worker() as worker:
        assert worker.take(wait=timedelta(milliseconds=50)) == []
        appender = Thread(target=lambda: log.append("jobs", [{"n": 42}]))
        appender.start()
        assert numbers(worker.take(wait=30 * SECOND)) == [42]
        appender.join()


def test_a_take_waits_for_what_another_gives_back(queue: Queue) -> None:
    with queue.worker() as one, queue.worker() as other:
        [message, *_] = one.take(10)
        release = Thread(target=message.release)
        release.start()
        assert len(other.take(wait=30 * SECOND)) == 1
        release.join()


def test_many_acknowledgements_are_taken_in_before_the_worker_takes_again(log: Log) -> None:
    log.append("jobs", [{"n": each} for each in range(MOST_PENDING)], partition=0)
    queue = log.create_queue("q", "jobs", TEN)
    with queue.worker() as worker:
        for message in worker.take(MOST_PENDING):
            message.acknowledge()
        assert len(worker._acks.pending) == 0


def test_threads_share_a_worker(log: Log) -> None:
    log.append("jobs", [{"n": each} for each in range(10, 500)], partition=0)
    queue, found = log.create_queue("q", "jobs", TEN), list[Message]()
    with queue.worker() as worker:

        def work() -> None:
            while messages := worker.take(7):
                for message in messages:
                    message.acknowledge()
                found.extend(messages)

        threads = [Thread(target=work) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert numbers(found) == list(range(500))
    assert counts(queue) == (0, 0, 0)


def test_a_queue_disturbs_no_other_reader(queue: Queue, worker: Worker, log: Log) -> None:
    other = log.create_queue("other", "jobs")
    for message in worker.take(10):
        message.acknowledge()
    assert counts(queue) == (0, 0, 0) and counts(other) == (10, 0, 0)
    with log.group("g").join("jobs") as member:
        assert len(member.poll()) == 10


def test_nothing_is_not_taken(worker: Worker) -> None:
    with pytest.raises(LogError, match="0 is no limit"):
        worker.take(0)


# Acknowledgements of workers that die


def forsake(worker: Worker) -> None:
    """As if its process had been killed."""
    worker._acks.close()
    worker._closed = True


def test_what_a_dead_worker_has_acknowledged_stays_so(queue: Queue, folder: Path, clock: list[int]) -> None:
    dies = queue.worker()
    for message in dies.take(10)[:4]:
        message.acknowledge()
    forsake(dies)
    pass_time(clock, 10 * SECOND)
    with queue.worker() as worker:
        assert len(worker.take(99)) == 6
        assert counts(queue) == (0, 6, 0)
    queue.worker().close()
    assert list(folder.glob("acks/*")) == []


def test_what_a_dead_worker_has_acknowledged_does_not_become_a_dead_letter(log: Log, clock: list[int]) -> None:
    queue = log.create_queue("once", "jobs", Delivering(visibility=SECOND, deliveries=1))
    dies = queue.worker()
    for message in dies.take(10)[:4]:
        message.acknowledge()
    forsake(dies)
    pass_time(clock, SECOND)
    with queue.worker() as worker:
        assert worker.take(99) == []
    assert counts(queue) == (0, 0, 6)


def test_what_is_acknowledged_until_its_time_is_over_does_not_become_a_dead_letter(open_log: Opener) -> None:
    ticks: list[int] = []
    log = open_log(clock=lambda: ticks.pop(0) if len(ticks) > 1 else (ticks or [1_000_000])[0])
    log.create_topic("jobs", "n BIGINT NOT NULL")
    log.append("jobs", [{"n": 1}])
    queue = log.create_queue("q", "jobs", Delivering(visibility=10 * SECOND, deliveries=1))
    with queue.worker() as worker, queue.worker() as other:
        [message] = worker.take()
        message.acknowledge()
        ticks[:] = [10_999_999, 11_000_000]  # the time is over between two looks at the clock
        assert bury(other._at, other._declared) == 0
    assert counts(queue) == (0, 0, 0)


def test_a_torn_acknowledgement_is_passed_over(queue: Queue, folder: Path, clock: list[int]) -> None:
    dies = queue.worker()
    for message in dies.take(10)[:2]:
        message.acknowledge()
    forsake(dies)
    [file] = folder.glob("acks/*")
    data = bytearray(file.read_bytes())
    data[3] ^= 1
    file.write_bytes(data[:-1] + b"")
    pass_time(clock, 10 * SECOND)
    with queue.worker() as worker:
        assert len(worker.take(99)) == 10


def test_an_acknowledgement_that_finds_no_room_leaves_nothing_half_written(
    queue: Queue, clock: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    dies, write = queue.worker(), os.write
    one, two, three, *_ = dies.take(10)
    one.acknowledge()
    with monkeypatch.context() as patch:
        patch.setattr(os, "write", lambda file, data: write(file, data[:10]))
        with refused("log/acknowledgement-no-room"):
            two.acknowledge()
    three.acknowledge()
    forsake(dies)
    pass_time(clock, 10 * SECOND)
    with queue.worker() as worker:
        assert len(worker.take(99)) == 8


def test_the_file_of_a_worker_that_is_idle_may_be_removed(queue: Queue, folder: Path, clock: list[int]) -> None:
    with queue.worker() as idle:
        for message in idle.take(2):
            message.acknowledge()
        idle.sync()
        queue.worker().close()
        assert list(folder.glob("acks/*")) == []
        for message in idle.take(2):
            message.acknowledge()
        forsake(idle)
    pass_time(clock, 10 * SECOND)
    with queue.worker() as worker:
        assert len(worker.take(99)) == 6


# Dead letters


def test_what_is_rejected_is_a_dead_letter(queue: Queue, worker: Worker, log: Log) -> None:
    [message] = worker.take()
    message.reject("no such customer")
    assert letters(log) == [(message.entry.value["n"], "1", "no such customer")]  # type: ignore[index,call-overload]
    assert counts(queue) == (9, 0, 1)


def test_what_was_delivered_too_often_is_a_dead_letter(
    queue: Queue, worker: Worker, log: Log, clock: list[int]
) -> None:
    for times in range(1, 4):
        assert {message.deliveries for message in worker.take(10)} == {times}
        pass_time(clock, 10 * SECOND)
    assert worker.take(10) == []
    assert sorted(letters(log)) == [(n, "3", "delivered 3 times, never acknowledged") for n in range(10)]
    assert counts(queue) == (0, 0, 10)


def test_dead_letters_are_delivered_again(queue: Queue, worker: Worker, log: Log) -> None:
    for message in worker.take(4):
        message.reject("bad")
    assert queue.redrive(limit=3) == 3
    assert counts(queue) == (9, 0, 1)
    assert queue.redrive() == 1
    assert queue.redrive() == 0
    found = worker.take(99)
    assert numbers(found) == list(range(10)) and {message.deliveries for message in found} == {1}


def test_dead_letters_are_listed_until_they_are_delivered_again(queue: Queue, worker: Worker) -> None:
    assert queue.letters() == []
    for message in worker.take(4):
        message.reject("bad")
    queue.redrive(limit=1)
    assert [int(letter.headers["penstock.offset"]) for letter in queue.letters()] == [1, 2, 3]
    assert len(queue.letters(limit=2)) == 2
    assert queue.topic == "jobs"


def test_a_message_may_die_again(queue: Queue, worker: Worker, log: Log) -> None:
    for times in range(1, 4):
        [message] = worker.take()
        message.reject(f"bad {times}")
        assert queue.redrive() == 1
    assert [(times, reason) for _, times, reason in letters(log)] == [("1", f"bad {times}") for times in range(1, 4)]


def test_a_message_dies_once_though_its_transaction_was_lost(
    queue: Queue, log: Log, folder: Path, open_log: Opener
) -> None:
    """The letter is in the log, and the facts are as they were before: that is how a kill between the two leaves it."""
    queue.worker().take()
    with log.consumers._facts.writing() as db:
        db.execute("UPDATE messages SET reason = 'bad', due = 0, lease = NULL, worker = NULL")
    log.close()
    before = (folder / "consumers.sqlite").read_bytes()
    for _ in range(2):
        (folder / "consumers.sqlite").write_bytes(before)
        with Log.open(folder) as again:
            again.queue("q").redrive(limit=0)
            assert len(letters(again)) == 1 and counts(again.queue("q")) == (9, 0, 1)


def test_dead_letters_of_raw_topics_keep_everything(log: Log) -> None:
    log.create_topic("raw")
    at = datetime(2026, 1, 1, tzinfo=UTC)
    log.append("raw", [Record(b"v", key=b"k", time=at, headers={"h": b"x"}), Record(None, key=b"gone", deleted=True)])
    with log.create_queue("r", "raw").worker() as worker:
        for message in worker.take(2):
            message.reject("bad")
    one, two = log.read("r.dead-letters")
    assert (one.key, one.value, one.time, one.headers["h"]) == (b"k", b"v", at, b"x")
    assert (two.key, two.value, two.deleted) == (b"gone", None, True)


def test_dead_letters_of_tables_keep_deletions_and_what_they_replace(log: Log) -> None:
    log.create_topic("table", "id INT NOT NULL, city STRING NOT NULL", key="id")
    log.append(
        "table",
        [Record({"id": 1, "city": "Rome"}, replaces={"id": 1, "city": "Oslo"}), Record({"id": 1}, deleted=True)],
    )
    with log.create_queue("t", "table").worker() as worker:
        for message in worker.take(2):
            message.reject("bad")
    one, two = log.read("t.dead-letters")
    assert one.replaces == {"id": 1, "city": "Oslo"} and two.deleted and two.key == (1,)


def test_dead_letters_get_columns_that_were_added(queue: Queue, worker: Worker, log: Log) -> None:
    log.change_schema("jobs", "n BIGINT NOT NULL, note STRING")
    log.append("jobs", [{"n": 77, "note": "new"}])
    for message in worker.take(99):
        message.reject("bad")
    assert {"n": 77, "note": "new"} in [entry.value for entry in log.read("q.dead-letters")]


# Declaring


def test_a_queue_is_declared_once(log: Log, queue: Queue) -> None:
    log.create_queue("q", "jobs", TEN)
    with refused("log/queue-otherwise"):
        log.create_queue("q", "jobs")
    queue.change(Delivering(missing="skip"))
    log.create_queue("q", "jobs", Delivering(missing="skip"))
    assert [each.name for each in log.consumers.queues()] == ["q"]


def test_an_unknown_queue_is_refused_with_the_nearest_name(log: Log, queue: Queue) -> None:
    with refused("log/unknown-queue"):
        log.queue("qu").worker()


def test_a_topic_that_cannot_hold_the_dead_letters_is_refused(log: Log) -> None:
    log.create_topic("x.dead-letters")
    with refused("log/no-place-for-dead-letters"):
        log.create_queue("x", "jobs")
    assert log.consumers.queues() == []


@pytest.mark.parametrize("given", [{"visibility": timedelta(0)}, {"deliveries": 0}, {"missing": "latest"}])
def test_a_queue_that_cannot_be_is_refused(given: dict[str, Any]) -> None:
    with pytest.raises(LogError):
        Delivering(**given)


def test_a_queue_begins_anew(queue: Queue, worker: Worker, log: Log) -> None:
    [message] = worker.take()
    with refused("log/queue-busy"):
        queue.reset("latest")
    message.acknowledge()
    queue.reset("latest")
    assert counts(queue) == (0, 0, 0)
    queue.reset("earliest")
    assert len(worker.take(99)) == 10


def test_a_message_that_died_before_a_reset_may_die_after_it(queue: Queue, worker: Worker, log: Log) -> None:
    for _ in range(2):
        for message in worker.take(99):
            message.reject("bad")
        queue.reset("earliest")
    assert len(letters(log)) == 20
    queue.redrive()
    assert counts(queue) == (10, 0, 0)


def test_a_deleted_queue_is_gone(queue: Queue, log: Log) -> None:
    queue.delete()
    assert log.consumers.queues() == []
    assert counts(log.create_queue("q", "jobs")) == (10, 0, 0)


def test_a_lost_queue_is_noticed(queue: Queue, log: Log, folder: Path, open_log: Opener) -> None:
    log.close()
    lose_facts(folder)
    log = open_log()
    for use in (lambda: log.queue("q").worker(), lambda: log.create_queue("q", "jobs", TEN)):
        with pytest.raises(LogError, match='how far queue "q" has read was lost'):
            use()
    assert counts(log.create_queue("q", "jobs", TEN, start="latest")) == (0, 0, 0)


# Retention


def test_messages_that_are_gone_are_refused_or_skipped(
    queue: Queue, worker: Worker, log: Log, clock: list[int]
) -> None:
    worker.take(3)
    pass_time(clock, 10 * SECOND)
    object.__setattr__(log.consumers._at, "source", Shrunk(log, 4))
    with refused("log/messages-gone"):
        worker.take(99)
    queue.change(Delivering(visibility=10 * SECOND, deliveries=3, missing="skip"))
    with queue.worker() as other:
        assert numbers(other.take(99)) == [4, 9]
    assert queue.describe().skipped == 8


def test_the_lowest_offset_is_that_of_the_slowest_reader(queue: Queue, worker: Worker, log: Log) -> None:
    assert log.consumers.lowest("jobs") == {0: 0, 1: 0}
    messages = worker.take(10)
    for message in messages[2:]:
        message.acknowledge()
    worker.sync()
    partition, offset = messages[0].ack.partition, messages[0].ack.offset
    assert log.consumers.lowest("jobs")[partition] == offset
    assert log.consumers.lowest("jobs")[1 - partition] == 5
    log.group("g").reset("jobs", 1, partition=1 - partition)
    assert log.consumers.lowest("jobs")[1 - partition] == 1
    assert log.consumers.lowest("q.dead-letters") == {}


class Compacted(Shrunk):
    """A log in which compaction has taken the records with an odd offset."""

    def read(self, topic: str, **where: Any) -> Iterator[Any]:
        return (entry for entry in self._log.read(topic, **where) if topic != "jobs" or entry.offset % 2 == 0)


def test_messages_that_compaction_has_taken_are_done(queue: Queue, worker: Worker, log: Log, clock: list[int]) -> None:
    object.__setattr__(log.consumers._at, "source", Compacted(log, 0))
    found = worker.take(99)
    assert numbers(found) == [0, 2, 4, 5, 7, 9]
    assert counts(queue) == (0, 6, 0)


def test_a_message_that_compaction_took_from_its_worker_is_no_dead_letter(
    queue: Queue, worker: Worker, log: Log
) -> None:
    messages = worker.take(99)
    object.__setattr__(log.consumers._at, "source", Compacted(log, 0))
    for message in messages:
        message.reject("bad")
    assert sorted(n for n, _, _ in letters(log)) == [0, 2, 4, 5, 7, 9]
    assert counts(queue) == (0, 0, 6)
