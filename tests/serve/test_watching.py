"""What a run has written into its diary is shown to who asks a server, in whichever process."""

import fcntl
import json
from pathlib import Path
from typing import Any

import pytest

from penstock.serve.diary import BATCHES, Diary, batches_in
from tests.serve.client import Client
from tests.serve.conftest import Place

PLAN = {
    "name": "shop",
    "log": "shop/.penstock/log",
    "lineage": 1,
    "nodes": [
        {
            "id": "source:orders",
            "kind": "source",
            "title": "orders",
            "detail": "stream (id)",
            "level": None,
            "state": None,
            "warning": None,
        },
        {
            "id": "view:spend",
            "kind": "view",
            "title": "spend",
            "detail": "(city)",
            "level": 0,
            "state": None,
            "warning": None,
        },
    ],
    "edges": [["source:orders", "view:spend"]],
}


def done(batch: int, **more: Any) -> dict[str, Any]:
    return {
        "batch": batch,
        "frame": batch + 10,
        "until": batch + 5,
        "at": "2024-01-31T12:00:00+00:00",
        "seconds": 0.25,
        "phases": {"computing": 0.2},
        "records": {"orders": 3},
        "changes": {"spend": 2},
        "late": {},
        "letters": 0,
        "watermarks": {},
        "state_bytes": None,
        **more,
    }


def diary_of(place: Place, lineage: int = 1, kept: int = 500) -> Diary:
    folder = place.folder / f".penstock/lineages/{lineage}"
    folder.mkdir(parents=True)
    return Diary(folder, kept)


def test_before_the_first_run_there_is_no_plan_and_no_batch(client: Client) -> None:
    got = client.get("/pipeline")
    assert (got.status, got.primary) == (404, 'the plan of pipeline "shop" is not known yet')
    assert got.json["error"]["hint"] == "Run it: penstock run"
    assert client.get("/batches").json == {"batches": [], "lag": 0}


def test_the_plan_is_that_of_the_newest_lineage_that_a_run_has_described(place: Place, client: Client) -> None:
    diary_of(place, 9).describe(PLAN)
    diary_of(place, 10).describe({**PLAN, "lineage": 10})
    diary_of(place, 11)
    assert client.get("/pipeline").json == {**PLAN, "lineage": 10, "running": False}


def test_a_run_is_seen_by_its_lock(place: Place, client: Client) -> None:
    diary_of(place).describe(PLAN)
    with open(place.folder / ".penstock/lock", "w") as lock:
        assert client.get("/pipeline").json["running"] is False
        fcntl.flock(lock, fcntl.LOCK_EX)
        assert client.get("/pipeline").json["running"] is True


def test_batches_come_oldest_first_and_the_newest_of_too_many(place: Place, client: Client) -> None:
    diary = diary_of(place)
    diary.describe(PLAN)
    for number in range(5):
        diary.add([done(number)])
    got = client.get("/batches", limit=2).json
    assert got["batches"] == [{name: value for name, value in done(n).items() if name != "until"} for n in (3, 4)]
    assert client.get("/batches", limit=0).status == 422


def test_lag_is_what_no_batch_has_read(place: Place, client: Client) -> None:
    diary = diary_of(place)
    diary.describe(PLAN)
    for _ in range(3):
        client.append("orders", {"id": 1})
    diary.add([done(0, until=place.log.mark().next_frame - 2)])
    assert client.get("/batches").json["lag"] == 2


def test_the_diary_is_bounded_and_a_new_run_goes_on_with_it(tmp_path: Path) -> None:
    for start in (0, 40, 80):
        diary = Diary(tmp_path, kept=10)
        for number in range(start, start + 40):
            diary.add([done(number)])
            assert [each["batch"] for each in batches_in(tmp_path, 5)] == list(range(max(0, number - 4), number + 1))
            assert len((tmp_path / BATCHES).read_bytes().splitlines()) <= 20


@pytest.mark.parametrize(
    "rest", [b'{"batch":3,"fra', b"\0\0\0\0", b'{"batch":3,"late":{}', b'{"batch":3}', b'{"batch":3,"f{"batch":4}\n']
)
def test_a_torn_line_counts_for_nothing_and_the_next_run_drops_it(tmp_path: Path, rest: bytes) -> None:
    diary = Diary(tmp_path)
    diary.add([done(1), done(2)])
    with (tmp_path / BATCHES).open("ab") as file:
        file.write(rest)
    assert [each["batch"] for each in batches_in(tmp_path, 10)] == [1, 2]
    Diary(tmp_path).add([done(3)])
    assert [each["batch"] for each in batches_in(tmp_path, 10)] == [1, 2, 3]


def test_a_batch_that_was_run_again_is_shown_once(tmp_path: Path) -> None:
    Diary(tmp_path).add([done(1), done(2, seconds=9.0)])
    Diary(tmp_path).add([done(2, seconds=1.0), done(3)])
    assert [(each["batch"], each["seconds"]) for each in batches_in(tmp_path, 10)] == [(1, 0.25), (2, 1.0), (3, 0.25)]


def test_a_disk_that_takes_nothing_stops_nobody(tmp_path: Path) -> None:
    diary = Diary(tmp_path / "gone")
    diary.describe(PLAN)
    diary.add([done(1)])
    assert not (tmp_path / "gone").exists()


def test_a_batch_is_one_line_of_json(tmp_path: Path) -> None:
    Diary(tmp_path).add([done(1, changes={"straße": 1})])
    (line,) = (tmp_path / BATCHES).read_text().splitlines()
    assert json.loads(line)["changes"] == {"straße": 1}
