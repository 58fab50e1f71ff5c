"""The dashboard is for everybody: with a keyboard, a screen reader, little contrast to spare, a small screen, no liking
for motion, and a token.
"""

from collections.abc import Iterator
from pathlib import Path

import pytest

from penstock.serve import Settings
from penstock.serve.settings import tokens_in
from services.chromium import Page
from tests.dashboard.looking import CONTRAST, fill, landmarks, nameless, shows, tabbed, text_of
from tests.dashboard.scene import Scene, scene, spend

PANELS = {
    "pipeline": "document.querySelectorAll('.graph .node').length === 5",
    "views/per_minute": "document.querySelectorAll('tbody tr').length > 9 && !!document.querySelector('.series')",
    "topics/orders": "document.querySelectorAll('tbody tr').length > 9",
    "readers": "document.querySelectorAll('tbody tr').length > 1",
}
TOKEN = "a-token-for-the-dashboard"


@pytest.mark.parametrize("panel", PANELS)
def test_the_keyboard_reaches_everything_and_everything_has_a_name(page: Page, shop: Scene, panel: str) -> None:
    page.open(f"{shop.url}/#/{panel}")
    page.wait(PANELS[panel])
    assert tabbed(page) == []
    assert nameless(page) == []
    assert landmarks(page) == {"banner", "navigation", "main", "contentinfo"}
    heads = "[...document.querySelectorAll('h1, h2, h3')].filter((head) => head.checkVisibility())"
    levels = page.value(f"{heads}.map((head) => Number(head.tagName[1]))")
    assert levels[0] == 1 and levels.count(1) == 1 and 2 in levels


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_text_has_contrast(page: Page, shop: Scene, scheme: str) -> None:
    page.prefer(color_scheme=scheme, reduced_motion="reduce")
    for panel, ready in PANELS.items():
        page.open(f"{shop.url}/#/{panel}")
        page.wait(ready)
        assert page.value(CONTRAST) == [], panel


def test_on_a_phone_nothing_sticks_out(page: Page, shop: Scene) -> None:
    page.resize(375, 740)
    for panel, ready in PANELS.items():
        page.open(f"{shop.url}/#/{panel}")
        page.wait(ready)
        assert page.value("document.documentElement.scrollWidth") <= 375, panel


def test_the_first_link_leads_to_the_content(page: Page, shop: Scene) -> None:
    page.open(f"{shop.url}/#/readers")
    page.wait(PANELS["readers"])
    page.press("Tab")
    assert page.value("document.activeElement.textContent") == "Skip to the content"
    page.press("Enter")
    assert page.value("document.activeElement.id") == "main"
    assert page.value("location.hash") == "#/readers"


def test_who_likes_no_motion_sees_the_mark_without_it(page: Page, shop: Scene) -> None:
    page.prefer(reduced_motion="reduce")
    page.open(f"{shop.url}/#/views/spend")
    page.wait(shows("header p", "follows the changes"))
    now = 29 + shop.shop.batches
    shop.batch(spend=[(spend("Bern", now), spend("Bern", now + 1))])
    page.wait("!!document.querySelector('tr.changed')")
    assert page.value("document.getAnimations().length") == 0
    assert page.value("getComputedStyle(document.querySelector('td.changed')).backgroundColor") == "rgb(253, 240, 191)"


def test_the_theme_that_was_chosen_stays(page: Page, shop: Scene) -> None:
    page.prefer(color_scheme="light")
    page.open(shop.url)
    ground = "getComputedStyle(document.documentElement).backgroundColor"
    page.wait("!!document.querySelector('.graph')")
    assert page.value(ground) == "rgb(251, 251, 249)"
    page.value("const s = document.querySelector('#theme'); s.value = 'dark'; s.dispatchEvent(new Event('change'))")
    assert page.value(ground) == "rgb(19, 23, 26)"
    page.call("Page.reload")
    page.wait("document.readyState === 'complete' && !!document.querySelector('.graph')")
    assert page.value(ground) == "rgb(19, 23, 26)"


@pytest.fixture(scope="module")
def guarded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Scene]:
    folder: Path = tmp_path_factory.mktemp("guarded")
    (folder / "tokens").write_text(f"read {TOKEN}\n")
    settings = Settings(port=0, tokens=tokens_in(folder / "tokens"))
    with scene(folder / "shop") as shop, shop.served(settings):
        yield shop


def test_where_a_token_is_needed_the_page_asks_for_it_and_follows_with_it(page: Page, guarded: Scene) -> None:
    page.open(f"{guarded.url}/#/views/spend")
    page.wait("document.querySelector('#token')?.open")
    assert page.value("document.activeElement.id") == "token-text"
    page.write("not-the-token-at-all")
    page.press("Enter")
    page.wait(shows("#token-trouble", "This token is not known here."))
    fill(page, "#token-text", TOKEN)
    page.press("Enter")
    page.wait(shows("header p", "follows the changes"))
    now = 29 + guarded.shop.batches
    guarded.batch(spend=[(spend("Bern", now), spend("Bern", now + 1))])
    page.wait("!!document.querySelector('tr.changed')")
    assert page.value("Object.values(sessionStorage)") == [TOKEN]
    assert page.value("localStorage.length") == 0
    assert page.value(text_of("#forget")) == "Forget the token"
    page.console.clear()  # the browser itself notes every 401
