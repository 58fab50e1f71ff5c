"""A value that is excised is in no file of the log any more; that it was is."""

import getpass
import json
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from penstock.errors import LogError, SchemaError
from penstock.log import Log, Record
from penstock.log.consumers.deliveries import doom
from tests.effort import sample
from tests.log.disks import QuickDisk
from tests.log.dying import HOW, DyingDisk, in_child
from tests.log.test_places import staged
from tests.texts import refused

KEY = "qz81-hzkw-0b5c-jx2v-excise-me-pl3m-77ty"


@pytest.fixture
def log(tmp_path: Path) -> Iterator[Log]:
    with Log.open(tmp_path / "log", disk=QuickDisk()) as log:
        yield log


def fill(log: Log) -> None:
    """The key in every kind of place: sealed and not, in a staged file, in replaced rows, in a deletion."""
    log.create_topic("people", "name STRING, age INT", key="name", partitions=2)
    log.create_topic("visits", "id INT, person STRING")
    log.append("people", [{"name": KEY, "age": 1}, {"name": "bob", "age": 2}])
    log.append("visits", [{"id": 1, "person": KEY}, {"id": 2, "person": "bob"}])
    log.seal()
    log.append("people", [Record({"name": KEY, "age": 3}, replaces={"name": KEY, "age": 1})])
    log.append_files({("visits", 0): [staged(log, "visits", [{"id": 3, "person": KEY}, {"id": 4, "person": None}])]})
    log.append("visits", [Record({"id": 5, "person": "eve"}, replaces={"id": 5, "person": KEY})])
    log.append("people", [Record({"name": KEY, "age": None}, deleted=True), {"name": "eve", "age": 4}])


def with_bytes(folder: Path, needle: str = KEY) -> list[str]:
    """The files that hold the bytes."""
    files = [path for path in sorted(folder.rglob("*")) if path.is_file()]
    return [str(path.relative_to(folder)) for path in files if needle.encode() in path.read_bytes()]


def test_no_file_holds_the_value_and_all_else_is_there(log: Log) -> None:
    fill(log)
    ends = log.ends("people"), log.ends("visits")
    (log.folder / "aside" / f"{0:020}-99.torn").write_bytes(b"torn " + KEY.encode())
    log.staging_path().write_bytes(KEY.encode())
    assert len(with_bytes(log.folder)) >= 4
    assert log.excise("people", {"name": KEY}, by="ann").records == 3
    assert log.excise("visits", {"person": KEY}, by="ann").records == 2
    assert with_bytes(log.folder) == []
    assert [entry.key for entry in log.read("people")] == [("bob",), ("eve",)]
    assert [(e.value["id"], e.replaces) for e in log.read("visits")] == [(2, None), (4, None), (5, None)]  # type: ignore[index,call-overload]
    assert (log.ends("people"), log.ends("visits")) == ends
    assert not any(finding.damage for finding in log.check())


def test_nothing_is_at_the_offsets_of_what_went_and_they_stay_used(log: Log) -> None:
    fill(log)
    log.excise("visits", {"person": KEY})
    assert [entry.offset for entry in log.read("visits")] == [1, 3, 4]
    assert [entry.offset for entry in log.read("visits", start=2)] == [3, 4]  # who stood there misses nothing
    log.append("visits", [{"id": 6, "person": "bob"}])
    with log.group("g").join("visits") as member:
        assert [entry.offset for entry in member.poll(9)] == [1, 3, 4, 5]


def test_that_it_happened_stays_in_the_log(log: Log) -> None:
    fill(log)
    done = log.excise("people", {"name": KEY}, by=getpass.getuser())
    (said,) = [each["excised"] for header in log.frames() for each in header.control if "excised" in each]
    assert said == {
        "topic": "people",
        "columns": ["name"],
        "hash": done.hash,
        "by": getpass.getuser(),
        "records": 3,
    }
    assert KEY not in json.dumps(said) and log.excise("people", {"name": KEY}).hash == done.hash


@pytest.mark.parametrize("letter", ["buried", "doomed"])
def test_the_reason_of_a_rejected_message_goes_too(log: Log, letter: str) -> None:
    fill(log)
    with log.create_queue("q", "people").worker() as worker:
        [message] = worker.take()
        if letter == "buried":
            message.reject(f"{KEY} is nobody")
        else:  # as a worker that is killed in the middle of it
            worker._settle(message, lambda db: doom(db, "q", message.ack, f"{KEY} is nobody"))
        log.excise("people", {"name": KEY})
        log.excise("visits", {"person": KEY})
        if letter == "buried":
            assert with_bytes(log.folder) != []  # dead letters are records of another topic
            log.forget(["q.dead-letters"])
        assert with_bytes(log.folder) == []
        assert len(worker.take(99)) > 0


