"""Who may ask, how often, and how much."""

import json
import socket
from collections.abc import Iterator
from contextlib import suppress
from http.client import HTTPConnection
from pathlib import Path
from typing import Any

import pytest

from penstock.app import place_of
from penstock.app.serving import served_pipeline
from penstock.app.stores import opened_store
from penstock.errors import PenstockError, ServeError
from penstock.model.stores import OnRedis
from penstock.serve import Limits, Settings, patience
from penstock.serve.server import serving
from penstock.serve.settings import address_of, hashed, is_loopback, tokens_in
from penstock.serve.telling import teller
from penstock.views import catch_up
from services.redis import Server
from tests.serve.client import Client
from tests.serve.conftest import PIPELINE, Place
from tests.serve.test_state import metrics, soon
from tests.texts import refused
from tests.views import redis
from tests.views.shop import spend

READ, WRITE = "r" * 20, "w" * 20
TOKENS = {hashed(READ): frozenset({"read"}), hashed(WRITE): frozenset({"write"})}


def told(error: pytest.ExceptionInfo[PenstockError]) -> str:
    return error.value.primary


def test_beyond_loopback_nobody_is_answered_without_a_token() -> None:
    for host in ("127.0.0.1", "localhost", "::1"):
        assert Settings(host).tokens == {}
    for host in ("0.0.0.0", "::", "192.0.2.1"):
        with pytest.raises(ServeError) as error:
            Settings(host)
        assert told(error) == f'who asks at "{host}" needs a token, and there are none'
        assert Settings(host, tokens={hashed(READ): frozenset({"read"})}).tokens


def test_tokens_are_good_for_what_they_say(place: Place) -> None:
    place.keep()
    with serving(place.served, Settings(port=0, tokens=TOKENS)) as at:  # type: ignore[arg-type]
        nobody, reader, writer = (
            Client(at.url, {} if token is None else {"authorization": f"Bearer {token}"})
            for token in (None, READ, WRITE)
        )
        assert (nobody.get("/views").status, nobody.get("/health").status) == (401, 200)
        assert nobody.get("/views").headers["www-authenticate"] == "Bearer"
        assert Client(at.url, {"authorization": f"Basic {READ}"}).get("/views").status == 401
        assert (reader.get("/views").status, reader.append("orders", {"id": 1}).status) == (200, 403)
        assert (writer.get("/views").status, writer.append("orders", {"id": 1}).status) == (403, 200)
        with nobody.follow("spend") as following:
            assert following.answer.status == 401


def test_a_page_from_elsewhere_cannot_use_our_address(client: Client) -> None:
    assert client.get("/views", headers={"host": "evil.example:8780"}).status == 403
    assert client.get("/views", headers={"host": "localhost:8780"}).status == 200


def test_limits_are_kept(place: Place) -> None:
    place.keep()
    limits = Limits(body_bytes=500, rate=5, rows=10, seconds=0.2)
    with serving(place.served, Settings(port=0, limits=limits)) as at:
        client = Client(at.url)
        got = client.append("orders", *({"id": n, "city": "Bern"} for n in range(50)))
        assert (got.status, got.primary) == (413, "the body of the request is too large")
        assert client.get("/views/spend/rows", limit=11).status == 400
        assert client.get("/views/spend/rows", limit=11).status == 400
        statuses = [client.get("/health").status for _ in range(20)]
        assert statuses[:3] == [200] * 3
        assert 429 in statuses


def test_nobody_is_given_more_time_than_the_limit(place: Place) -> None:
    place.batch(spend=[(None, spend("Bern", 1))])
    ahead = place.log.append("orders", [{"id": 1}]).frame
    with serving(place.served, Settings(port=0, limits=Limits(seconds=0.2))) as at:
        for asked in ("", "&timeout=30"):
            got = Client(at.url).send("GET", f"/views/spend/rows?after={ahead}{asked}")
            assert (got.status, "0.2 seconds" in got.primary + got.json["error"]["detail"]) == (504, True)


