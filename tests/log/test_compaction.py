"""Of every key the newest record stays, where it was; deletions go when everybody had time to see them."""

import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from datetime import timedelta
from decimal import Decimal
from pathlib import Path
from tempfile import TemporaryDirectory
from threading import Thread
from typing import Any

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, rule

from penstock.errors import DamagedLog, LogError
from penstock.log import Limits, Log, Record
from penstock.log.retention import Retention
from tests.effort import examples, sample
from tests.log.disks import QuickDisk
from tests.log.dying import HOW, DyingDisk, in_child
from tests.log.test_retention import DAY, Clock
from tests.texts import refused

Rows = dict[Any, Any]
COMPACTED = Retention(compacted=True, deletions=timedelta(days=2))


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def log(tmp_path: Path, clock: Clock) -> Iterator[Log]:
    with Log.open(tmp_path / "log", disk=QuickDisk(), clock=clock) as log:
        log.create_topic("t", "k INT, v INT", key="k")
        yield log


def put(log: Log, *rows: tuple[int, int | None], seal: bool = True) -> None:
    """One append; a value of None is a deletion."""
    log.append("t", [Record({"k": k, "v": v}, deleted=v is None) for k, v in rows])
    if seal:
        log.seal()


def held(log: Log, **where: Any) -> list[tuple[int, int, int | None]]:
    """Offset, key and value of all records."""
    return [(e.offset, e.value["k"], None if e.deleted else e.value["v"]) for e in log.read("t", **where)]  # type: ignore[index,call-overload]


def folded(log: Log) -> Rows:
    """What the topic's records make as a table, in the order of places."""
    table: Rows = {}
    for entry in log.read("t"):
        table.pop(entry.key, None)
        if not entry.deleted:
            table[entry.key] = entry.value
    return table


def test_the_newest_record_of_each_key_stays_at_its_offset(log: Log) -> None:
    put(log, (1, 10), (2, 20), (3, 30))
    put(log, (1, 11), (2, None))
    put(log, (1, 12))
    (done,) = log.compact(["t"])
    assert (done.before, done.after) == (6, 3)
    assert held(log) == [(2, 3, 30), (4, 2, None), (5, 1, 12)]
    assert log.ends("t") == (6,) and log.describe("t").compacted == done.below
    assert log.compact(["t"]) == []
    with Log.open(log.folder, disk=QuickDisk()) as again:
        assert held(again) == held(log) and not any(finding.damage for finding in again.check())


@pytest.mark.parametrize("start", range(7))
@pytest.mark.parametrize("end", range(7))
def test_any_range_is_read_with_its_gaps(log: Log, start: int, end: int) -> None:
    put(log, (1, 10), (2, 20), (3, 30))
    put(log, (1, 11), (2, 21), (1, 12))
    log.compact(["t"])
    want = [(2, 3, 30), (4, 2, 21), (5, 1, 12)]
    assert held(log, start=start, end=end) == [each for each in want if start <= each[0] < end]


def test_a_file_of_which_nothing_stays_is_gone(log: Log) -> None:
    put(log, (1, 10), (2, 20))
    put(log, (1, 11), (2, 21))
    log.compact(["t"])
    assert len(list((log.folder / "sealed").glob("*/t.*.arrow"))) == 1
    assert held(log) == [(2, 1, 11), (3, 2, 21)] and held(log, start=0, end=2) == []


def test_rows_that_records_replace_go(log: Log) -> None:
    log.append("t", [Record({"k": 1, "v": 2}, replaces={"k": 1, "v": 1}, headers={"h": b"x"})])
    log.compact(["t"])
    (entry,) = log.read("t")
    assert (entry.value, entry.replaces, entry.headers) == ({"k": 1, "v": 2}, None, {"h": b"x"})


def test_deletions_go_once_they_were_there_for_long_enough_after_what_they_delete(log: Log, clock: Clock) -> None:
    log.change_retention("t", Retention(deletions=timedelta(days=2)))
    put(log, (1, 10), (2, 20))
    put(log, (1, None))
    clock.now += 10 * DAY  # the deletion is old, but a reader may just have read what it deletes
    log.compact(["t"])
    assert held(log) == [(1, 2, 20), (2, 1, None)]
    clock.now += 2 * DAY - 1
    assert log.compact(["t"]) == []
    clock.now += 1
    put(log, (3, None))
    log.compact(["t"])
    assert held(log) == [(1, 2, 20), (3, 3, None)]
    clock.now += 2 * DAY
    log.compact(["t"])
    assert held(log) == [(1, 2, 20)]


