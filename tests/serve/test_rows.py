"""Rows over HTTP: by key, condition, order and page, in three forms, at a position."""

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime
from http.client import HTTPException
from queue import Queue
from threading import Event, Thread
from typing import Any

import pyarrow as pa
import pytest

from penstock.log.frame import Header
from penstock.serve import Settings, past, server
from penstock.serve.positions import Asked
from penstock.serve.server import serving
from penstock.views import ViewReader
from penstock.views.steps import steps_until
from tests.serve.client import Client
from tests.serve.conftest import Place
from tests.views.shop import VIEWS, Declared, Shop, name, spend

CSV = "text/csv; charset=utf-8"
BERN = {"city": "Bern", "orders": 1, "spend": "1.00"}
ZUG = {"city": "Zug", "orders": 2, "spend": "7.50"}


@pytest.fixture
def frame(place: Place) -> int:
    """Two rows are there, since this frame."""
    return place.batch(spend=[(None, spend("Bern", 1)), (None, spend("Zug", 2, "7.50"))], names=[(None, name("ann"))])


def test_the_views_are_listed_with_their_columns(client: Client, frame: int) -> None:
    got = client.get("/views").json
    assert (got["pipeline"], got["position"]["position"]) == ("shop", f"1.{frame}")
    assert [(view["name"], view["key"]) for view in got["views"]] == [("spend", ["city"]), ("names", [])]
    assert client.get("/views/SPEND").json["columns"][2] == {"name": "spend", "type": "DECIMAL(12,2)", "nullable": True}
    assert client.get("/views/spent").json["error"]["hint"] == 'Did you mean "spend"?'
    assert client.get("/views/spent").status == 404


def test_rows_carry_the_position_at_which_they_are_right(client: Client, frame: int) -> None:
    got = client.get("/views/spend/rows")
    assert got.json["rows"] == [BERN, ZUG]
    position = got.json["position"]
    assert (position["lineage"], position["frame"], position["batch"]) == (1, frame, 0)
    assert (got.headers["penstock-position"], got.headers["penstock-batch"]) == (f"1.{frame}", "0")


def test_a_row_is_found_by_its_key(client: Client, frame: int) -> None:
    got = client.get("/views/spend/row", key="Zug")
    assert (got.status, got.json["row"], got.headers["penstock-position"]) == (200, ZUG, f"1.{frame}")
    assert client.get("/views/spend/row", key="Genf").status == 404
    assert client.get("/views/spend/row", key=["Zug", "Bern"]).primary == 'the key of view "spend" has 1 column'
    assert client.get("/views/names/row", key="ann").primary == 'view "names" has no key'
    assert client.get("/views/nobody/row", key="ann").status == 404


def test_look_ups_follow_the_store_to_another_lineage_and_another_file(place: Place, client: Client) -> None:
    place.batch(spend=[(None, spend("Bern", 1))])
    assert client.get("/views/spend/row", key="Bern").json["row"]["orders"] == 1
    second = Shop(place.log, lineage=2)
    second.batch(spend=[(None, spend("Bern", 9))])
    second.announce()
    place.keep()
    assert client.get("/views/spend/row", key="Bern").json["row"]["orders"] == 9
    for file in place.store.parent.glob("views.sqlite*"):
        file.unlink()
    place.keep()
    assert client.get("/views/spend/row", key="Bern").json["row"]["orders"] == 9
    assert client.rows("spend")[0]["orders"] == 9


def test_conditions_choose_rows_and_reach_nothing_else(client: Client, frame: int) -> None:
    assert client.rows("spend", where="spend > 5 AND city LIKE 'Z%'") == [ZUG]
    for bad in ("1)) OR ((1", "city = (SELECT 1)", "load_extension('x')", "1; DROP TABLE spend", "nope = 1", "'", "\0"):
        got = client.get("/views/spend/rows", where=bad)
        assert (got.status, "condition" in got.primary) == (400, True), bad
    assert client.rows("spend") == [BERN, ZUG]