def test_a_body_that_does_not_come_is_given_up(client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("penstock.serve.gate.SILENCE_SECONDS", 0.1)
    connection = HTTPConnection(client.url.removeprefix("http://"), timeout=20)
    connection.putrequest("POST", "/topics/orders")
    connection.putheader("content-type", "application/json")
    connection.putheader("content-length", "50")
    connection.endheaders(b'{"records"')
    got = connection.getresponse()
    assert (got.status, json.loads(got.read())["error"]["primary"]) == (408, "the body of the request did not come")
    connection.close()


def test_a_body_in_pieces_is_counted_too(client: Client, place: Place) -> None:
    connection = HTTPConnection(client.url.removeprefix("http://"), timeout=20)
    pieces = (b"x" * (1 << 20) for _ in range(9))
    connection.request(
        "POST", "/topics/orders", body=pieces, headers={"content-type": "application/json"}, encode_chunked=True
    )
    assert connection.getresponse().status == 413
    connection.close()


@pytest.mark.parametrize("head", [b"GET /health HTTP/1.1\r\nhost: localhost\r\nx: %s", b"GET /health?%s"])
def test_a_head_without_end_is_cut_off(client: Client, head: bytes) -> None:
    with _connected(client) as connection:
        with suppress(ConnectionError):
            for _ in range(200):
                connection.sendall(head % b"x" if head else b"x" * (1 << 16))
                head = b""
        with suppress(ConnectionError):
            assert connection.recv(100).startswith(b"HTTP/1.1 400")
    assert client.get("/health").status == 200
    assert client.get("/health", headers={"x": "x" * 50_000}).status == 200


def test_who_says_nothing_is_not_waited_for(client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(patience, "HEAD_SECONDS", 0.1)
    whole = b"GET /health HTTP/1.1\r\nhost: localhost\r\n\r\n"
    for begun, answers in ((b"", 0), (b"GET /hea", 0), (whole + b"GET", 1)):
        with _connected(client) as connection:
            connection.sendall(begun)
            said = b"".join(iter(lambda: connection.recv(4096), b""))
            assert said.count(b"HTTP/1.1 200") == answers
    with client.follow("spend") as following:
        assert [event.kind for event in following.take(1)] == ["start"]


def test_a_request_behind_a_large_body_is_answered(client: Client) -> None:
    body = b'{"records": [{"id": 1, "city": "%s"}]}' % (b"x" * 500_000)
    head = b"POST /topics/orders HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n"
    with _connected(client) as connection:
        connection.sendall(
            head + b"content-length: %d\r\n\r\n" % len(body) + body + b"GET /health HTTP/1.1\r\nhost: local"
        )
        assert connection.recv(4096).startswith(b"HTTP/1.1 200")
        connection.sendall(b"host\r\n\r\n")
        assert connection.recv(4096).startswith(b"HTTP/1.1 200")


def _connected(client: Client) -> socket.socket:
    host, _, port = client.url.removeprefix("http://").partition(":")
    return socket.create_connection((host, int(port)), timeout=20)


def test_the_file_of_tokens_is_read_or_refused(tmp_path: Path) -> None:
    file = tmp_path / "tokens"
    file.write_text(f"# who reads\nread {READ}\n\nread,write {WRITE}\n")
    assert tokens_in(file) == {hashed(READ): {"read"}, hashed(WRITE): {"read", "write"}}
    for text, want in (("", "there are no tokens"), ("all x", "is no token"), ("read short", "too short")):
        file.write_text(text)
        with pytest.raises(ServeError) as error:
            tokens_in(file)
        assert want in told(error)
    with pytest.raises(ServeError, match="cannot be read"):
        tokens_in(tmp_path / "none")


def test_addresses_are_read() -> None:
    assert address_of("localhost:80") == ("localhost", 80)
    assert address_of(":80") == ("127.0.0.1", 80)
    assert address_of("[::1]:80") == ("::1", 80)
    for bad in ("80", "localhost:http", "localhost:99999"):
        with pytest.raises(ServeError, match="is no address"):
            address_of(bad)
    assert not is_loopback("192.0.2.1")
    with pytest.raises(ServeError, match="has no address"):
        is_loopback("no such host")


def test_a_port_that_is_taken_is_told(place: Place) -> None:
    place.keep()
    with (
        serving(place.served, Settings(port=0)) as at,
        pytest.raises(ServeError, match="nobody can listen"),
        serving(place.served, Settings(port=at.port)),
    ):
        pass


def test_requests_are_told_as_json_or_text(place: Place) -> None:
    place.keep()
    lines: list[str] = []
    for form in ("json", "text"):
        tell: Any = teller(form, lines.append)
        with serving(place.served, Settings(port=0), tell=tell) as at:
            Client(at.url).get("/views/nobody")
    found = json.loads(lines[0])
    assert (found["event"], found["path"], found["status"]) == ("request", "/views/nobody", 404)
    assert " request method=GET path=/views/nobody client=127.0.0.1 status=404 ms=" in lines[1]


def test_a_pipeline_without_a_log_is_not_served(tmp_path: Path) -> None:
    folder = tmp_path / "shop"
    folder.mkdir()
    (folder / "pipeline.sql").write_text(PIPELINE)
    place = place_of(folder)
    with refused("app/serve_no_log", folder=folder), place.hinted(), served_pipeline(place, Settings(port=0)):
        pass
    assert not (folder / ".penstock").exists()


def test_a_pipeline_whose_store_is_elsewhere_is_served_too(place: Place) -> None:
    store = "SET store = 'postgresql://nobody@127.0.0.1:1/nothing';"
    (place.folder / "pipeline.sql").write_text(store + PIPELINE)
    place.shop.until = place.log.mark().next_frame
    frame = place.shop.batch(spend=[(None, spend("Bern", 1))])
    with served_pipeline(place_of(place.folder), Settings(port=0)) as at:
        client = Client(at.url)
        assert client.get("/views/spend/row", key="Bern", after=f"1.{frame}").json["row"]["orders"] == 1
        assert client.get("/ready").json["lag"] == 0
        assert client.rows("spend") == [{"city": "Bern", "orders": 1, "spend": "1.00"}]
    assert not place.store.exists()


@pytest.fixture
def server() -> Iterator[Server]:
    yield from redis.server_for_tests()


@pytest.mark.redis
def test_of_a_store_that_is_elsewhere_it_is_told_where_it_stands(place: Place, server: Server) -> None:
    (place.folder / "pipeline.sql").write_text(f"SET store = '{server.url}';{PIPELINE}")
    place.shop.until = place.log.mark().next_frame
    frame = place.shop.batch(spend=[(None, spend("Bern", 1))])
    with opened_store(OnRedis(server.url), "shop") as store:
        catch_up(place.log, "shop", store)
    place.log.append("orders", [{"id": 1}])
    place.shop.until = place.log.mark().next_frame
    after = place.shop.batch(spend=[(None, spend("Zug", 1))])
    with served_pipeline(place_of(place.folder), Settings(port=0)) as at:
        client = Client(at.url)
        client.get("/views/spend/row", key="Zug", after=f"1.{after}")
        assert soon(lambda: client.get("/ready").json["store"] == {"reachable": True, "lag": 1})
        found = metrics(client)
    assert (found["penstock_lag_frames"], found["penstock_store_frame"]) == (0, frame)