def test_a_deletion_stays_while_a_reader_has_not_read_it(log: Log, clock: Clock) -> None:
    put(log, (1, 10))
    put(log, (1, None))
    log.group("slow").reset("t", 1)
    for _ in range(2):
        log.compact(["t"])
        clock.now += 2 * DAY
    assert held(log) == [(1, 1, None)]
    log.group("slow").delete()
    put(log, (2, 20))
    log.compact(["t"])
    clock.now += 2 * DAY
    log.compact(["t"])
    assert held(log) == [(2, 2, 20)]


def test_nothing_is_compacted_that_a_pipeline_has_not_read(log: Log) -> None:
    frames = []
    for value in range(4):
        put(log, (1, value))
        frames.append(log.mark().next_frame)
    note = {"pipeline": "shop", "lineage": 1, "batch": 0, "from": 0, "until": frames[1]}
    log.append_all({}, producer="shop/1", sequence=0, note=note)
    log.compact(["t"])
    assert held(log) == [(1, 1, 1), (2, 1, 2), (3, 1, 3)]


def test_a_key_that_lies_in_several_partitions_is_one_key(log: Log, clock: Clock) -> None:
    log.create_topic("wide", "k INT, v INT", key="k", partitions=3)
    for at, partition in enumerate((0, 1, 2, 0)):
        log.append("wide", [Record({"k": 1, "v": at}, deleted=at == 3)], partition=partition)
    for _ in range(2):
        log.compact(["wide"])
        clock.now += 2 * DAY
    assert list(log.read("wide")) == []


@pytest.mark.parametrize(
    ("kind", "equal", "other"),
    [
        ("DOUBLE", [0.0, -0.0], [1.0]),
        ("FLOAT", [float("nan"), float("nan")], [None]),
        ("STRING", [None, None], [""]),
        ("BINARY", [b"a", b"a"], [b""]),
        ("DECIMAL(10,2)", ["1.00", "1.00"], ["1.01"]),
        ("STRUCT<a: DOUBLE, b: ARRAY<INT>>", [{"a": 0.0, "b": [1]}, {"a": -0.0, "b": [1]}], [{"a": 0.0, "b": [2]}]),
        ("ARRAY<STRING>", [["a", None], ["a", None]], [[], None]),
        ("BOOLEAN", [True, True], [False, None]),
    ],
)
def test_keys_are_equal_as_spark_says(log: Log, kind: str, equal: list[Any], other: list[Any]) -> None:
    values = [Decimal(each) if kind.startswith("DEC") else each for each in (*equal, *other)]
    log.create_topic("kinds", f"k {kind}, n INT", key="k")
    for at, value in enumerate(values):
        log.append("kinds", [{"k": value, "n": at}])
    log.compact(["kinds"])
    assert [entry.value["n"] for entry in log.read("kinds")] == list(range(1, len(values)))  # type: ignore[index,call-overload]


def test_records_of_a_raw_topic_without_a_key_stay(log: Log) -> None:
    log.create_topic("raw")
    log.append("raw", [b"x", Record(b"1", key=b"k"), b"x", Record(b"2", key=b"k")])
    log.compact(["raw"])
    assert [entry.offset for entry in log.read("raw")] == [0, 2, 3]


def test_a_topic_without_a_key_is_refused(log: Log) -> None:
    log.create_topic("bag", "k INT")
    with refused("log/compacting_a_bag"):
        log.compact(["bag"])
    with pytest.raises(LogError, match="cannot be compacted"):
        log.create_topic("other", "k INT", retention=COMPACTED)


def test_columns_that_were_added_later_are_null_in_what_stays(log: Log) -> None:
    put(log, (1, 10), (2, 20))
    log.change_schema("t", "k INT, v INT, w INT")
    log.append("t", [{"k": 2, "v": 21, "w": 5}])
    log.compact(["t"])
    assert [entry.value for entry in log.read("t")] == [{"k": 1, "v": 10, "w": None}, {"k": 2, "v": 21, "w": 5}]


def test_records_that_expired_are_not_looked_at(log: Log, clock: Clock) -> None:
    put(log, (1, 10), (2, 20))
    clock.now += 5 * DAY
    put(log, (1, 11))
    log.change_retention("t", Retention(age=timedelta(days=1), compacted=True))
    log.retain()
    log.compact()
    assert held(log) == [(2, 1, 11)] and log.begins("t") == (2,)