def test_a_condition_cannot_fill_the_memory(client: Client, frame: int) -> None:
    got = client.get("/views/spend/rows", where="length(" + "hex(" * 24 + "'" + "a" * 1000 + "'" + ")" * 24 + ") > 0")
    assert (got.status, got.json["error"]["detail"]) == (400, "string or blob too big.")
    assert client.rows("spend") == [BERN, ZUG]


def test_pages_in_any_order_give_every_row_once(place: Place, client: Client) -> None:
    place.batch(spend=[(None, spend(f"{n:02}", n % 3)) for n in range(25)])
    for order in (["orders desc"], ["orders", "city desc"], []):
        pages: list[object] = []
        more: dict[str, Any] = {}
        while True:
            got = client.get("/views/spend/rows", order=order, limit=4, **more).json
            pages += got["rows"]
            if got["next"] is None:
                break
            more = {"next": got["next"]}
        assert len(pages) == 25
        assert pages == client.rows("spend", order=order)


@pytest.mark.parametrize("given", ["x", "W10=", "WzEsMSxbXSxbW11dXQ==", "eyJhIjoxfQ==", "é"])
def test_a_page_that_never_was_is_refused(client: Client, frame: int, given: str) -> None:
    got = client.get("/views/spend/rows", next=given)
    assert (got.status, got.primary[:11]) in ((400, "this is not"), (400, "the rows of"))


def test_the_form_is_as_the_address_or_the_header_says(client: Client, frame: int) -> None:
    text = b"city,orders,spend\nBern,1,1.00\nZug,2,7.50\n"
    assert client.get("/views/spend/rows", format="csv").data == text
    got = client.get("/views/spend/rows", headers={"accept": "application/json;q=0.1, text/csv"})
    assert (got.data, got.headers["content-type"], "penstock-position" in got.headers) == (
        text,
        "text/csv; charset=utf-8",
        True,
    )
    arrow = client.get("/views/spend/rows", headers={"accept": "application/vnd.apache.arrow.stream"}, limit=1)
    assert pa.ipc.open_stream(arrow.data).read_all().to_pylist() == [spend("Bern", 1)]
    assert client.get("/views/spend/rows", format="json", next=arrow.headers["penstock-next"]).json["rows"] == [ZUG]
    assert client.get("/views/spend/rows", headers={"accept": "image/png"}).status == 406


def test_what_was_written_can_be_read_at_once(place: Place, client: Client) -> None:
    place.batch(spend=[(None, spend("Bern", 1))])
    position = client.append("orders", {"id": 1, "city": "Bern", "amount": "2.00"}).json["position"]
    assert client.get("/views/spend/rows", after=position, timeout=0.1).status == 504
    other = place.log.create_topic("others", "id BIGINT").name
    place.log.append(other, [{"id": 1}])
    later = Thread(target=lambda: place.batch(spend=[(spend("Bern", 1), spend("Bern", 2))]))
    later.start()
    got = client.get("/views/spend/row", key="Bern", after=position)
    later.join()
    assert got.json["row"]["orders"] == 2
    answered = got.headers["penstock-position"]
    assert client.get("/views/spend/rows", after=answered, timeout=0.1).status == 200
    # What other pipelines read is nothing to wait for.
    assert client.get("/views/spend/rows", after=place.log.append(other, [{"id": 2}]).frame, timeout=0.1).status == 200


def test_positions_that_nobody_was_told_are_refused(client: Client, frame: int) -> None:
    assert client.get("/views/spend/rows", after=frame + 1).primary == f"position {frame + 1} is not one of this log"
    assert client.get("/views/spend/rows", after="1.2.3").status == 422
    assert client.get("/views/spend/rows", at=f"7.{frame}").status == 410


