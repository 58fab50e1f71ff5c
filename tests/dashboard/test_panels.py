"""The dashboard's panels in a real browser: what they show, and that it follows what happens."""

import json
from collections.abc import Iterator
from datetime import UTC, timedelta
from itertools import pairwise
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from penstock.log import Log
from penstock.serve import Settings
from services.chromium import Page
from tests.app.receivers import Answer
from tests.dashboard.looking import click, fill, shows, text_of
from tests.dashboard.pictures import pictured
from tests.dashboard.scene import ORDERS, PLAN, Scene, node, order, scene, spend
from tests.views.shop import Declared, Shop

ROWS = "[...document.querySelectorAll('tbody tr:not(.gone)')].map((row) => row.innerText.replace(/\\s+/g, ' ').trim())"
OFFSETS = "[...document.querySelectorAll('tbody tr th')].map((cell) => Number(cell.innerText))"
HEADS = "[...document.querySelectorAll('.graph .caption')].map((head) => head.textContent)"


@pytest.fixture
def another(tmp_path: Path) -> Iterator[Scene]:
    """A shop for one test alone. Comes before the page, which is closed before nobody answers it."""
    with scene(tmp_path / "shop") as shop, shop.served(Settings(port=0)):
        yield shop


def figure(name: str) -> str:
    found = f"[...document.querySelectorAll('.figures dt')].find((each) => each.textContent === '{name}')"
    return f"{found}?.nextSibling.textContent"


def orders_of_bern(shop: Scene) -> int:
    """Every batch but the first brings one."""
    return 29 + shop.shop.batches


def one_more(shop: Scene) -> int:
    now = orders_of_bern(shop)
    shop.batch(spend=[(spend("Bern", now), spend("Bern", now + 1))])
    return now + 1


def test_the_graph_shows_every_node_and_what_flows(page: Page, shop: Scene) -> None:
    one_more(shop)
    page.open(shop.url)
    page.wait("document.querySelectorAll('.graph .node').length === 5")
    assert page.value("document.querySelectorAll('.graph .edge').length") == len(PLAN["edges"])
    labels = "[...document.querySelectorAll('.graph .node')].map((node) => node.getAttribute('aria-label')).join('\\n')"
    page.wait(f"/Source purchases: [1-9][\\d.]* records\\/s; watermark 12:05:00/.test({labels})")
    assert page.value(f"/View per_minute: .*; \\d late/.test({labels})")
    assert "grows with purchases" in page.value(labels)
    assert "Operator windows on level 1: of 1 minute" in page.value(labels)
    assert page.value(HEADS) == ["Sources", "Level 1", "Views"]
    done = shop.shop.batches
    page.wait(f"{figure('State')} === '{40 + 2 * (done - 1)}kB' && {figure('Late rows')} === '{done // 2}'")
    assert page.value(figure("Lag")) == "0frames"
    assert float(page.value(figure("Records read")).removesuffix("/s")) >= 3
    assert float(page.value(figure("Watermark delay")).rstrip("d").replace(",", "")) > 0
    assert page.value(text_of("#pipeline-name")) == "shop"


def test_an_operator_tells_more_when_it_is_pressed(page: Page, shop: Scene) -> None:
    page.open(shop.url)
    page.wait("document.querySelectorAll('.graph .operator').length === 2")
    page.value("document.querySelector('.graph .operator').focus()")
    page.press("Enter")
    page.wait(shows(".card h3", "aggregate"))
    assert page.value(shows(".card p", "the state of #1 is unbounded")) and page.value(shows(".card p", "Level 1"))


def test_the_graph_stands_level_by_level(another: Scene, page: Page) -> None:
    levels = {"table": 3, "join": 3, "distinct": 2, "aggregate": 1, "windows": 1}
    operators = [node("operator", name, name, level=level) for name, level in levels.items()]
    views = [node("view", name, "", level=0) for name in ("one", "two")]
    lines = (
        ["source:purchases", "#table", "#join", "#distinct", "#aggregate", "view:one"],
        ["source:purchases", "#windows", "view:two"],
    )
    edges = [list(edge) for line in lines for edge in pairwise(line)]
    another.diary.describe({**PLAN, "nodes": [node("source", "purchases", ""), *operators, *views], "edges": edges})
    page.open(another.url)
    page.wait("document.querySelectorAll('.graph .node').length === 8")
    assert page.value(HEADS) == ["Sources", "Level 3", "Level 2", "Level 1", "Views"]
    boxes = page.value(
        "[...document.querySelectorAll('.graph .node')].map((each) => each.transform.baseVal[0].matrix.e)"
    )
    columns = sorted(set(boxes))
    assert [columns.index(x) for x in boxes] == [0, 1, 2, 3, 4, 4, 5, 5]
    heads = page.value("[...document.querySelectorAll('.graph .caption')].map((each) => each.x.baseVal[0].value - 2)")
    assert heads == [columns[at] for at in (0, 1, 3, 4, 5)]
    assert page.value(shows("details td", "operator on level 2: distinct"))