def test_damage_ends_it_and_nothing_is_lost(log: Log) -> None:
    put(log, (1, 10), (2, 20))
    put(log, (1, 11))
    path = sorted((log.folder / "sealed").glob("*/t.0.arrow"))[0]
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 0xFF
    path.write_bytes(data)
    with pytest.raises(DamagedLog):
        log.compact(["t"])
    assert held(log, start=2) == [(2, 1, 11)]


def test_a_list_of_files_that_is_damaged_is_reported(log: Log) -> None:
    put(log, (1, 10), (1, 11))
    log.compact(["t"])
    (path,) = (log.folder / "sealed").glob("*/files")
    data = bytearray(path.read_bytes())
    data[40] ^= 0xFF
    path.write_bytes(data)
    with Log.open(log.folder, disk=QuickDisk()) as again:
        found = [problem for finding in again.check() for problem in finding.damage]
        assert found == ["the list of its files cannot be read"]
        with pytest.raises(DamagedLog):
            list(again.read("t"))


@pytest.mark.parametrize("taken", range(1, 12, 2))
def test_a_reader_in_the_middle_is_not_disturbed(log: Log, taken: int) -> None:
    for value in range(4):
        put(log, *((key, value) for key in range(3)))
    reading = log.read("t")
    got = [(entry.key, entry.value) for entry in (next(reading) for _ in range(taken))]
    log.compact(["t"])
    got += [(entry.key, entry.value) for entry in reading]
    assert dict(got) == {(key,): {"k": key, "v": 3} for key in range(3)}


def test_a_reader_is_told_if_records_went_for_newer_ones_that_it_does_not_read(log: Log) -> None:
    for value in range(3):
        put(log, (1, value), (2 + value, value))
    reading = log.read("t")
    first = next(reading)
    put(log, (2, 9), (3, 9))
    log.compact(["t"])
    with refused("log/compacted_meanwhile"):
        list(reading)
    assert first.offset == 0 and len(held(log)) == 4
    asked = log.read("t", end=3)  # a part of what is compacted already: what is there of it
    assert [entry.offset for entry in asked] == []


def test_it_happens_in_the_background_when_it_is_worthwhile(tmp_path: Path, clock: Clock) -> None:
    with Log.open(tmp_path / "log", disk=QuickDisk(), clock=clock, limits=Limits(stretch_frames=3)) as log:
        log.create_topic("t", "k INT, v INT", key="k", retention=COMPACTED)
        deadline = time.monotonic() + 20
        value = 0
        while log.describe("t").compacted == 0 and time.monotonic() < deadline:
            put(log, (1, value), seal=False)
            value += 1
            clock.now += DAY
        assert log.describe("t").compacted > 0 and log._sealing.failure is None


def test_readers_and_writers_beside_it_see_every_key(tmp_path: Path) -> None:
    with Log.open(tmp_path / "log", disk=QuickDisk(), limits=Limits(stretch_frames=4)) as log:
        log.create_topic("t", "k INT, v INT", key="k")
        put(log, *((key, 0) for key in range(5)))
        failures: list[BaseException] = []
        whole = [0, 0]

        def read_on(reader: int) -> None:
            while writing.is_alive():
                try:
                    with suppress(LogError):  # it was compacted beyond what is read: told in the test before
                        assert {key[0] for key in folded(log)} == set(range(5))
                        whole[reader] += 1
                except BaseException as error:
                    failures.append(error)
                    return

        def write() -> None:
            value = 0
            while value % 5 or value < 120 or not (all(whole) or failures):
                put(log, (value % 5, value), seal=False)
                if value % 7 == 0:
                    log.compact(["t"])
                value += 1
            written.append(value)

        written: list[int] = []
        writing = Thread(target=write)
        threads = [writing, Thread(target=read_on, args=(0,)), Thread(target=read_on, args=(1,))]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        last = range(written[0] - 5, written[0])
        assert failures == [] and folded(log) == {(v % 5,): {"k": v % 5, "v": v} for v in last}


def fill(log: Log) -> None:
    log.create_topic("t", "k INT, v INT", key="k", partitions=2)
    for value in range(4):
        put(log, *((key, None if (key, value) in ((1, 1), (4, 3)) else value) for key in range(value, 6)))


def killed(told: Callable[[int], None], folder: Path, nth: int, how: str) -> None:
    clock = Clock()
    clock.now += 9 * DAY
    log = Log.open(folder, disk=DyingDisk(nth, how), clock=clock)
    log.compact(["t"])
    told(1)
    log.close()


