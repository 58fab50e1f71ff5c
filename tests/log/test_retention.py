"""Records go by age and by size, in whole files; what frames say stays, and nobody is disturbed."""

import time
from collections.abc import Callable, Iterator
from datetime import timedelta
from pathlib import Path
from threading import Thread

import pytest

from penstock.errors import DamagedLog, LogError, RecordsGone
from penstock.log import Limits, Log, Place, Start
from penstock.log.records import instant
from penstock.log.retention import FOREVER, Retention
from tests.effort import sample
from tests.log.disks import QuickDisk
from tests.log.dying import HOW, DyingDisk, in_child
from tests.texts import assert_golden

DAY = 86_400_000_000
TWO_DAYS = Retention(age=timedelta(days=2))


class Clock:
    """Stands still until it is told."""

    def __init__(self) -> None:
        self.now = 1_000 * DAY

    def __call__(self) -> int:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def log(tmp_path: Path, clock: Clock) -> Iterator[Log]:
    with Log.open(tmp_path / "log", disk=QuickDisk(), clock=clock) as log:
        yield log


def fill(log: Log, clock: Clock, *, days: int = 5, retention: Retention = FOREVER, partitions: int = 1) -> None:
    """One stretch a day, each with ten records of `t` and of `other`, which is kept."""
    log.create_topic("t", "id INT NOT NULL, text STRING", key="id", partitions=partitions, retention=retention)
    log.create_topic("other", "id INT")
    for day in range(days):
        rows = [{"id": 10 * day + each, "text": "x" * 1_000} for each in range(10)]
        log.append_all({"t": rows, "other": [{"id": row["id"]} for row in rows]}, producer="p", sequence=day)
        log.seal()
        clock.now += DAY


def ids(log: Log, topic: str = "t", **where: object) -> list[int]:
    return [entry.value["id"] for entry in log.read(topic, **where)]  # type: ignore[index,arg-type,call-overload]


def arrow_files(log: Log, topic: str) -> list[Path]:
    return sorted((log.folder / "sealed").glob(f"*/{topic}.*.arrow"))


def test_records_go_when_they_are_older_than_the_age(log: Log, clock: Clock) -> None:
    fill(log, clock, retention=TWO_DAYS)
    (gone,) = log.retain()
    assert (gone.topic, gone.begins, gone.records) == ("t", (30,), 30)
    assert ids(log) == list(range(30, 50)) and log.begins("t") == (30,) and log.ends("t") == (50,)
    assert len(arrow_files(log, "t")) == 2 and len(arrow_files(log, "other")) == 5
    assert ids(log, "other") == list(range(50)) and log.retain() == []


def test_the_oldest_go_while_a_topic_is_larger_than_its_size(log: Log, clock: Clock) -> None:
    fill(log, clock)
    each = arrow_files(log, "t")[0].stat().st_size
    log.change_retention("t", Retention(bytes=3 * each))
    log.retain()
    kept = sum(path.stat().st_size for path in arrow_files(log, "t"))
    assert ids(log) == list(range(10, 50)) and kept == 4 * each
    log.change_retention("t", Retention(bytes=0))
    log.retain()
    assert ids(log) == [] and log.begins("t") == log.ends("t") == (50,)


def test_headers_times_producers_and_sequences_stay(log: Log, clock: Clock) -> None:
    fill(log, clock, retention=TWO_DAYS)
    frames, described = list(log.frames()), log.describe("t")
    log.retain()
    assert list(log.frames())[: len(frames)] == frames
    assert log.find("p", 0) == frames[2] and log.append("t", [{"id": 1}], producer="p", sequence=0).repeated
    after = log.describe("t").partitions[0]
    assert (after.end, after.heard_at) == (described.partitions[0].end, described.partitions[0].heard_at)
    assert after.begin == 30 and log.describe("t").records == 20
    assert not any(finding.damage for finding in log.check())


def test_who_asks_for_what_is_gone_is_told_the_first_offset_that_is_there(log: Log, clock: Clock) -> None:
    fill(log, clock, retention=TWO_DAYS)
    log.retain()
    starts: list[Start] = [0, 29, Place(3), instant(1_001 * DAY)]
    for start in starts:
        with pytest.raises(RecordsGone) as refused:
            list(log.read("t", start=start))
        assert "The first offset that is there is 30." in str(refused.value)
    assert ids(log, start=30) == ids(log) == list(range(30, 50))
    with pytest.raises(RecordsGone) as refused:
        list(log.read("t", start=7))
    assert_golden("log/records-gone", str(refused.value))


