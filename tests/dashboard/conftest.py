"""What tests of the dashboard share: one Chromium in each process, pages that are watched, and a shop to look at."""

import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from penstock.serve import Settings
from services.chromium import Browser, Page, browser_in
from services.chromium.packages import program
from services.jars import ServiceError
from tests.dashboard.scene import Scene, scene


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if "browser" in getattr(item, "fixturenames", ()):
            item.add_marker("chromium")


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    try:
        program()
    except ServiceError as error:
        if os.environ.get("PENSTOCK_SERVICES") == "required":
            raise
        pytest.skip(f"no Chromium: {error.primary}")
    folder = Path(tempfile.mkdtemp(prefix="penstock-chromium-"))
    with browser_in(folder) as browser:
        yield browser
    shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture
def page(browser: Browser) -> Iterator[Page]:
    """A page. Whatever a test does with it: nothing fails in it, and nothing is asked of anybody but this machine."""
    with browser.page() as page:
        page.resize(1200, 800)
        yield page
        assert page.console == []
        assert [url for url in page.asked if not url.startswith(("http://127.0.0.1:", "data:"))] == []


@pytest.fixture(scope="module")
def shop(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Scene]:
    with scene(tmp_path_factory.mktemp("scene") / "shop") as shop, shop.served(Settings(port=0)):
        yield shop