def announce(log: Log, lineage: int, *reads: str) -> None:
    note = {"pipeline": "shop", "current": lineage, "views": {}, "reads": reads}
    log.append_all({}, producer="shop", sequence=lineage, note=note)


def batch(log: Log, lineage: int, *names: str) -> None:
    log.create_topic(f"shop.{lineage}.visitors", "name STRING", key="name")
    note = {"pipeline": "shop", "lineage": lineage, "batch": 0, "from": 0, "until": 1}
    rows = [{"name": name} for name in names]
    log.append_all({f"shop.{lineage}.visitors": rows}, producer=f"shop/{lineage}", sequence=0, note=note)


def test_who_has_read_a_topic_is_known_also_when_nothing_in_the_log_is_left_of_that(log: Log) -> None:
    fill(log)
    announce(log, 1, "people")
    batch(log, 1, KEY)
    assert (log.readers("people"), log.readers("visits")) == (["shop"], [])
    log.create_topic("shop.3.visitors", "name STRING", key="name")
    assert log.readers("visits") == ["shop"]  # it is begun, and has not said what it reads
    announce(log, 3, "visits")
    assert (log.readers("people"), log.readers("visits")) == ([], ["shop"])
    assert (log.former_readers("people"), log.former_readers("visits")) == (["shop"], [])
    log.forget(["shop.1.visitors"])
    assert log.former_readers("people") == ["shop"]  # with its store there may be something
    announce(log, 4)
    assert (log.readers("visits"), log.former_readers("visits"), log.former_readers("people")) == ([], [], [])


def test_a_topic_without_a_key_and_a_strange_column_are_refused(log: Log) -> None:
    fill(log)
    with refused("log/excising_without_a_key"):
        log.excise("visits", {})
    with pytest.raises(SchemaError, match="does not exist"):
        log.excise("visits", {"persn": "x"})
    with pytest.raises(LogError, match="does not exist"):
        log.excise("nobody", {"name": "x"})


def test_a_stretch_that_cannot_be_sealed_refuses_it(log: Log) -> None:
    fill(log)
    (path,) = (log.folder / "journal").iterdir()
    data = bytearray(path.read_bytes())
    data[data.rindex(b"eve")] ^= 0xFF
    path.write_bytes(data)
    with refused("log/excising_from_damage"):
        log.excise("people", {"name": KEY})


@pytest.mark.parametrize("value", [None, 7])
def test_any_value_can_go(log: Log, value: int | None) -> None:
    log.create_topic("t", "k INT, v DOUBLE", key="k")
    log.append("t", [{"k": 7, "v": 0.0}, {"k": None, "v": -0.0}, {"k": 8, "v": 1.0}])
    log.excise("t", {"k": value})
    assert [entry.key for entry in log.read("t")] == [(k,) for k in (7, None, 8) if k != value]
    log.excise("t", {"v": 0.0})
    assert [entry.key for entry in log.read("t")] == [(8,)]


def test_records_are_excised_after_compaction_and_compacted_after_excision(log: Log) -> None:
    fill(log)
    log.compact(["people"])
    log.excise("people", {"name": KEY})
    log.append("people", [{"name": "bob", "age": 9}])
    log.compact(["people"])
    assert [(e.key, e.value["age"]) for e in log.read("people")] == [(("eve",), 4), (("bob",), 9)]  # type: ignore[index,call-overload]
    log.excise("visits", {"person": KEY})
    assert with_bytes(log.folder) == []


def test_topics_can_be_forgotten_as_a_whole(log: Log) -> None:
    fill(log)
    log.forget(["people", "visits"])
    assert with_bytes(log.folder) == [] and list(log.read("people")) == []
    assert log.begins("visits") == log.ends("visits") == (5,)


def killed(told: Callable[[int], None], folder: Path, nth: int, how: str) -> None:
    log = Log.open(folder, disk=DyingDisk(nth, how))
    log.excise("people", {"name": KEY})
    log.excise("visits", {"person": KEY})
    told(1)
    log.close()


def test_killed_anywhere_it_is_done_by_doing_it_again(tmp_path: Path) -> None:
    for nth, how in sample([(n, how) for n in range(1, 100) for how in HOW], 30):
        folder = tmp_path / f"{nth}-{how}"
        with Log.open(folder, disk=QuickDisk()) as log:
            fill(log)
        told, died = in_child(killed, folder, nth, how)
        with Log.open(folder, disk=QuickDisk()) as log:
            assert not any(finding.damage for finding in log.check())
            log.excise("people", {"name": KEY})
            log.excise("visits", {"person": KEY})
            assert [e.key for e in log.read("people")] == [("bob",), ("eve",)]
            assert [e.value["id"] for e in log.read("visits")] == [2, 4, 5]  # type: ignore[index,call-overload]
        assert with_bytes(folder) == [] and (died or told == 1)