def test_an_age_that_is_changed_counts_from_then_on(log: Log, clock: Clock) -> None:
    fill(log, clock)
    assert log.retain() == []
    assert log.change_retention("t", TWO_DAYS).retention == TWO_DAYS
    assert log.topic("t").retention == TWO_DAYS
    assert [gone.records for gone in log.retain()] == [30]
    log.change_retention("t", FOREVER)
    clock.now += 100 * DAY
    assert log.retain() == [] and ids(log) == list(range(30, 50))


def test_it_is_known_to_who_opens_the_log_later(log: Log, clock: Clock) -> None:
    fill(log, clock, retention=TWO_DAYS)
    log.retain()
    log.seal()
    log.append("t", [{"id": 50}])
    with Log.open(log.folder, disk=QuickDisk()) as again:
        assert again.begins("t") == (30,) and again.topic("t").retention == TWO_DAYS
        assert ids(again) == [*range(30, 50), 50]


def test_declaring_a_topic_without_a_retention_leaves_it(log: Log, clock: Clock) -> None:
    fill(log, clock, retention=TWO_DAYS)
    columns = "id INT NOT NULL, text STRING"
    assert log.create_topic("t", columns, key="id").retention == TWO_DAYS
    assert log.create_topic("t", columns, key="id", retention=TWO_DAYS).retention == TWO_DAYS
    with pytest.raises(LogError, match="declared otherwise"):
        log.create_topic("t", columns, key="id", retention=Retention(bytes=1))


def test_what_cannot_be_is_refused(log: Log) -> None:
    log.create_topic("bag", "id INT")
    with pytest.raises(LogError, match="cannot be kept for -1 day"):
        Retention(age=timedelta(-1))
    with pytest.raises(LogError, match="cannot be kept at -1 bytes"):
        Retention(bytes=-1)
    with pytest.raises(LogError, match="cannot be compacted"):
        log.change_retention("bag", Retention(compacted=True))
    with pytest.raises(LogError, match="does not exist"):
        log.retain(["nothing"])


def test_partitions_go_each_for_itself(log: Log, clock: Clock) -> None:
    fill(log, clock, retention=TWO_DAYS, partitions=3)
    before = [entry for entry in log.read("t") if entry.place.frame >= Place(5).frame]
    log.retain()
    kept = list(log.read("t"))
    assert kept == before[-len(kept) :] and len(kept) == 20
    for partition in range(3):
        assert [e.offset for e in log.read("t", partition=partition)] == list(
            range(log.begins("t")[partition], log.ends("t")[partition])
        )


def test_nothing_goes_that_a_reader_needs_if_asked_so(log: Log, clock: Clock) -> None:
    fill(log, clock)
    log.group("slow").reset("t", 15)
    log.change_retention("t", Retention(age=timedelta(0), unread=True))
    log.retain()
    assert log.begins("t") == (10,)
    log.group("quick").reset("t", 40)
    log.retain()
    assert log.begins("t") == (10,)
    log.group("slow").delete()
    log.retain()
    assert log.begins("t") == (40,)
    log.change_retention("t", Retention(age=timedelta(0)))
    log.retain()
    assert log.begins("t") == (50,)


def test_a_pipeline_is_a_reader_from_where_its_last_batch_ended(log: Log, clock: Clock) -> None:
    fill(log, clock, retention=Retention(age=timedelta(0), unread=True))
    frames = [header.frame for header in log.frames() if header.producer == "p"]

    def batch(lineage: int, number: int, until: int) -> None:
        note = {"pipeline": "shop", "lineage": lineage, "batch": number, "from": 0, "until": until}
        log.append_all({}, producer=f"shop/{lineage}", sequence=number, note=note)

    def current(lineage: int, **more: object) -> None:
        note = {"pipeline": "shop", "current": lineage, "views": {}, **more}
        log.append_all({}, producer="shop", sequence=lineage, note=note)

    current(1)
    assert log.retain() == []
    batch(1, 0, frames[2])
    log.retain()
    assert log.begins("t") == (20,)
    batch(2, 0, frames[3])
    batch(1, 1, frames[4])
    log.retain()
    assert log.begins("t") == (30,)
    current(2, reads=["other"])
    log.retain()
    assert log.begins("t") == (50,)


def test_old_records_in_the_open_stretch_go_when_it_is_asked_for(log: Log, clock: Clock) -> None:
    log.create_topic("t", "id INT", retention=TWO_DAYS)
    log.append("t", [{"id": 1}])
    clock.now += 3 * DAY
    log.retain()
    assert log.begins("t") == (1,)
    stretches = list((log.folder / "sealed").iterdir())
    log.append("t", [{"id": 2}])
    assert log.retain() == [] and list((log.folder / "sealed").iterdir()) == stretches