@pytest.mark.parametrize("runs", [1, 2])
def test_killed_anywhere_nothing_is_lost_and_the_next_run_ends_it(tmp_path: Path, runs: int) -> None:
    """In the first run, and in a second one, in which deletions go."""
    ended = False
    for nth, how in sample([(n, how) for n in range(1, 90) for how in HOW], 45):
        clock = Clock()
        folder = tmp_path / f"{nth}-{how}"
        with Log.open(folder, disk=QuickDisk(), clock=clock) as log:
            fill(log)
            want = folded(log)
            if runs > 1:
                log.compact(["t"])
        told, died = in_child(killed, folder, nth, how)
        ended = ended or told == 1
        clock.now += 9 * DAY
        with Log.open(folder, disk=QuickDisk(), clock=clock) as log:
            assert folded(log) == want and not any(finding.damage for finding in log.check())
            for _ in range(3):
                log.compact(["t"])
                clock.now += 9 * DAY
            assert folded(log) == want and len(held(log)) == len(want)
            listed = {path.name for path in (log.folder / "sealed").glob("*/*.arrow")}
            assert all("+" in name or len(held(log)) for name in listed)
        assert died or told == 1
    assert ended


class Story(RuleBasedStateMachine):
    """A keyed topic, appended to, sealed, compacted, expired and read by two handles, and beside it a plain table and
    all that was ever appended.
    """

    def __init__(self) -> None:
        super().__init__()
        self.space = TemporaryDirectory()
        self.clock = Clock()
        self.table: Rows = {}
        self.ever: dict[tuple[int, int], tuple[Any, Any, bool]] = {}
        self.logs: list[Log] = []

    @initialize(limits=st.sampled_from([Limits(), Limits(stretch_frames=2)]), partitions=st.sampled_from([1, 3]))
    def begin(self, limits: Limits, partitions: int) -> None:
        self.limits = limits
        self.logs = [self.opened(), self.opened()]
        retention = Retention(deletions=timedelta(days=1))
        self.logs[0].create_topic("t", "k INT, v INT", key="k", partitions=partitions, retention=retention)

    def opened(self) -> Log:
        path = Path(self.space.name) / "log"
        return Log.open(path, disk=QuickDisk(), limits=self.limits, clock=self.clock)

    def teardown(self) -> None:
        for log in self.logs:
            log.close()
        self.space.cleanup()

    @rule(who=st.integers(0, 1), rows=st.lists(st.tuples(st.integers(0, 4), st.one_of(st.none(), st.integers(0, 9)))))
    def append(self, who: int, rows: list[tuple[int, int | None]]) -> None:
        if not rows:
            return
        made = self.logs[who].append("t", [Record({"k": k, "v": v}, deleted=v is None) for k, v in rows])
        for k, v in rows:
            self.table.pop((k,), None)
            if v is not None:
                self.table[k,] = {"k": k, "v": v}
        for span in made.spans:
            for entry in self.logs[who].read("t", partition=span.partition, start=span.base):
                self.ever[entry.partition, entry.offset] = (entry.key, entry.value, entry.deleted)

    @rule(who=st.integers(0, 1))
    def compact(self, who: int) -> None:
        self.logs[who].compact(["t"])
        keys = [entry.key for entry in self.logs[who].read("t")]
        assert len(keys) == len(set(keys))

    @rule(who=st.integers(0, 1))
    def seal(self, who: int) -> None:
        self.logs[who].seal()

    @rule(hours=st.integers(1, 30))
    def pass_time(self, hours: int) -> None:
        self.clock.now += hours * DAY // 24

    @rule(who=st.integers(0, 1))
    def open_again(self, who: int) -> None:
        self.logs[who].close()
        self.logs[who] = self.opened()

    @rule(who=st.integers(0, 1))
    def look(self, who: int) -> None:
        entries = list(self.logs[who].read("t"))
        assert all(self.ever[e.partition, e.offset] == (e.key, e.value, e.deleted) for e in entries)
        assert [e.place for e in entries] == sorted(e.place for e in entries)
        assert folded(self.logs[who]) == self.table
        assert not any(finding.damage for finding in self.logs[who].check())

    @rule(who=st.integers(0, 1), start=st.integers(0, 30), length=st.integers(0, 10))
    def read_a_range(self, who: int, start: int, length: int) -> None:
        everything = [e for e in self.logs[who].read("t", partition=0) if start <= e.offset < start + length]
        assert list(self.logs[who].read("t", partition=0, start=start, end=start + length)) == everything


TestStory = Story.TestCase
TestStory.settings = examples(10, steps=30)
