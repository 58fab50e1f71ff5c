"""Changes over HTTP: every one, once, in order, wherever a reader begins or comes back."""

import json
import socket
from contextlib import ExitStack
from typing import BinaryIO

import pytest

from penstock.serve import Limits, Settings, feed
from penstock.serve.server import serving
from penstock.views import changes
from tests.serve.client import Client, Event
from tests.serve.conftest import Place
from tests.views.shop import Declared, Pair, Shop, Story, spend


def all_events(place: Place, client: Client) -> list[Event]:
    """Every change that there is, and the end of every batch."""
    found = list(changes(place.log, "shop", "spend"))
    with client.follow("spend", **{"from": "0"}) as following:
        return following.news(len(found) + len({change.position.frame for change in found}))


def test_a_reader_gets_what_comes_and_the_end_of_each_batch(place: Place, client: Client) -> None:
    place.batch(spend=[(None, spend("Bern", 1))])
    with client.follow("spend") as following:
        assert following.answer.headers["content-type"].startswith("text/event-stream")
        frame = place.batch(spend=[(spend("Bern", 1), spend("Bern", 2))])
        start, old, new, batch = following.take(4)
    assert (start.kind, start.id) == ("start", str(frame - 1))
    assert (old.id, old.data) == (f"{frame}:0", {"change": -1, "row": {"city": "Bern", "orders": 1, "spend": "1.00"}})
    assert (new.id, new.data["change"], new.data["row"]["orders"]) == (f"{frame}:1", 1, 2)
    assert (batch.kind, batch.id, batch.data["position"]) == ("batch", str(frame), f"1.{frame}")


def test_rows_and_the_changes_after_them_are_the_whole(place: Place, client: Client) -> None:
    place.batch(spend=[(None, spend("Bern", 1))])
    position = client.get("/views/spend/rows").headers["penstock-position"]
    place.batch(spend=[(None, spend("Zug", 1))])
    with client.follow("spend", **{"from": position}) as following:
        assert [row["city"] for _, row in following.changes(1)] == ["Zug"]


@pytest.mark.parametrize("memory", [0, 300, 1 << 20])
def test_who_comes_back_misses_nothing_and_sees_nothing_twice(
    place: Place, client: Client, monkeypatch: pytest.MonkeyPatch, memory: int
) -> None:
    monkeypatch.setattr(feed, "MOST_BYTES", memory)
    with client.follow("spend") as present:
        Story(place.shop, seed=4).go_on(8)
        everything = all_events(place, client)
        for at in range(len(everything) - 1):
            with client.follow("spend", last=everything[at].id) as following:
                assert following.news(len(everything) - at - 1) == everything[at + 1 :]
        assert present.news(len(everything)) == everything


def test_another_lineage_is_the_difference(place: Place, client: Client) -> None:
    place.batch(spend=[(None, spend("Bern", 1)), (None, spend("Zug", 1))])
    with client.follow("spend") as following:
        views = {"spend": Declared("city STRING, orders STRING", key=("city",))}
        second = Shop(place.log, lineage=2, views=views)
        second.batch(spend=[(None, {"city": "Bern", "orders": "many"})])
        second.announce()
        found = following.changes(3)
    assert [(sign, row["city"], row["orders"]) for sign, row in found] == [
        (-1, "Bern", 1),
        (-1, "Zug", 1),
        (1, "Bern", "many"),
    ]


def test_places_that_never_were_are_refused(place: Place, client: Client) -> None:
    end = place.log.mark().next_frame
    for last, status in ((str(end), 400), (f"{end + 5}:1", 400), ("x", 422)):
        with client.follow("spend", last=last) as following:
            assert following.answer.status == status
    with client.follow("nothing") as following:
        assert following.answer.status == 404


LATER = "9" * 15
IDS = {
    400: ["01", "1:01", LATER, f"{LATER}:0"],
    422: ["", "-1", "+1", "1:", ":1", "1:2:3", "1.5", "0x1", LATER + "9", "é", "1" * 5000],
}
STARTS = {400: [LATER], 422: ["", "x", "-1", "01", "1.2.3", "1:2", " 1", "1 ", LATER + "9", "\0"]}


def refusal(client: Client, last: str | None = None, **query: str) -> int:
    """The status with which a reader is sent away, with an error in its three parts."""
    with client.follow("spend", last=last, **query) as following:
        assert following.answer.headers["content-type"] == "application/json", (last, query)
        assert json.load(following.answer)["error"].keys() == {"primary", "detail", "hint"}
        return following.answer.status


def test_what_makes_no_sense_is_refused_and_nobody_follows(place: Place, client: Client) -> None:
    for status, ids in IDS.items():
        assert {each: refusal(client, each) for each in ids} == dict.fromkeys(ids, status)
    for status, starts in STARTS.items():
        assert {each: refusal(client, **{"from": each}) for each in starts} == dict.fromkeys(starts, status)
    assert [refusal(client, **{name: "1"}) for name in ("limit", "From", "after")] == [422] * 3
    assert refusal(client, "0", **{"from": "x"}) == 422
    assert client.send("POST", "/views/spend/changes", b"{}").status == 405
    assert b"penstock_followers 0.0" in client.get("/metrics").data
    with client.follow("spend") as following:
        assert [event.kind for event in following.take(1)] == ["start"]


def test_many_readers_all_get_every_change_at_once(
    place: Place, client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(feed, "BEAT_SECONDS", 1000.0)
    with ExitStack() as open_:
        readers = [open_.enter_context(client.follow("spend")) for _ in range(40)]
        for n in range(6):
            place.batch(spend=[(None, spend(f"{n}", n))])
            assert [[event.data["change"] for event in each.news(2)[:1]] for each in readers] == [[1]] * 40


@pytest.mark.parametrize("comes", ["before", "after"])
def test_what_is_on_its_way_to_one_reader_is_bounded(place: Place, client: Client, comes: str) -> None:
    rows: list[Pair] = [(None, spend(f"{n:05}" + "x" * 1000, n)) for n in range(2000)]
    if comes == "before":
        place.batch(spend=rows)
    with socket.create_connection(("127.0.0.1", int(client.url.rpartition(":")[2])), timeout=20) as connection:
        connection.sendall(b"GET /views/spend/changes?from=0 HTTP/1.1\r\nhost: localhost\r\n\r\n")
        stream = connection.makefile("rb")
        while stream.readline() != b"\r\n":
            pass
        sizes = [_chunk(stream)]  # the event that says where it begins
        if comes == "after":
            place.batch(spend=rows)
        while sum(sizes) < 2_000_000:
            sizes.append(_chunk(stream))
    assert max(sizes) < feed.PIECE_BYTES + 2000


def _chunk(stream: BinaryIO) -> int:
    """The size of a piece of the answer, which is read."""
    size = int(stream.readline(), 16)
    assert len(stream.read(size + 2)) == size + 2
    return size


def test_who_waits_gets_a_sign_of_life(place: Place, client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(feed, "BEAT_SECONDS", 0.05)
    with client.follow("spend") as following:
        lines = [following.answer.readline() for _ in range(5)]
    assert lines[-1] == b": still here\n"


def test_only_so_many_follow_at_once(place: Place) -> None:
    with serving(place.served, Settings(port=0, limits=Limits(followers=1))) as at:
        client = Client(at.url)
        with client.follow("spend") as first:
            first.take(1)
            with client.follow("spend") as second:
                assert second.answer.status == 503
