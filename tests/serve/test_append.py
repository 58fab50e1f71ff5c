"""Appending over HTTP: all or nothing, once, and every fault is told."""

from penstock.serve import Settings
from penstock.serve.server import serving
from tests.serve.client import Client
from tests.serve.conftest import PIPELINE, Place


def ids(place: Place) -> list[object]:
    return [entry.value["id"] for entry in place.log.read("orders") if isinstance(entry.value, dict)]


def test_records_are_appended_as_one(place: Place, client: Client) -> None:
    got = client.append("orders", {"id": 1, "amount": "1.25"}, {"id": 2, "at": "2024-01-31T12:00:00Z"})
    assert got.json == {
        "position": str(place.log.mark().next_frame - 1),
        "records": 2,
        "dropped": 0,
        "repeated": False,
        "spans": [{"partition": 0, "offset": 0, "count": 2}],
    }
    assert ids(place) == [1, 2]


def test_every_record_that_does_not_fit_is_told_and_none_is_appended(place: Place, client: Client) -> None:
    got = client.append("orders", {"id": 1}, {"id": "x"}, {"city": "Bern"}, {"id": 3, "citi": "Bern"})
    assert (got.status, got.primary) == (422, '3 of 4 records do not fit topic "orders"')
    assert [(fault["record"], fault["primary"]) for fault in got.json["records"]] == [
        (1, 'field "id" does not fit topic "orders"'),
        (2, 'field "id" is missing'),
        (3, 'field "citi" does not exist in topic "orders"'),
    ]
    assert got.json["records"][2]["hint"] == 'Did you mean "city"?'
    assert ids(place) == []


def test_an_append_that_comes_again_changes_nothing(place: Place, client: Client) -> None:
    first = client.append("orders", {"id": 1}, producer="till", sequence=0)
    again = client.append("orders", {"id": 1}, producer="till", sequence=0)
    assert (again.json["position"], again.json["repeated"]) == (first.json["position"], True)
    other = client.append("orders", {"id": 2}, producer="till", sequence=0)
    assert (other.status, other.primary) == (409, 'producer "till" has appended something else under sequence 0')
    assert client.append("orders", {"id": 3}, producer="till").status == 422
    assert ids(place) == [1]


def test_nobody_speaks_for_the_pipeline(place: Place, client: Client) -> None:
    assert client.append("orders", {"id": 1}, producer="shop", sequence=9).status == 200
    assert client.append("orders", {"id": 2}, producer="shop/1", sequence=0).status == 200
    assert [view["name"] for view in client.get("/views").json["views"]] == ["spend", "names"]
    assert place.log.last("shop/1") is None
    got = client.append("shop.1.spend", {"city": "Bern"})
    assert (got.status, got.primary) == (404, 'topic "shop.1.spend" is not one that pipeline "shop" reads')


def test_who_reads_the_answers_of_a_pipeline_does_not_write_them(place: Place) -> None:
    table = "CREATE TABLE spent (city STRING PRIMARY KEY, orders BIGINT) WITH (topic = 'shop.1.spend');"
    (place.folder / "pipeline.sql").write_text(PIPELINE + table)
    place.keep()
    with serving(place.served, Settings(port=0)) as at:
        client = Client(at.url)
        roles = {each["topic"]: each["role"] for each in client.get("/topics").json["topics"]}
        assert (roles["orders"], roles["shop.1.spend"]) == ("source", "changes")
        got = client.append("shop.1.spend", {"city": "Bern", "orders": 1})
        assert (got.status, got.primary) == (403, 'topic "shop.1.spend" holds answers of pipeline "shop"')
    assert list(place.log.read("shop.1.spend")) == []


def test_a_body_that_is_none_is_refused(place: Place, client: Client) -> None:
    kind = {"content-type": "application/json"}
    deep = b'{"records":' + b"[" * 100_000 + b"]" * 100_000 + b"}"
    long, far = (b'{"records":[{"id":%s}]}' % number for number in (b"1" * 5000, b"1e9999999999999999999"))
    for body, status in (
        (b"{", 400),
        (b"\xff", 400),
        (deep, 400),
        (long, 400),
        (far, 400),
        (b"[]", 422),
        (b'{"records":[1]}', 422),
    ):
        assert client.send("POST", "/topics/orders", body, kind).status == status, body[:20]
    assert client.send("POST", "/topics/orders", b"{}", {"content-type": "text/plain"}).status == 415
    assert ids(place) == []
