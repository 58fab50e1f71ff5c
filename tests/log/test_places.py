"""What only the embedded log has: places, frames, staged files, and the finding of damage."""

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from penstock.errors import ConditionFailed, DamagedLog, LogError, SchemaError
from penstock.log import EndOffset, Limits, Log, Place, Record
from penstock.log.columns import block_schema
from penstock.log.records import Span
from tests.log.disks import QuickDisk
from tests.texts import refused

Opener = Callable[..., Log]
NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)


@pytest.fixture
def log(open_log: Opener) -> Log:
    """Two topics, `a` of two partitions and `b` of one, in stretches of three frames."""
    log = open_log(disk=QuickDisk(), limits=Limits(stretch_frames=3))
    log.create_topic("a", "id INT, at TIMESTAMP", key="id", event_time="at", partitions=2)
    log.create_topic("b", "id INT")
    return log


def rows(*ids: int) -> list[dict[str, int]]:
    return [{"id": each} for each in ids]


def ids(log: Log, topic: str, **where: Any) -> list[int]:
    return [entry.value["id"] for entry in log.read(topic, **where)]  # type: ignore[index,call-overload]


def staged(log: Log, topic: str, *batches: list[dict[str, Any]], extras: tuple[str, ...] = ()) -> Path:
    """A staged file with these batches of rows."""
    path = log.staging_path()
    schema = block_schema(log.topic(topic).schema, extras)
    with pa.OSFile(str(path), "wb") as sink, pa.ipc.new_file(sink, schema) as writer:
        for each in batches:
            writer.write_batch(pa.RecordBatch.from_pylist(each, schema=schema))
    return path


# Places


def test_places_order_the_records_of_all_topics_as_they_were_appended(log: Log) -> None:
    for each in range(0, 40, 4):
        log.append_all({"a": rows(each, each + 1), "b": rows(each + 2, each + 3)})
    entries = sorted([*log.read("a"), *log.read("b")], key=lambda entry: entry.place)
    by_append = [sorted(entry.value["id"] for entry in entries[at : at + 4]) for at in range(0, 40, 4)]  # type: ignore[index,call-overload]
    assert by_append == [list(range(at, at + 4)) for at in range(0, 40, 4)]
    assert len({entry.place for entry in entries}) == 40


@pytest.mark.parametrize("sealed", [False, True])
def test_reading_begins_at_any_place_and_ends_before_any(log: Log, *, sealed: bool) -> None:
    for each in range(12):
        log.append_all({"a": rows(each, each + 100), "b": rows(each)})
    if sealed:
        log.seal()
    everything = list(log.read("a"))
    assert everything == sorted(everything, key=lambda entry: entry.place)
    for at, entry in enumerate(everything):
        assert list(log.read("a", start=entry.place)) == everything[at:]
        assert list(log.read("a", end=entry.place)) == everything[:at]
    assert list(log.read("a", start=Place(10**6))) == list(log.read("a", end=Place(0))) == []


@pytest.mark.parametrize("sealed", [False, True])
def test_reading_by_time_finds_the_frame_in_any_stretch(open_log: Opener, *, sealed: bool) -> None:
    ticks = iter(range(0, 1000, 10))
    log = open_log(disk=QuickDisk(), limits=Limits(stretch_frames=3), clock=lambda: next(ticks))
    log.create_topic("b", "id INT")
    times = [log.append("b", rows(each)).appended_at for each in range(12)]
    if sealed:
        log.seal()
    for at, time in enumerate(times):
        assert ids(log, "b", start=time) == list(range(at, 12))
        assert ids(log, "b", start=time + timedelta(microseconds=1)) == list(range(at + 1, 12))


def test_no_columns_asked_for_are_batches_that_count_their_rows(log: Log) -> None:
    log.append_all({"a": rows(1, 2, 3), "b": rows(4, 5)})
    for _ in range(2):
        for topic, count in (("a", 3), ("b", 2)):
            batches = list(log.batches(topic, columns=[]))
            assert sum(batch.num_rows for batch in batches) == count
            assert not any(batch.num_columns for batch in batches)
        log.seal()


# Frames