def test_an_older_position_is_answered_as_it_was(place: Place, client: Client, frame: int) -> None:
    then = client.get("/views/spend/rows").headers["penstock-position"]
    place.batch(spend=[(spend("Bern", 1), None), (spend("Zug", 2, "7.50"), spend("Zug", 3))])
    assert [row["orders"] for row in client.rows("spend")] == [3]
    got = client.get("/views/spend/rows", at=then, where="orders < 9")
    assert (got.json["rows"], got.headers["penstock-position"]) == ([BERN, ZUG], then)
    assert client.get("/views/spend/rows", at=0).status == 410
    assert client.get("/views/spend/rows", at=f"7.{frame}").status == 410


def test_a_position_that_was_compacted_away_is_gone_and_so_is_who_follows_from_there(
    place: Place, client: Client, frame: int
) -> None:
    then = client.get("/views/spend/rows").headers["penstock-position"]
    for n in range(2, 5):
        place.batch(spend=[(spend("Zug", n, "7.50"), spend("Zug", n + 1, "7.50"))])
    place.log.compact(["shop.1.spend"])
    got = client.get("/views/spend/rows", at=then)
    assert (got.status, "compacted" in got.primary + got.json["error"]["detail"]) == (410, True)
    with client.follow("spend", **{"from": str(frame)}) as following:
        assert following.answer.status == 410
    now = client.get("/views/spend/rows").headers["penstock-position"]
    assert [row["orders"] for row in client.rows("spend", at=now)] == [1, 5]


def test_rows_are_in_the_order_of_the_key_that_they_have(place: Place, client: Client, frame: int) -> None:
    second = Shop(place.log, lineage=2, views={"spend": Declared("town STRING, orders BIGINT", key=("town",))})
    second.batch(spend=[(None, {"town": "Genf", "orders": 1})])
    second.announce()
    assert client.rows("spend") == [BERN, ZUG]  # the store does not know of it yet
    place.keep()
    assert client.rows("spend") == [{"town": "Genf", "orders": 1}]
    assert client.rows("spend", at=frame) == [BERN, ZUG]


def test_an_order_by_values_too_long_for_pages_is_refused(place: Place, client: Client) -> None:
    place.batch(spend=[(None, spend(letter * 70_000, 1)) for letter in "ab"])
    got = client.get("/views/spend/rows", limit=1)
    assert (got.status, got.primary) == (
        400,
        'the rows of view "spend" cannot be given page by page in this order',
    )
    assert len(client.rows("spend")) == 2
    page = client.get("/views/spend/rows", limit=1, order="orders")
    assert len(client.rows("spend", limit=1, order="orders", next=page.json["next"])) == 1


def test_views_that_are_kept_only_in_the_log_are_folded_from_it(place: Place, client: Client) -> None:
    views = {**VIEWS, "names": replace(VIEWS["names"], store="topic")}
    second = Shop(place.log, lineage=2, views=views)
    second.batch(names=[(None, name("ann", 1)), (None, name("bob", 2))])
    second.announce()
    place.keep()
    assert client.rows("names", where="age > 1") == [{"name": "bob", "age": 2}]
    second.batch(names=[(name("bob", 2), None)])
    assert client.rows("names") == [{"name": "ann", "age": 1}]
    assert client.get("/views/names/row", key="ann").primary == 'view "names" is not kept as a table'


def test_what_takes_too_long_is_given_up(place: Place, client: Client) -> None:
    place.batch(names=[(None, name(f"{n}", n)) for n in range(3000)])
    slow = "length(replace(hex(hex(hex(hex(hex(hex(hex(name))))))), '3', 'abc')) > " + " + ".join(
        ["length(hex(hex(hex(name))))"] * 30
    )
    got = client.get("/views/names/rows", where=slow, timeout=0.001)
    assert (got.status, got.primary) == (504, "the answer takes longer than 0.001 seconds")
    assert len(client.rows("names", limit=3000)) == 3000
    assert client.get("/views/names/rows", limit=100_001).primary == "at most 100,000 rows are given at once"