def test_what_no_batch_has_read_is_lag(another: Scene, page: Page) -> None:
    another.log.append("orders", [order(ORDERS), order(ORDERS + 1)])
    page.open(another.url)
    page.wait(f"{figure('Lag')} === '1frame'")
    another.log.append("orders", [order(ORDERS + 2)])
    page.wait(f"{figure('Lag')} === '2frames'")
    one_more(another)
    page.wait(f"{figure('Lag')} === '0frames'")


def test_batches_are_read_out_one_by_one(page: Page, shop: Scene) -> None:
    page.open(shop.url)
    page.wait("document.querySelectorAll('.timeline .bars rect').length > 0")
    bars = page.value("document.querySelectorAll('.timeline .bars rect').length")
    assert bars % 5 == 0  # five phases each
    page.value("document.querySelector('.timeline svg').focus()")
    page.press("Home")
    page.wait(shows(".reading", "Batch 0"))
    page.press("ArrowRight")
    page.wait(shows(".reading", "Batch 1"))
    said = page.value("document.querySelector('.timeline svg').getAttribute('aria-valuetext')")
    assert "computing 70 ms" in said and "1 late row" in said


def test_a_row_that_changes_is_marked_and_the_others_are_not(page: Page, shop: Scene) -> None:
    page.open(f"{shop.url}/#/views/spend")
    page.wait(shows("header p", "follows the changes"))
    now = one_more(shop)
    page.wait("!!document.querySelector('tr.changed')")
    assert page.value("document.querySelectorAll('tr.changed, tr.new').length") == 1
    line = page.value("document.querySelector('tr.changed').innerText").split()
    assert line == ["±", "changed", "Bern", str(now), f"{now * 3}.50"]
    assert page.value("[...document.querySelectorAll('td.changed')].length") == 2  # the key is what it was
    page.wait("/spend: \\d+ change/.test(document.querySelector('#live').textContent)")
    page.wait("!document.querySelector('tr.changed')")  # after a while it is a row like any other


def test_rows_that_come_and_go_are_marked(page: Page, shop: Scene) -> None:
    page.open(f"{shop.url}/#/views/spend")
    page.wait(shows("header p", "follows the changes"))
    now = orders_of_bern(shop)
    more = (spend("Bern", now), spend("Bern", now + 1))
    shop.batch(spend=[(None, spend("Zug", 1)), more])
    page.wait(shows("tr.new", "Zug"))
    shop.batch(spend=[(spend("Zug", 1), None), (spend("Bern", now + 1), spend("Bern", now + 2))])
    page.wait(shows("tr.gone", "Zug"))
    page.wait("!document.querySelector('tr.gone')")
    assert not page.value(shows("tbody", "Zug"))


def test_a_server_that_comes_back_is_followed_from_where_it_was_left(page: Page, tmp_path: Path) -> None:
    with scene(tmp_path / "shop") as shop:
        with shop.served(Settings(port=0)):
            page.open(f"{shop.url}/#/views/spend")
            page.wait(shows("header p", "follows the changes"))
        page.wait(shows("header p", "the server does not answer"))
        now = one_more(shop)
        with shop.served(Settings(port=urlsplit(shop.url).port or 0)):
            page.wait(shows("tr.changed", f"{now * 3}.50"))
            assert page.value(shows("header p", "follows the changes"))
    assert all("net::ERR" in said for said in page.console)  # which the browser itself notes
    page.console.clear()


def test_a_view_that_was_reset_is_shown_with_its_new_columns(page: Page, tmp_path: Path) -> None:
    with scene(tmp_path / "shop") as shop, shop.served(Settings(port=0)):
        page.open(f"{shop.url}/#/views/spend")
        page.wait(shows("header p", "follows the changes"))
        towns = {"spend": Declared("town STRING, total BIGINT", key=("town",))}
        shop.shop = Shop(shop.log, lineage=2, views=towns)
        shop.shop.batch(spend=[(None, {"town": town, "total": 7}) for town in ("Bern", "Zug")])
        shop.shop.announce()
        shop.batch(spend=[({"town": "Bern", "total": 7}, {"town": "Bern", "total": 8})])
        page.wait(shows("thead", "town"))
        page.wait(f"JSON.stringify({ROWS}) === JSON.stringify(['Bern 8', 'Zug 7'])")
        shop.batch(spend=[({"town": "Zug", "total": 7}, {"town": "Zug", "total": 9})])
        page.wait(shows("tr.changed", "Zug"))
        assert page.value(f"{ROWS}.length") == 2


