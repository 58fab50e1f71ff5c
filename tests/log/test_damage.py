"""Whatever byte is damaged, nothing wrong is ever read: what cannot be read is named, and all else is unharmed."""

import re
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from random import Random
from typing import Any

import pyarrow as pa
import pytest

from penstock.errors import DamagedLog, LogError, PenstockError
from penstock.log import Log
from penstock.log.frame import Found, Header
from penstock.log.stretch import PRELUDE, read_prelude, scan
from tests.effort import sample
from tests.log.disks import QuickDisk
from tests.log.story import STEPS, TOPICS, entries, steps_in, take

Entries = list[tuple[int, int, dict[str, Any]]]
NAMED = re.compile(r'topic "(\w+)", partition (\d+), offsets (\d+) to (\d+) are damaged')


class Whole:
    """A log with a sealed stretch, an open one and staged files, and what is in it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        with Log.open(folder, disk=QuickDisk()) as log:
            for name, declared in TOPICS.items():
                log.create_topic(name, **declared)
            for step in range(STEPS):
                take(log, step)
                if step == 4:
                    log.seal()
            assert steps_in(log) == STEPS
            self.entries: dict[str, Entries] = {topic: entries(log, topic) for topic in TOPICS}
            self.frames: list[Header] = list(log.frames())
            self.identity = log.identity

    def files(self, pattern: str) -> list[Path]:
        return sorted(path.relative_to(self.folder) for path in self.folder.glob(pattern))

    @contextmanager
    def damaged(self, into: Path, file: Path, start: int, damage: bytes) -> Iterator[Log]:
        """A copy in which the bytes from `start` on are changed by `damage`, opened."""
        shutil.copytree(self.folder, into)
        data = bytearray((into / file).read_bytes())
        for at, by in enumerate(damage[: len(data) - start]):
            data[start + at] ^= by
        (into / file).write_bytes(data)
        with Log.open(into, disk=QuickDisk()) as log:
            yield log
        shutil.rmtree(into)


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Whole:
    return Whole(tmp_path_factory.mktemp("whole") / "log")


def read(log: Log, topic: str, **how: Any) -> Entries | PenstockError:
    """What is in the topic, or why it cannot be read."""
    try:
        return entries(log, topic, **how)
    except PenstockError as error:
        return error


def damage_in(log: Log, topic: str, want: Entries) -> list[tuple[int, range]]:
    """The offsets that cannot be read, by partition, as the errors name them. All others are read, and right."""
    found = []
    for partition in range(len(log.ends(topic))):
        answer = read(log, topic, partition=partition)
        if isinstance(answer, PenstockError):
            named = NAMED.match(answer.primary)
            assert named and named.group(1, 2) == (topic, str(partition)) and answer.detail and answer.hint
            found.append((partition, range(int(named[3]), int(named[4]) + 1)))
        else:
            assert answer == [entry for entry in want if entry[0] == partition]
    left = [each for each in want if not any(each[0] == p and each[1] in gone for p, gone in found)]
    assert entries(log, topic, skip_damage=True) == left
    return found


def damaged_topics(log: Log, whole: Whole) -> set[str]:
    """The topics that cannot be read wholly; the check names them too, and frames and identity are unharmed."""
    assert list(log.frames()) == whole.frames and log.identity == whole.identity
    found = {topic for topic in TOPICS if damage_in(log, topic, whole.entries[topic])}
    told = problems(log)
    named = {match[1] for problem in told if (match := NAMED.match(problem))}
    assert found == named or "the prelude cannot be read" in told
    return found


def problems(log: Log) -> list[str]:
    return [problem for finding in log.check() for problem in finding.damage]


def flips(path: Path, few: int) -> list[tuple[int, bytes]]:
    random = Random(path.name)
    return [(at, bytes([random.randrange(1, 256)])) for at in sample(range(path.stat().st_size), few)]


def bodies(path: Path) -> list[range]:
    """Where in a stretch file the records are."""
    with open(path, "rb") as file:
        prelude = read_prelude(file.fileno())
        assert prelude is not None
        frames = [each for each in scan(file.fileno(), prelude[1], path.stat().st_size) if isinstance(each, Found)]
    return [range(found.body, found.body + found.body_bytes) for found in frames]


def test_a_flipped_byte_of_the_journal_harms_at_most_the_block_that_it_lies_in(whole: Whole, tmp_path: Path) -> None:
    (journal,) = whole.files("journal/*")
    records = bodies(whole.folder / journal)
    for at, by in flips(whole.folder / journal, 30):
        with whole.damaged(tmp_path / "log", journal, at, by) as log:
            harmed = damaged_topics(log, whole)
            assert len(harmed) == any(at in body for body in records)


def test_a_flipped_byte_of_a_header_is_made_good_by_the_other_header_and_named_by_the_check(
    whole: Whole, tmp_path: Path
) -> None:
    (journal,) = whole.files("journal/*")
    first = bodies(whole.folder / journal)[0]
    for at in (first.start - 10, first.stop + 10):
        with whole.damaged(tmp_path / "log", journal, at, b"\1") as log:
            assert damaged_topics(log, whole) == set()
            assert [finding.damage for finding in log.check()][-1] == ("frame 8: one of its headers is damaged",)
            assert log.seal() == 0
            assert steps_in(log) == STEPS


def test_a_flipped_byte_of_a_sealed_file_harms_at_most_its_topic(whole: Whole, tmp_path: Path) -> None:
    for file in whole.files("sealed/*/*.arrow"):
        for at, by in flips(whole.folder / file, 6):
            with whole.damaged(tmp_path / "log", file, at, by) as log:
                assert damaged_topics(log, whole) <= {file.name.split(".")[0]}


def test_a_flipped_byte_of_sealed_headers_harms_no_frame_and_only_in_the_prelude_the_records(
    whole: Whole, tmp_path: Path
) -> None:
    (headers,) = whole.files("sealed/*/headers.journal")
    with open(whole.folder / headers, "rb") as file:
        prelude = read_prelude(file.fileno())
    assert prelude is not None
    for at, by in flips(whole.folder / headers, 20):
        with whole.damaged(tmp_path / "log", headers, at, by) as log:
            in_prelude = at < prelude[1] and not PRELUDE.size - 4 <= at < PRELUDE.size
            assert damaged_topics(log, whole) == (set(TOPICS) if in_prelude else set())


def test_a_flipped_byte_of_a_staged_file_harms_its_topic_and_keeps_the_stretch_from_being_sealed(
    whole: Whole, tmp_path: Path
) -> None:
    for file in whole.files("staged/*+*"):
        for at, by in flips(whole.folder / file, 4):
            with whole.damaged(tmp_path / "log", file, at, by) as log:
                (harmed,) = damaged_topics(log, whole)
                log.append("raw", [b"more"])
                assert log.seal() == 1
                assert damage_in(log, harmed, whole.entries[harmed])


def test_a_flipped_byte_of_the_mark_or_of_the_identity_harms_nothing(whole: Whole, tmp_path: Path) -> None:
    for name in ("committed", "identity.json"):
        for at, by in flips(whole.folder / name, 8):
            with whole.damaged(tmp_path / "log", Path(name), at, by) as log:
                assert damaged_topics(log, whole) == set()
                assert log.set_aside() == []


def test_a_missing_file_is_damage_too(whole: Whole, tmp_path: Path) -> None:
    for file in [*whole.files("sealed/*/*.arrow"), *whole.files("staged/*+*")]:
        shutil.copytree(whole.folder, tmp_path / "log")
        (tmp_path / "log" / file).unlink()
        with Log.open(tmp_path / "log", disk=QuickDisk()) as log:
            assert len(damaged_topics(log, whole)) == 1
        shutil.rmtree(tmp_path / "log")


def test_a_reader_that_skips_damage_gets_all_batches_of_a_sealed_file_but_the_damaged_one(tmp_path: Path) -> None:
    with Log.open(tmp_path / "log", disk=QuickDisk()) as log:
        log.create_topic("t", "id BIGINT")
        log.append("t", pa.table({"id": range(200_000)}))
        log.seal()
        path = tmp_path / "log" / "sealed" / f"{0:020}" / "t.0.arrow"
        data = bytearray(path.read_bytes())
        data[len(data) // 2] ^= 1
        path.write_bytes(data)
        read = sum(batch.num_rows for batch in log.batches("t", skip_damage=True))
        assert read in (200_000 - 65_536, 200_000 - (200_000 - 3 * 65_536))
        with pytest.raises(DamagedLog, match='topic "t", partition 0, offsets 65536 to 131071 are damaged'):
            list(log.batches("t"))


# More than one byte


@pytest.mark.parametrize("size", [512, 4096])
def test_a_damaged_page_never_makes_anything_wrong_be_read(whole: Whole, tmp_path: Path, size: int) -> None:
    """Frames may be lost then, topics unknown; but what is read was written, and what is missing is told."""
    for file in [*whole.files("journal/*"), *whole.files("sealed/*/*")]:
        pages = range(0, (whole.folder / file).stat().st_size, size)
        for start in sample(pages, 5):
            with whole.damaged(tmp_path / "log", file, start, Random(start).randbytes(size)) as log:
                for topic, want in whole.entries.items():
                    assert_nothing_wrong(log, topic, want)
                    assert_appends_still(log, topic, want)


def assert_nothing_wrong(log: Log, topic: str, want: Entries) -> None:
    answer = read(log, topic)
    if isinstance(answer, PenstockError):
        assert isinstance(answer, DamagedLog) or answer.primary == f'topic "{topic}" does not exist'
    else:
        assert answer == want or (frames_are_lost(log) and is_part(answer, want))
    skipping = read(log, topic, skip_damage=True)
    assert isinstance(skipping, LogError) or is_part(skipping, want)


def is_part(some: Entries | PenstockError, want: Entries) -> bool:
    return isinstance(some, list) and all(each in want for each in some)


def frames_are_lost(log: Log) -> bool:
    """Whether the log says so: records at the end of a topic may have gone with them."""
    return bool(log.set_aside()) or any("hold no readable frame" in problem for problem in problems(log))


def assert_appends_still(log: Log, topic: str, want: Entries) -> None:
    """Declared again where its creation is lost, the topic takes records, and they get offsets of their own."""
    log.create_topic(topic, **TOPICS[topic])
    span = log.append(topic, [b"new" if topic == "raw" else {"id": 10**6}]).spans[0]
    (entry,) = log.read(topic, partition=span.partition, start=span.base)
    assert entry.value in (b"new", {"id": 10**6, "text": None})
    mine = [offset for partition, offset, _ in want if partition == span.partition]
    assert span.base == len(mine) or frames_are_lost(log)


def test_a_topic_whose_creation_is_lost_goes_on_after_its_old_records_when_declared_again(tmp_path: Path) -> None:
    with Log.open(tmp_path / "log", disk=QuickDisk()) as log:
        log.create_topic("t", "id INT")
        log.change_schema("t", "id INT, more INT")
        for each in range(3):
            log.append("t", [{"id": each}])
    path = tmp_path / "log" / "journal" / f"{0:020}.journal"
    data = path.read_bytes()
    with open(path, "rb") as file:
        creation, *_ = scan(file.fileno(), read_prelude(file.fileno())[1], len(data))  # type: ignore[index]
    path.write_bytes(data[: creation.start] + bytes(creation.end - creation.start) + data[creation.end :])
    with Log.open(tmp_path / "log", disk=QuickDisk()) as log:
        with pytest.raises(LogError, match='topic "t" does not exist'):
            list(log.read("t"))
        log.create_topic("t", "id INT")
        assert log.append("t", [{"id": 3}]).spans[0].base == 3
        with pytest.raises(DamagedLog, match='topic "t", partition 0, offsets 0 to 0 are damaged'):
            list(log.read("t"))
        assert [entry.offset for entry in log.read("t", skip_damage=True)] == [3]