def test_records_go_in_the_background(tmp_path: Path, clock: Clock) -> None:
    with Log.open(tmp_path / "log", disk=QuickDisk(), clock=clock, limits=Limits(stretch_frames=2)) as log:
        log.create_topic("t", "id INT", retention=TWO_DAYS)
        deadline = time.monotonic() + 20
        while log.begins("t") == (0,) and time.monotonic() < deadline:
            log.append("t", [{"id": 1}])
            clock.now += DAY
        assert log.begins("t") > (0,) and log._sealing.failure is None


def test_a_log_that_is_only_opened_now_and_then_lets_go_too(log: Log, clock: Clock) -> None:
    fill(log, clock, retention=TWO_DAYS)
    log.close()
    with Log.open(log.folder, disk=QuickDisk(), clock=clock) as again:
        again.append("other", [{"id": 1}])
        deadline = time.monotonic() + 20
        while again.begins("t") == (0,) and time.monotonic() < deadline:
            time.sleep(0.01)
        assert again.begins("t") == (30,)


@pytest.mark.parametrize("partitions", [1, 3])
def test_a_reader_in_the_middle_of_a_file_finishes_it_and_is_then_told(
    log: Log, clock: Clock, partitions: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("penstock.log.sealed.BATCH_ROWS", 4)
    fill(log, clock, partitions=partitions)
    reading = log.batches("t")
    got = [next(reading).num_rows]
    log.change_retention("t", Retention(age=timedelta(0)))
    log.retain()
    assert log.begins("t") == log.ends("t") and not arrow_files(log, "t")
    with pytest.raises(RecordsGone, match="kept no longer"):
        got.extend(batch.num_rows for batch in reading)
    assert sum(got) == 10


def test_a_reader_beyond_what_goes_is_not_disturbed(log: Log, clock: Clock) -> None:
    fill(log, clock)
    reading = log.read("t", start=25)
    want = [next(reading).offset for _ in range(6)]
    log.change_retention("t", TWO_DAYS)
    log.retain()
    assert want + [entry.offset for entry in reading] == list(range(25, 50))


def test_readers_beside_it_see_whole_records_or_are_told(tmp_path: Path, clock: Clock) -> None:
    limits = Limits(stretch_frames=2)
    with Log.open(tmp_path / "log", disk=QuickDisk(), clock=clock, limits=limits) as log:
        log.create_topic("t", "id INT", retention=TWO_DAYS)
        failures: list[BaseException] = []
        rounds = 0

        def read_on() -> None:
            nonlocal rounds
            while writing.is_alive():
                try:
                    found = ids(log)
                    assert found == list(range(found[0], found[0] + len(found))) if found else True
                    rounds += 1
                except RecordsGone:
                    pass
                except BaseException as error:
                    failures.append(error)
                    return

        def write() -> None:
            for day in range(150):
                log.append("t", [{"id": day}])
                clock.now += DAY // 4
                if day % 5 == 0:
                    log.retain()

        writing = Thread(target=write)
        readers = [Thread(target=read_on) for _ in range(2)]
        for thread in (writing, *readers):
            thread.start()
        for thread in (writing, *readers):
            thread.join()
        assert failures == [] and rounds > 0 and log.begins("t") > (100,)


def test_a_file_that_is_missing_and_should_be_there_is_damage(log: Log, clock: Clock) -> None:
    fill(log, clock, retention=TWO_DAYS)
    log.retain()
    arrow_files(log, "t")[0].unlink()
    with pytest.raises(DamagedLog, match="offsets 30 to 39 are damaged"):
        list(log.read("t"))


def killed(told: Callable[[int], None], folder: Path, nth: int, how: str) -> None:
    clock = Clock()
    clock.now += 5 * DAY
    log = Log.open(folder, disk=DyingDisk(nth, how), clock=clock)
    log.change_retention("t", TWO_DAYS)
    told(1)
    log.retain()
    told(2)
    log.close()


def test_killed_anywhere_it_has_let_go_or_not_and_the_next_run_ends_it(tmp_path: Path) -> None:
    """At every operation of the disk."""
    operations = 60
    for nth, how in sample([(n, how) for n in range(1, operations) for how in HOW], 40):
        clock = Clock()
        folder = tmp_path / f"{nth}-{how}"
        with Log.open(folder, disk=QuickDisk(), clock=clock) as log:
            fill(log, clock)
        told, died = in_child(killed, folder, nth, how)
        with Log.open(folder, disk=QuickDisk(), clock=clock) as log:
            assert log.begins("t") in ([(30,)] if told == 2 else [(0,), (30,)])
            assert ids(log) == list(range(log.begins("t")[0], 50)) and ids(log, "other") == list(range(50))
            assert not any(finding.damage for finding in log.check())
            log.change_retention("t", TWO_DAYS)
            log.retain()
            assert ids(log) == list(range(30, 50)) and len(arrow_files(log, "t")) == 2
        assert died or told == 2