TROUBLED = """
  const real = window.fetch;
  window.asked = [];
  window.fetch = async (path, options) => {
    const what = path.match(/views\\/spend\\/(rows|changes)/)?.[1];
    const status = what && window.answers[what].shift();
    if (what) asked.push([what, performance.now()]);
    if (status === 0) throw new TypeError("Failed to fetch");
    if (!status) return real(path, options);
    return new Response(JSON.stringify({ error: { primary: `it is ${status}` } }), { status });
  };
"""
"""What is asked of the view is noted, and answered as `answers` has it; where it has none, as it is."""


def troubled(page: Page, url: str, *, rows: list[int | None], changes: list[int | None]) -> None:
    answers = json.dumps({"rows": rows, "changes": changes})
    page.call("Page.addScriptToEvaluateOnNewDocument", source=f"window.answers = {answers};{TROUBLED}")
    page.open(f"{url}/#/views/spend")


def test_a_view_whose_changes_are_not_kept_is_read_again_after_pauses_that_grow(page: Page, shop: Scene) -> None:
    troubled(page, shop.url, rows=[], changes=[410] * 3)
    page.wait(shows("header p", "follows the changes"))
    read = page.value("asked.filter(([what]) => what === 'rows').map(([, at]) => at)")
    pauses = [after - before for before, after in pairwise(read)]
    assert [pause >= least for pause, least in zip(pauses, [249, 499, 999], strict=True)] == [True] * 3
    now = one_more(shop)
    page.wait(shows("tr.changed", f"{now * 3}.50"))


def test_a_view_that_could_not_be_read_is_read_again(page: Page, shop: Scene) -> None:
    troubled(page, shop.url, rows=[503, None, 0, None, 504], changes=[410])
    page.wait(shows("[role=alert]", "the server does not answer"))
    page.wait(shows("header p", "follows the changes"))
    now = one_more(shop)
    page.wait(shows("tr.changed", f"{now * 3}.50"))
    assert page.value("answers.rows") == []  # the last trouble was met while it was followed
    page.wait("!document.querySelector('[role=alert]').checkVisibility()")


def test_rows_are_sorted_filtered_and_what_makes_no_sense_is_told(page: Page, shop: Scene) -> None:
    page.open(f"{shop.url}/#/views/per_minute")
    page.wait(f"{ROWS}.length === 24")
    click(page, "thead button", "orders")
    page.wait("document.querySelector('[aria-sort]')?.getAttribute('aria-sort') === 'ascending'")
    page.wait(f"{ROWS}[0].endsWith(' 2')")
    click(page, "thead button", "orders")
    page.wait(f"{ROWS}[0].endsWith(' 8')")
    fill(page, "#where", "city = 'Oslo'")
    page.press("Enter")
    page.wait(f"{ROWS}.length === 6 && {ROWS}.every((row) => row.includes('Oslo'))")
    fill(page, "#where", "colour = 'red'")
    page.press("Enter")
    page.wait(shows("[role=alert]", "colour"))
    assert [said[:23] for said in page.console] == ["Failed to load resource"]  # which the browser itself notes
    page.console.clear()


def test_a_view_over_time_has_a_plot(page: Page, shop: Scene) -> None:
    page.open(f"{shop.url}/#/views/per_minute")
    page.wait("document.querySelectorAll('.plot .series').length === 4")
    said = page.value("document.querySelector('.plot svg').getAttribute('aria-label')")
    assert said.startswith("orders by window: ") and "Oslo 8" in said
    dashes = "[...document.querySelectorAll('.plot .series')].map((line) => getComputedStyle(line).strokeDasharray)"
    assert page.value(f"new Set({dashes}).size") == 4
    pictured(page, "plot", height=660)


def test_records_are_found_by_offset(page: Page, shop: Scene) -> None:
    page.open(f"{shop.url}/#/topics/orders")
    page.wait(f"{OFFSETS}.at(-1) === {ORDERS - 1} && {OFFSETS}.length === 50")  # the newest, at first
    fill(page, "#offset", "7")
    page.press("Enter")
    page.wait(f"{OFFSETS}[0] === 7 && {OFFSETS}.length === 50")
    pictured(page, "topic", height=620)
    click(page, "button", "Later")
    page.wait(f"{OFFSETS}[0] === 57")
    click(page, "button", "Earlier")
    page.wait(f"{OFFSETS}[0] === 7")
    click(page, "button", "Oldest")
    page.wait(f"{OFFSETS}[0] === 0")