def test_the_watermark_is_told_where_it_is_known(place: Place, client: Client) -> None:
    client.append("orders", {"id": 1, "at": "2024-01-31T12:00:10Z"})
    assert client.get("/views/spend/rows").json["watermarks"] == {}
    place.batch(spend=[(None, spend("Bern", 1))])
    got = client.get("/views/spend/rows")
    assert got.json["watermarks"] == {"orders": "2024-01-31T12:00:00+00:00"}
    assert got.headers["penstock-watermark"] == "orders=2024-01-31T12:00:00+00:00"


def test_the_watermark_is_not_that_of_a_moment_later(
    place: Place, client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    client.append("orders", {"id": 1, "at": "2024-01-31T12:00:10Z"})
    place.batch(spend=[(None, spend("Bern", 1))])
    read = ViewReader.rows

    def read_then_go_on(*given: Any, **named: Any) -> Any:
        found = read(*given, **named)
        place.log.append("orders", [{"id": 2, "at": datetime(2024, 1, 31, 13, tzinfo=UTC)}])
        place.batch(spend=[(spend("Bern", 1), spend("Bern", 2))])
        return found

    monkeypatch.setattr(ViewReader, "rows", read_then_go_on)
    got = client.get("/views/spend/rows").json
    assert (got["rows"], got["watermarks"]) == ([BERN], {"orders": "2024-01-31T12:00:00+00:00"})


def test_who_waits_for_the_past_gives_up_and_holds_up_nobody(
    place: Place, client: Client, frame: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    folding, over = Event(), Event()

    def folded_slowly(*given: Any, **named: Any) -> Any:
        folding.set()
        assert over.wait(20)
        return steps_until(*given, **named)

    monkeypatch.setattr(past, "steps_until", folded_slowly)
    answers = Queue[int]()
    asked = [
        Thread(target=lambda: answers.put(client.get("/views/spend/rows", at=frame).status))
        for _ in range(2 * past.WAITING)
    ]
    asked[0].start()
    assert folding.wait(20)
    assert client.get("/views/spend/rows", at=frame, timeout=0.01).status == 504
    for each in asked[1:]:
        each.start()
    assert [answers.get(timeout=20) for _ in range(past.WAITING)] == [503] * past.WAITING
    assert client.rows("spend") == [BERN, ZUG]
    over.set()
    assert [answers.get(timeout=20) for _ in range(past.WAITING)] == [200] * past.WAITING


def test_a_server_that_stops_does_not_wait_for_the_past(
    place: Place, frame: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    folding, stopped, ended = Event(), Event(), Queue[bool]()

    def endless(*_given: Any, **_named: Any) -> Any:
        folding.set()
        ended.put(stopped.wait(20))
        return iter(())

    monkeypatch.setattr(past, "steps_until", endless)
    monkeypatch.setattr(server, "GRACE_SECONDS", 0)
    with serving(place.served, Settings(port=0)) as at:
        ask = Thread(target=_asked_in_vain, args=[Client(at.url), frame])
        ask.start()
        assert folding.wait(20)
    stopped.set()
    assert ended.get(timeout=20)
    ask.join()


def _asked_in_vain(client: Client, frame: int) -> None:
    with suppress(OSError, HTTPException):
        client.get("/views/spend/rows", at=frame)


def test_every_frame_is_looked_at_once(place: Place, frame: int, monkeypatch: pytest.MonkeyPatch) -> None:
    served, looked, frames = place.served, list[int](), place.log.frames

    def noted(start: int) -> Iterator[Header]:
        looked.append(start)
        return frames(start)

    monkeypatch.setattr(place.log, "frames", noted)
    place.log.create_topic("others", "id BIGINT")
    last = [place.log.append("others", [{"id": n}]).frame for n in range(3)][-1]
    assert (served.lag(), served.lag()) == (0, 0)
    assert place.log.append("orders", [{"id": 1}]).frame == last + 1
    assert (served.lag(), served.has_reached(Asked(last)), served.has_reached(Asked(last + 1))) == (1, True, False)
    assert looked[1:] == [last + 1]
    place.batch()
    assert (served.lag(), served.has_reached(Asked(last + 1))) == (0, True)
