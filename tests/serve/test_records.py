"""Records of topics over HTTP: from an offset, a time, the end on, page by page; and of which topics."""

from datetime import UTC, datetime, timedelta
from typing import Any
from urllib.parse import quote

import pytest

from penstock.log import Log, Record
from penstock.log.retention import Retention
from penstock.serve.records import Seek, page
from tests.serve.client import Client
from tests.serve.conftest import Place
from tests.views.shop import spend

AT = datetime(2024, 1, 31, 12, tzinfo=UTC)


def fill(log: Log, count: int = 10) -> None:
    """Records in frames of two."""
    for first in range(0, count, 2):
        rows = [{"id": n, "city": "Bern", "at": AT + timedelta(seconds=n)} for n in (first, first + 1)]
        log.append("orders", rows)


def offsets(client: Client, query: str = "") -> list[int]:
    got = client.send("GET", f"/topics/orders/records?{query}")
    assert got.status == 200, got.data
    return [record["offset"] for record in got.json["records"]]


def test_records_begin_at_an_offset_or_so_many_before_the_end(place: Place, client: Client) -> None:
    fill(place.log)
    assert offsets(client) == list(range(10))
    assert offsets(client, "from=7") == [7, 8, 9]
    assert offsets(client, "from=3&limit=2") == [3, 4]
    assert offsets(client, "from=-3") == [7, 8, 9]
    assert offsets(client, "from=10") == []


def test_records_begin_with_what_was_appended_at_a_time(place: Place, client: Client) -> None:
    fill(place.log)
    third = list(place.log.read("orders"))[4].appended_at
    assert offsets(client, f"time={quote(third.isoformat())}") == list(range(4, 10))
    got = client.get("/topics/orders/records", time="yesterday")
    assert (got.status, got.primary) == (422, '"yesterday" is not a TIMESTAMP')


def test_pages_follow_each_other_without_gap(place: Place, client: Client) -> None:
    fill(place.log)
    first = client.get("/topics/orders/records", limit=4).json
    second = client.get("/topics/orders/records", limit=4, next=first["next"]).json
    third = client.get("/topics/orders/records", limit=4, next=second["next"]).json
    pages = [[record["offset"] for record in page["records"]] for page in (first, second, third)]
    assert (pages, third["next"]) == ([[0, 1, 2, 3], [4, 5, 6, 7], [8, 9]], None)
    assert first["partitions"] == [{"partition": 0, "begin": 0, "end": 10}]


def test_a_record_is_shown_with_all_that_it_carries(place: Place, client: Client) -> None:
    row = {"id": 1, "city": "Bern", "amount": None, "at": AT}
    headers = {"by": b"ann", "sum": b"\xff"}
    place.log.append("orders", [Record(row, headers=headers, replaces={**row, "city": "Zug"})])
    (record,) = client.get("/topics/orders/records").json["records"]
    values = {"id": 1, "city": "Bern", "amount": None, "at": "2024-01-31T12:00:00Z"}
    assert (record["values"], record["time"], record["key"]) == (values, "2024-01-31T12:00:00Z", None)
    assert (record["replaces"]["city"], record["deleted"]) == ("Zug", False)
    assert record["headers"] == {"by": "ann", "sum": {"base64": "/w=="}}


def test_what_the_pipeline_has_written_can_be_looked_into_and_nothing_else(place: Place, client: Client) -> None:
    place.batch(spend=[(None, spend("Bern", 1))])
    place.log.create_topic("others", "id BIGINT")
    place.log.create_queue("parcels", "orders")
    place.log.create_queue("strangers", "others")
    for other in ("shop", "others"):
        place.log.create_topic(f"{other}.spend.webhook.dead-letters", "id STRING", own=True)
    found = {each["topic"]: each["role"] for each in client.get("/topics").json["topics"]}
    assert found == {
        "orders": "source",
        "shop.1.names": "changes",
        "shop.1.spend": "changes",
        "parcels.dead-letters": "letters",
        "shop.spend.webhook.dead-letters": "letters",
    }
    assert client.get("/topics").json["topics"][0]["relations"] == ["orders"]
    (record,) = client.get("/topics/shop.1.spend/records").json["records"]
    assert record["key"] == {"city": "Bern"}
    got = client.get("/topics/others/records")
    assert (got.status, got.primary) == (404, 'topic "others" is not one of pipeline "shop"')


@pytest.mark.parametrize("query", [{"from": 1, "time": "2024-01-31"}, {"from": 1, "next": "0:0"}])
def test_records_begin_at_one_place_only(client: Client, query: dict[str, Any]) -> None:
    got = client.get("/topics/orders/records", **query)
    assert (got.status, got.primary) == (400, "records begin at one place only")


def test_a_partition_that_is_not_there_is_named(place: Place, client: Client) -> None:
    got = client.get("/topics/orders/records", partition=3)
    assert (got.status, got.primary) == (400, 'topic "orders" has no partition 3')


def test_partitions_are_read_in_the_one_order_of_the_log(place: Place) -> None:
    topic = place.log.create_topic("parts", "id INT", partitions=3)
    for n in range(9):
        place.log.append("parts", [{"id": n}], partition=n % 3)

    def ids(seek: Seek) -> list[int]:
        return [entry.value["id"] for entry in page(place.log, topic, seek).entries]  # type: ignore[index,call-overload]

    assert ids(Seek(5)) == [0, 1, 2, 3, 4]
    assert ids(Seek(4, offset=-2)) == [5, 6, 7, 8]
    assert ids(Seek(4, offset=1, partition=2)) == [5, 8]
    following = page(place.log, topic, Seek(5)).next
    assert ids(Seek(5, next=following)) == [5, 6, 7, 8]


def test_records_that_are_gone_are_told_with_the_first_that_is_there(place: Place, client: Client) -> None:
    fill(place.log)
    place.log.seal()
    fill(place.log, 2)
    place.log.change_retention("orders", Retention(bytes=1))
    place.log.seal()
    place.log.retain()
    begin = place.log.begins("orders")[0]
    assert begin > 0
    for offset in (0, 1):
        got = client.send("GET", f"/topics/orders/records?from={offset}")
        assert (got.status, str(begin) in got.json["error"]["detail"] + got.json["error"]["hint"]) == (410, True)
    assert offsets(client)[0] == begin
