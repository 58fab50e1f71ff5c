"""Webhooks over HTTP: what they have given up, and how it is sent again."""

import socket
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Event
from urllib.parse import urlsplit

import pytest

from penstock.app.place import place_of
from penstock.app.sinks import redriven
from penstock.model import load_pipeline
from penstock.serve import Settings
from penstock.serve.settings import Scope, hashed
from tests.app.receivers import Answer, Posted
from tests.app.sinking import soon
from tests.dashboard.scene import Scene, scene
from tests.serve.client import Client
from tests.texts import refused

READ, WRITE = "a-token-for-readers", "a-token-for-writers"
LETTERS = "/sinks/spend/webhook/letters"


@pytest.fixture
def shop(tmp_path: Path) -> Iterator[Scene]:
    tokens: dict[bytes, frozenset[Scope]] = {
        hashed(READ): frozenset({"read"}),
        hashed(WRITE): frozenset({"read", "write"}),
    }
    with scene(tmp_path / "shop") as shop, shop.served(Settings(port=0, tokens=tokens)):
        yield shop


def client(shop: Scene, token: str) -> Client:
    return Client(shop.url, {"authorization": f"Bearer {token}"})


def redrive(shop: Scene, body: bytes = b"{}", *, token: str = WRITE, sink: str = "webhook") -> tuple[int, object]:
    where = f"/sinks/spend/{sink}/redrive"
    got = client(shop, token).send("POST", where, body, {"content-type": "application/json"})
    return got.status, got.json


def offsets(shop: Scene) -> list[int]:
    return [each["offset"] for each in client(shop, READ).get(LETTERS).json["letters"]]


def test_dead_letters_of_a_webhook_are_shown_and_sent_again(shop: Scene) -> None:
    topic = "shop.spend.webhook.dead-letters"
    found = client(shop, READ).get("/sinks").json["sinks"]
    assert found == [{"view": "spend", "sink": "webhook", "dead": 2, "letters": topic}]
    first, _ = client(shop, READ).get(LETTERS).json["letters"]
    assert (first["reason"], first["attempts"]) == ("It answered 500 Internal Server Error", 20)
    assert first["record"]["values"]["id"] == "msg_0"
    assert redrive(shop, b'{"limit": 1}') == (200, {"view": "spend", "sink": "webhook", "redriven": 1, "left": 1})
    assert offsets(shop) == [1]
    assert redrive(shop)[0] == 200
    assert offsets(shop) == [] and [each.id for each in shop.receiver.taken] == ["msg_0", "msg_1"]


def test_what_the_receiver_does_not_take_waits(shop: Scene) -> None:
    shop.receiver.answer = lambda posted: (204 if posted.id == "msg_0" else 500, {})
    status, told = redrive(shop)
    assert status == 502
    assert "Before it, 1 of the dead letters were taken." in str(told)
    assert offsets(shop) == [1]


def test_who_comes_while_letters_are_sent_again_is_refused(shop: Scene) -> None:
    go_on = Event()

    def answer(_: Posted) -> Answer:
        go_on.wait(30)
        return 204, {}

    shop.receiver.answer = answer
    with ThreadPoolExecutor(1) as beside:
        first = beside.submit(redrive, shop)
        assert soon(lambda: len(shop.receiver.asked) == 1)
        try:
            with refused("views/letters-being-sent"):
                redriven(place_of(shop.folder), load_pipeline(shop.folder), shop.log, "spend", limit=1)
            status, told = redrive(shop, b'{"limit": 1}')
        finally:
            go_on.set()
    assert status == 409 and 'of view "spend" are being sent again already' in str(told)
    assert first.result() == (200, {"view": "spend", "sink": "webhook", "redriven": 2, "left": 0})
    assert redrive(shop) == (200, {"view": "spend", "sink": "webhook", "redriven": 0, "left": 0})
    assert [each.id for each in shop.receiver.asked] == ["msg_0", "msg_1"]


@pytest.mark.parametrize("body", [b"{}", b'{"limit": 5}'])
def test_one_request_sends_so_many_and_tells_how_many_are_left(
    shop: Scene, monkeypatch: pytest.MonkeyPatch, body: bytes
) -> None:
    monkeypatch.setattr("penstock.serve.sinks.MOST", 1)
    assert redrive(shop, body) == (200, {"view": "spend", "sink": "webhook", "redriven": 1, "left": 1})
    assert offsets(shop) == [1]


def test_a_server_that_stops_sends_no_more(tmp_path: Path) -> None:
    with scene(tmp_path / "shop") as shop, ThreadPoolExecutor(1) as beside:
        with shop.served(Settings(port=0)):
            shop.receiver.answer = lambda _: (204 if soon(lambda: not listens(shop)) else 500, {})
            beside.submit(redrive, shop)
            assert soon(lambda: len(shop.receiver.asked) == 1)
        assert [each.id for each in shop.receiver.asked] == ["msg_0"] == [each.id for each in shop.receiver.taken]


def listens(shop: Scene) -> bool:
    at = urlsplit(shop.url)
    with socket.socket() as asking:
        return asking.connect_ex((at.hostname, at.port)) == 0


@pytest.mark.parametrize(
    "held", [b"", b"[]", b"{}", b'{"log": "LOG", "next": null}', b'{"log": "LOG", "next": Infinity}']
)
def test_a_damaged_note_is_named(shop: Scene, held: bytes) -> None:
    note = shop.folder / ".penstock/sinks/spend.webhook.redriven.json"
    note.parent.mkdir(parents=True, exist_ok=True)
    note.write_bytes(held.replace(b"LOG", shop.log.identity.encode()))
    got = [client(shop, READ).get(path) for path in ("/sinks", LETTERS)]
    answers = [*((each.status, each.json) for each in got), redrive(shop)]
    for status, told in answers:
        assert status == 500 and f'"{note}" cannot be read' in str(told) and "Take the file away" in str(told)
    assert shop.receiver.asked == []


def test_to_send_again_needs_a_token_that_may_write_and_a_sink(shop: Scene) -> None:
    assert redrive(shop, token=READ)[0] == 403
    assert redrive(shop, sink="email")[0] == 404
    assert redrive(shop, b'{"limit": 0}')[0] == 422
    assert shop.receiver.asked == []
