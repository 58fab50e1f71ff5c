"""Groups of the embedded log: the contract, and what becomes of the facts beside the journal."""

import errno
import os
import shutil
import time
from collections.abc import Callable, Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from penstock.errors import DamagedLog, LogError
from penstock.log import Entry, Log
from penstock.log.consumers import Group, Member, Terms
from tests.log.contract_groups import *  # noqa: F403
from tests.log.contract_groups import ALL, Opener, polled
from tests.texts import refused


def lose_facts(folder: Path) -> None:
    for path in folder.glob("consumers.sqlite*"):
        path.unlink()


def test_a_log_without_groups_has_no_facts(stock: Log, folder: Path) -> None:
    assert stock.consumers.groups() == [] and stock.consumers.queues() == []
    assert stock.consumers.lowest("items") == {}
    assert not list(folder.glob("consumers*"))


def test_lost_facts_are_noticed(stock: Log, folder: Path, open_log: Opener) -> None:
    stock.group("g").reset("items", "latest")
    stock.close()
    lose_facts(folder)
    log = open_log()
    for use in (Group.lag, lambda group: group.join("items")):
        with refused("log/lost-group", folder=folder):
            use(log.group("g"))
    log.group("g").reset("items", 2, partition=0)
    with log.group("g").join("items") as member:
        assert polled(member, 18) == [each for each in ALL if each not in (0, 1)]


def test_a_deleted_group_is_not_taken_for_a_lost_one(stock: Log, folder: Path, open_log: Opener) -> None:
    stock.group("g").reset("items", "latest")
    stock.group("g").delete()
    stock.close()
    lose_facts(folder)
    with open_log().group("g").join("items") as member:
        assert polled(member, 20) == ALL


def test_facts_that_are_taken_away_while_in_use_are_noticed(stock: Log, folder: Path) -> None:
    stock.group("g").reset("items", "latest")
    lose_facts(folder)
    with refused("log/facts-gone", folder=folder):
        stock.group("g").lag()


def test_facts_of_another_log_are_refused(stock: Log, folder: Path, tmp_path: Path, open_log: Opener) -> None:
    stock.group("g").reset("items", "latest")
    stock.close()
    with Log.open(tmp_path / "other") as other:
        shutil.copy(folder / "consumers.sqlite", other.folder)
        with refused("log/facts-of-another-log", folder=tmp_path, made_for=stock.identity, this=other.identity):
            other.group("g").lag()


@pytest.mark.parametrize("data", [b"no database", b"x" * 8192])
def test_damaged_facts_are_told(stock: Log, folder: Path, open_log: Opener, data: bytes) -> None:
    stock.close()
    (folder / "consumers.sqlite").write_bytes(data)
    with pytest.raises(DamagedLog, match="is damaged"):
        open_log().group("g").lag()


def test_a_copy_of_old_facts_brings_records_again(stock: Log, folder: Path, open_log: Opener) -> None:
    stock.group("g").reset("items", "earliest")
    stock.close()
    shutil.copy(folder / "consumers.sqlite", folder / "copy")
    log = open_log()
    log.group("g").reset("items", "latest")
    log.close()
    lose_facts(folder)
    shutil.move(folder / "copy", folder / "consumers.sqlite")
    with open_log().group("g").join("items") as member:
        assert polled(member, 20) == ALL


def test_facts_that_find_no_room_are_told_and_stay_as_they_were(stock: Log) -> None:
    stock.group("g").reset("items", "earliest")
    with stock.consumers._facts.reading() as db:
        pages = db.pragma("page_count")
    stock.consumers._facts._opened().pragma("max_page_count", pages)
    with refused("log/facts-no-room", folder=stock.folder):
        for each in range(1000):
            stock.group(f"{each}" * 20).reset("items", "latest")
    assert [lag.committed for lag in stock.group("g").lag()] == [0] * 4
    stock.group("g").reset("items", "latest")


class Shrunk:
    """A log whose partitions begin later: retention has taken what was before."""

    def __init__(self, log: Log, begin: int) -> None:
        self._log, self._begin = log, begin

    def __getattr__(self, name: str) -> Any:
        return getattr(self._log, name)

    def begins(self, name: str) -> tuple[int, ...]:
        return (self._begin,) * self._log.topic(name).partitions


