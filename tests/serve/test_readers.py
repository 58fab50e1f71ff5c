"""Groups, queues and dead letters over HTTP, and dead letters that are delivered again."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from penstock.log import Log
from penstock.log.consumers import Delivering
from penstock.serve import Settings
from penstock.serve.server import serving
from penstock.serve.settings import tokens_in
from tests.serve.client import Client
from tests.serve.conftest import Place

READ, WRITE = "a-token-for-readers", "a-token-for-writers"


@pytest.fixture
def parcels(place: Place) -> Log:
    """Five orders: a group has read two, a queue has given up two and done with one."""
    log = place.log
    log.append("orders", [{"id": n} for n in range(5)])
    with log.group("billing").join("orders") as member:
        assert len(member.poll(limit=2)) == 2
        member.commit()
    log.create_queue("parcels", "orders", Delivering(deliveries=3))
    with log.queue("parcels").worker() as worker:
        for message in worker.take(3):
            if message.entry.offset < 2:
                message.reject("no such address")
            else:
                message.acknowledge()
    return log


def test_groups_are_shown_with_how_far_they_have_come(parcels: Log, client: Client) -> None:
    parcels.create_topic("others", "id INT")
    parcels.group("strangers").reset("others", "earliest")
    (group,) = client.get("/groups").json["groups"]
    (behind,) = group.pop("partitions")
    assert group == {"name": "billing", "members": [], "lag": 3}
    assert {name: behind[name] for name in ("topic", "committed", "end", "lag")} == {
        "topic": "orders",
        "committed": 2,
        "end": 5,
        "lag": 3,
    }


def test_queues_are_shown_with_what_waits_and_what_has_died(parcels: Log, client: Client) -> None:
    (queue,) = client.get("/queues").json["queues"]
    assert queue == {
        "name": "parcels",
        "topic": "orders",
        "waiting": 2,
        "in_flight": 0,
        "dead": 2,
        "skipped": 0,
        "visibility": "30 seconds",
        "deliveries": 3,
        "letters": "parcels.dead-letters",
    }


def test_dead_letters_tell_why_they_died_and_are_delivered_again(parcels: Log, client: Client) -> None:
    letters = client.get("/queues/parcels/letters").json["letters"]
    assert [(each["offset"], each["reason"], each["record"]["values"]["id"]) for each in letters] == [
        (0, "no such address", 0),
        (1, "no such address", 1),
    ]
    assert redrive(client, b'{"limit": 1}') == {"queue": "parcels", "redriven": 1}
    assert [each["offset"] for each in client.get("/queues/parcels/letters").json["letters"]] == [1]
    assert redrive(client, b"{}") == {"queue": "parcels", "redriven": 1}
    with parcels.queue("parcels").worker() as worker:
        assert {message.entry.offset for message in worker.take(9)} == {0, 1, 3, 4}


def redrive(client: Client, body: bytes) -> object:
    return client.send("POST", "/queues/parcels/redrive", body, {"content-type": "application/json"}).json


def test_what_is_no_queue_of_this_pipeline_is_not_found(parcels: Log, client: Client) -> None:
    got = client.get("/queues/parcel/letters")
    assert (got.status, got.json["error"]["hint"]) == (404, 'Did you mean "parcels"?')


@pytest.mark.parametrize(
    ("kind", "body", "status"),
    [
        ("text/plain", b"{}", 415),
        ("application/json", b"{", 400),
        ("application/json", b'{"limit": 0}', 422),
        ("application/json", b'{"all": true}', 422),
    ],
)
def test_a_redrive_that_is_not_as_described_is_refused(
    parcels: Log, client: Client, kind: str, body: bytes, status: int
) -> None:
    assert client.send("POST", "/queues/parcels/redrive", body, {"content-type": kind}).status == status
    assert client.get("/queues").json["queues"][0]["dead"] == 2


@pytest.fixture
def guarded(place: Place, tmp_path: Path) -> Iterator[str]:
    (tmp_path / "tokens").write_text(f"read {READ}\nread,write {WRITE}\n")
    with serving(place.served, Settings(port=0, tokens=tokens_in(tmp_path / "tokens"))) as at:
        yield at.url


def test_to_deliver_again_needs_a_token_that_may_write(parcels: Log, guarded: str) -> None:
    reader, writer = (Client(guarded, {"authorization": f"Bearer {token}"}) for token in (READ, WRITE))
    assert reader.get("/queues").status == 200
    got = reader.send("POST", "/queues/parcels/redrive", b"{}", {"content-type": "application/json"})
    assert (got.status, got.primary) == (403, "this token is not good for POST")
    assert redrive(writer, b"{}") == {"queue": "parcels", "redriven": 2}


def test_the_page_is_for_everybody_and_what_it_shows_is_not(guarded: str) -> None:
    assert Client(guarded).get("/").status == 200
    assert Client(guarded).get("/dashboard/main.js").status == 200
    assert Client(guarded).get("/topics/orders/records").status == 401