def test_frames_tell_what_was_appended_in_them(log: Log) -> None:
    log.append_all({"a": [{"id": 1, "at": NOON}]}, producer="p", sequence=3, note={"why": "test"})
    log.punctuate("a", NOON, scope="west")
    *_, appended, punctuated = log.frames()
    assert (appended.producer, appended.sequence, appended.note) == ("p", 3, {"why": "test"})
    (block,) = appended.blocks
    assert (block.topic, block.base, block.count) == ("a", 0, 1)
    assert block.times is not None and block.times[0] == block.times[1] == block.top
    (punctuation,) = punctuated.punctuation
    assert (punctuation.topic, punctuation.until, punctuation.scope) == ("a", block.top, "west")


def test_frames_can_be_listed_from_any_number(log: Log) -> None:
    for each in range(8):
        log.append("b", rows(each))
    numbers = [header.frame for header in log.frames()]
    assert numbers == list(range(10)) and log.mark().next_frame == 10
    for start in range(12):
        assert [header.frame for header in log.frames(start)] == numbers[start:]


def test_the_frame_of_a_producer_and_sequence_is_found(log: Log) -> None:
    done = [log.append("b", rows(each), producer="p", sequence=each) for each in range(8)]
    found = [log.find("p", each) for each in range(8)]
    assert [header and header.frame for header in found] == [each.frame for each in done]
    assert log.find("p", 99) is None