@pytest.fixture
def shrunk(stock: Log) -> Iterator[Callable[[int], None]]:
    at = stock.consumers._at

    def shrink(begin: int) -> None:
        object.__setattr__(at, "source", Shrunk(stock, begin))

    yield shrink
    object.__setattr__(at, "source", stock)


def test_offsets_that_are_gone_are_refused_or_passed_over(stock: Log, shrunk: Callable[[int], None]) -> None:
    stock.group("g").reset("items", "earliest")
    shrunk(3)
    with stock.group("g").join("items") as member, refused("log/group-offset-gone"):
        member.poll()
    with stock.group("g").join("items", terms=Terms(missing="earliest")) as member:
        assert polled(member, 8) == [each for each in ALL if each % 100 >= 3]
    with stock.group("g").join("items", terms=Terms(missing="latest")) as member:
        assert member.poll() == []


def test_a_reset_goes_to_the_first_record_that_is_there(stock: Log, shrunk: Callable[[int], None]) -> None:
    shrunk(2)
    assert {*stock.group("g").reset("items", "earliest").values()} == {2}
    with pytest.raises(LogError, match="cannot go on at offset 1"):
        stock.group("g").reset("items", 1, partition=0)


# Sessions, by a clock that stands still


@pytest.fixture
def clock() -> list[int]:
    return [1_000_000]


@pytest.fixture
def still(open_log: Opener, clock: list[int]) -> Log:
    log = open_log(clock=lambda: clock[0])
    log.create_topic("items", "n BIGINT", partitions=2)
    return log


def heartless(log: Log, name: str) -> Member:
    """A member of group g that lives for ten seconds after each beat."""
    return Member(log.consumers._at, "g", name, ["items"], Terms(), None)


def test_a_member_dies_when_its_session_ends(still: Log, clock: list[int]) -> None:
    one, other = heartless(still, "one"), heartless(still, "other")
    one.poll()
    clock[0] += 9_999_999
    other.beat()
    assert [*still.group("g").members()] == ["one", "other"]
    clock[0] += 1
    other.poll()
    assert still.group("g").members() == {"other": [("items", 0), ("items", 1)]}
    assert not one.beat()


def test_a_commit_is_a_sign_of_life(still: Log, clock: list[int]) -> None:
    still.append("items", [{"n": 1}])
    one, other = heartless(still, "one"), heartless(still, "other")
    one.poll()
    other.poll()
    for _ in range(3):
        clock[0] += 6_000_000
        one.beat()
        other.beat()
    assert len(still.group("g").members()) == 2


def test_a_heart_beats_while_its_member_is_busy(stock: Log) -> None:
    terms = Terms(session=timedelta(milliseconds=200))
    with stock.group("g").join("items", terms=terms) as busy:
        polled(busy, 20)
        with stock.group("g").join("items") as other:
            time.sleep(0.6)  # three sessions
            assert other.poll() == []
        busy.commit()


def test_a_closed_log_has_no_living_members(stock: Log, open_log: Opener) -> None:
    log = open_log()
    member = log.group("g").join("items", terms=Terms(session=timedelta(milliseconds=50)))
    log.close()
    with pytest.raises(LogError, match="the log is closed"):
        member.poll()
    with stock.group("g").join("items") as other:
        assert polled(other, 20) == ALL


@pytest.mark.parametrize(
    "terms",
    [
        {"session": timedelta(0)},
        {"patience": timedelta(0)},
        {"start": "now"},
        {"missing": "skip"},
    ],
)
def test_terms_that_make_no_sense_are_refused(terms: dict[str, Any]) -> None:
    with pytest.raises(LogError):
        Terms(**terms)


def test_a_poll_that_fails_in_one_partition_passes_over_nothing_of_the_others(
    stock: Log, monkeypatch: pytest.MonkeyPatch
) -> None:
    read, reads = stock.read, list[int]()

    def failing(topic: str, *, partition: int, start: int, end: int) -> Iterator[Entry]:
        reads.append(partition)
        if len(reads) == 3:
            raise OSError(errno.EMFILE, os.strerror(errno.EMFILE))
        return read(topic, partition=partition, start=start, end=end)

    monkeypatch.setattr(stock, "read", failing)
    with stock.group("g").join("items") as member:
        with pytest.raises(OSError, match="open files"):
            member.poll()
        assert polled(member, 20) == ALL
