"""Webhooks over HTTP: what they have given up, and how it is sent again."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from penstock.serve import Settings
from penstock.serve.settings import Scope, hashed
from tests.dashboard.scene import Scene, scene
from tests.serve.client import Client

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
    assert redrive(shop, b'{"limit": 1}') == (200, {"view": "spend", "sink": "webhook", "redriven": 1})
    assert offsets(shop) == [1]
    assert redrive(shop)[0] == 200
    assert offsets(shop) == [] and [each.id for each in shop.receiver.taken] == ["msg_0", "msg_1"]


def test_what_the_receiver_does_not_take_waits(shop: Scene) -> None:
    shop.receiver.answer = lambda posted: (204 if posted.id == "msg_0" else 500, {})
    status, told = redrive(shop)
    assert status == 502
    assert "Before it, 1 of the dead letters were taken." in str(told)
    assert offsets(shop) == [1]


def test_to_send_again_needs_a_token_that_may_write_and_a_sink(shop: Scene) -> None:
    assert redrive(shop, token=READ)[0] == 403
    assert redrive(shop, sink="email")[0] == 404
    assert redrive(shop, b'{"limit": 0}')[0] == 422
    assert shop.receiver.asked == []