def test_the_largest_event_time_runs_along_with_the_blocks(log: Log) -> None:
    for seconds in (5, 3, 9, None, 2):
        at = None if seconds is None else NOON + timedelta(seconds=seconds)
        log.append("a", [{"id": 1, "at": at}])
    tops = [block.top for header in log.frames() for block in header.blocks]
    assert [top and (top // 10**6) % 60 for top in tops] == [5, 5, 9, 9, 9]


# Staged files


def test_staged_files_are_appended_in_one_transaction(log: Log) -> None:
    files = {
        ("a", 0): [staged(log, "a", rows(1), rows(2, 3)), staged(log, "a", rows(4))],
        ("b", 0): [staged(log, "b", rows(5))],
    }
    done = log.append_files(files, producer="p", sequence=1)
    assert done.spans == (Span("a", 0, 0, 3), Span("a", 0, 3, 1), Span("b", 0, 0, 1))
    assert ids(log, "a") == [1, 2, 3, 4] and ids(log, "b") == [5]
    assert ids(log, "a", partition=0, start=1, end=3) == [2, 3]


def test_a_staged_file_can_hold_deletions_and_headers_and_nothing(log: Log) -> None:
    path = staged(log, "a", [{"id": 1, "_deleted": True}, {"id": 2, "_deleted": False}], extras=("_deleted",))
    log.append_files({("a", 0): [path, staged(log, "a"), staged(log, "a", [])]})
    assert [entry.deleted for entry in log.read("a")] == [True, False]
    log.seal()
    assert [entry.deleted for entry in log.read("a")] == [True, False]


def test_repeating_an_append_of_files_does_not_need_the_files(log: Log) -> None:
    files = {("b", 0): [staged(log, "b", rows(1))]}
    first = log.append_files(files, producer="p", sequence=1)
    log.seal()
    assert not files["b", 0][0].exists()
    again = log.append_files(files, producer="p", sequence=1)
    assert again.repeated and again.spans == first.spans and ids(log, "b") == [1]


def test_a_staged_file_appended_twice_is_there_twice_when_the_first_is_sealed(log: Log) -> None:
    path = staged(log, "b", rows(1, 2))
    log.append_files({("b", 0): [path]})
    log.append_files({("b", 0): [path, path]})  # in the next stretch
    log.append("b", rows(3))
    assert log._sealing.run() == 0
    assert ids(log, "b") == [1, 2, 1, 2, 1, 2, 3]
    log.seal()
    assert ids(log, "b") == [1, 2, 1, 2, 1, 2, 3] and not list((log.folder / "staged").iterdir())


def test_a_staged_file_whose_append_was_refused_can_be_appended(log: Log) -> None:
    path = staged(log, "b", rows(1))
    with pytest.raises(ConditionFailed):
        log.append_files({("b", 0): [path]}, expect=[EndOffset("b", 0, 7)])
    assert list((log.folder / "staged").iterdir()) == [path]
    with pytest.raises(SchemaError):
        log.append_files({("b", 0): [path], ("a", 0): [path]})
    log.append_files({("b", 0): [path]}, expect=[EndOffset("b", 0, 0)])
    assert ids(log, "b") == [1]


def test_a_staged_file_that_was_appended_and_sealed_is_gone(log: Log) -> None:
    path = staged(log, "b", rows(1))
    log.append_files({("b", 0): [path]})
    log.seal()
    with pytest.raises(LogError, match="there is no staged file"):
        log.append_files({("b", 0): [path]})


@pytest.mark.parametrize("compression", ["lz4", "zstd"])
def test_a_compressed_staged_file_is_refused(log: Log, compression: str) -> None:
    path = log.staging_path()
    schema = block_schema(log.topic("b").schema, ())
    options = pa.ipc.IpcWriteOptions(compression=compression)
    with pa.OSFile(str(path), "wb") as sink, pa.ipc.new_file(sink, schema, options=options) as writer:
        writer.write_batch(pa.RecordBatch.from_pylist(rows(1, 2), schema=schema))
    with pytest.raises(LogError, match=r"is compressed\n.*Write it uncompressed"):
        log.append_files({("b", 0): [path]})
    assert log.ends("b") == (0,)


def test_a_staged_file_that_does_not_suit_is_refused(log: Log, tmp_path: Path) -> None:
    garbage = log.staging_path()
    garbage.write_bytes(b"no arrow")
    for path, error in {
        staged(log, "b", rows(1)): SchemaError,
        garbage: LogError,
        log.staging_path(): LogError,
        tmp_path / "elsewhere.arrow": LogError,
        staged(log, "a", [{"id": 1}], extras=("_deleted",)): SchemaError,
    }.items():
        with pytest.raises(error):
            log.append_files({("a", 0): [path]})
    with pytest.raises(LogError, match="has no partition 2"):
        log.append_files({("a", 2): [staged(log, "a", rows(1))]})
    assert log.ends("a") == (0, 0)


# Records that hold anything


def test_a_record_can_hold_the_frames_of_a_log(log: Log) -> None:
    log.create_topic("copies")
    log.append("copies", [Record(next((log.folder / "journal").glob("*")).read_bytes()) for _ in range(2)])
    before = list(log.read("copies"))
    log.close()
    again = Log.open(log.folder)
    assert list(again.read("copies")) == before and again.set_aside() == []
    again.close()


def test_one_append_holds_no_more_records_than_a_place_can_number(log: Log) -> None:
    log.create_topic("flags", "flag BOOLEAN")
    with refused("log/too-many-records"):
        log.append("flags", pa.table({"flag": pa.nulls(2**24 + 1, pa.bool_())}))
    assert log.append("flags", pa.table({"flag": pa.nulls(2**24, pa.bool_())})).spans[0].count == 2**24


# Opening


def test_a_journal_that_is_gone_is_damage_and_not_a_new_log(log: Log) -> None:
    log.close()
    for path in (log.folder / "journal").iterdir():
        path.unlink()
    with pytest.raises(DamagedLog, match="is missing"):
        Log.open(log.folder)


def test_a_log_of_another_format_is_refused(tmp_path: Path) -> None:
    (tmp_path / "log" / "journal").mkdir(parents=True)
    (tmp_path / "log" / "identity.json").write_text('{"format": 1, "identity": "x", "created_at": 0}')
    with pytest.raises(LogError, match="has format 1"):
        Log.open(tmp_path / "log")


def test_a_log_keeps_its_identity(log: Log, open_log: Opener) -> None:
    assert open_log().identity == log.identity


def test_a_log_opened_by_many_at_once_is_made_once(tmp_path: Path) -> None:
    logs = [Log.open(tmp_path / "deep" / "er") for _ in range(3)]
    assert len({log.identity for log in logs}) == 1
    for log in logs:
        log.close()


def test_a_note_is_refused_if_it_is_no_json(log: Log) -> None:
    with refused("log/note-no-json"):
        log.append_all({"b": rows(1)}, note={"set": {1, 2}})


def test_a_log_does_not_begin_in_a_folder_of_others(tmp_path: Path) -> None:
    (tmp_path / "README.md").write_text("something else")
    with pytest.raises(LogError, match="is not empty, and no log"):
        Log.open(tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["README.md"]