def test_a_source_of_the_graph_leads_to_its_topic_whatever_that_is_called(page: Page, shop: Scene) -> None:
    page.open(f"{shop.url}/#/topics/purchases")
    page.wait(shows("main h2", "orders"))
    page.wait(f"{OFFSETS}.length === 50")


def test_records_are_found_by_time(page: Page, shop: Scene) -> None:
    last = next(iter(shop.log.read("orders", start=ORDERS - 1))).appended_at
    page.open(f"{shop.url}/#/topics/orders")
    page.wait(f"{OFFSETS}.length === 50")
    page.value(f"document.querySelector('#time').value = '{last.year + 1}-01-01T00:00:00'")
    click(page, "button[aria-label='Go to the time']")
    page.wait(shows("main .empty", "There are no records here."))
    page.value("document.querySelector('#time').value = '2001-01-01T00:00:00'")
    click(page, "button[aria-label='Go to the time']")
    page.wait(f"{OFFSETS}[0] === 0")


def test_a_time_between_two_appends_finds_the_second(another: Scene, page: Page) -> None:
    before = next(iter(another.log.read("orders", start=ORDERS - 1))).appended_at.astimezone(UTC)
    after = before + timedelta(minutes=2)
    with Log.open(another.log.folder, clock=lambda: int(after.timestamp() * 1_000_000)) as log:
        log.append("orders", [order(ORDERS + n) for n in range(3)])
    page.open(f"{another.url}/#/topics/orders")
    page.wait(f"{OFFSETS}.length === 50")
    page.value(f"document.querySelector('#time').value = '{before + timedelta(minutes=1):%Y-%m-%dT%H:%M:%S}'")
    click(page, "button[aria-label='Go to the time']")
    page.wait(f"{OFFSETS}.join() === '{ORDERS},{ORDERS + 1},{ORDERS + 2}'")


def test_groups_queues_and_the_way_back_of_dead_letters(page: Page, shop: Scene) -> None:
    page.open(f"{shop.url}/#/readers")
    page.wait(shows("tbody tr", "billing"))
    assert page.value(shows("tbody tr", "parcels"))
    click(page, "button", "Dead letters")
    page.wait(shows("td", "the address cannot be found"))
    pictured(page, "readers", height=900)
    fill(page, "#limit", "1")
    click(page, "form button", "Deliver again")
    page.wait("document.querySelector('#sure').open")
    click(page, "#sure button", "Leave it")
    page.wait("!document.querySelector('#sure').open")
    assert shop.log.queue("parcels").describe().dead == 3
    click(page, "form button", "Deliver again")
    page.wait("document.querySelector('#sure').open")
    click(page, "#sure-yes")
    page.wait(shows("#live", "1 dead letter of parcels will be delivered again"))
    assert shop.log.queue("parcels").describe().dead == 2


def test_dead_letters_of_a_webhook_are_sent_again(page: Page, shop: Scene) -> None:
    page.open(f"{shop.url}/#/readers")
    click(page, "button[aria-label='Dead letters of webhook of spend']")
    page.wait(shows("td", "It answered 500 Internal Server Error"))
    fill(page, "#limit-of-sink", "1")
    answers: list[Answer] = [(503, {}), (204, {})]
    shop.receiver.answer = lambda _: answers.pop(0)
    for place, told in (
        (".trouble", 'of view "spend" does not reach'),
        ("#live", "1 dead letter of webhook of spend taken, 1 left"),
    ):
        click(page, "form button", "Deliver again")
        page.wait("document.querySelector('#sure').open")
        click(page, "#sure-yes")
        page.wait(shows(place, told))
    assert [each.id for each in shop.receiver.taken] == ["msg_0"]
    assert [said[:23] for said in page.console] == ["Failed to load resource"]  # which the browser itself notes
    page.console.clear()
    page.wait(shows("section[aria-labelledby=sinks] tbody tr", "spendwebhook1"))
    note = shop.folder / ".penstock/sinks/spend.webhook.redriven.json"
    kept = note.read_bytes()
    note.write_bytes(b"{")
    page.wait(shows("section[aria-labelledby=sinks] .trouble", "cannot be read"))
    assert page.value(shows("tbody tr", "billing")) and page.value(shows("tbody tr", "parcels"))
    note.write_bytes(kept)
    page.wait(shows("section[aria-labelledby=sinks] tbody tr", "spendwebhook1"))
    page.console.clear()


@pytest.mark.parametrize("at", ["views/none", "topics/none"])
def test_what_is_not_there_is_said(page: Page, shop: Scene, at: str) -> None:
    page.open(f"{shop.url}/#/{at}")
    page.wait(shows(".empty", "There is no"))
