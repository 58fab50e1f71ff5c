"""The dashboard over a pipeline that really runs: `penstock demo --keep`, from its first order to Ctrl-C."""

import re
import signal
import subprocess
import urllib.request
from collections.abc import Iterator

import pytest

from services.chromium import Browser, Page
from tests.dashboard.looking import shows, text_of
from tests.dashboard.pictures import pictured
from tests.test_demo import DEMO, Surroundings

pytestmark = pytest.mark.spark
VIEWS = ("spend_by_city", "big_cities", "total")


@pytest.fixture(scope="module")
def demo(browser: Browser, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address at which the demo is served; in the end it is interrupted, and leaves nothing behind."""
    surroundings = Surroundings(tmp_path_factory.mktemp("demo"))
    command = [*DEMO, "--keep", "--bind", "127.0.0.1:0"]
    said = tmp_path_factory.mktemp("said") / "errors.txt"
    with (
        open(said, "w") as errors,
        subprocess.Popen(
            command, env=surroundings.environment, text=True, stdout=subprocess.PIPE, stderr=errors
        ) as process,
    ):
        try:
            assert process.stdout is not None
            found = None
            while found is None:
                line = process.stdout.readline()
                assert line, "the demo has ended"
                found = re.search(r"The dashboard: (http://\S+)", line)
            yield found[1]
            process.send_signal(signal.SIGINT)
            assert process.wait(timeout=120) == 0
        finally:
            process.kill()
    assert said.read_text() == "stopping\n"
    surroundings.assert_clean()


def test_the_graph_of_the_demo_is_drawn_and_its_batches_come(page: Page, demo: str) -> None:
    page.open(demo)
    page.wait("document.querySelectorAll('.graph .source').length === 2")
    assert page.value("[...document.querySelectorAll('.graph .view .title')].map((e) => e.textContent)") == list(VIEWS)
    assert page.value(shows(".graph .caption", "Level 1"))
    page.wait("document.querySelector('#state-text').textContent === 'running'")
    labels = "[...document.querySelectorAll('.graph .source')].map((node) => node.ariaLabel).join()"
    page.wait(f"/Source orders: ([1-9]|0\\.[0-9]*[1-9])/.test({labels})")
    batch = "Number(document.querySelector('.timeline svg').getAttribute('aria-valuenow'))"
    seen = page.value(batch)
    page.wait(f"{batch} > {seen} + 3")
    assert all(phase in page.value(text_of(".timeline .legend")) for phase in ("computing", "appending", "storing"))
    page.wait("document.querySelector('.figures').innerText.includes('ms')")
    pictured(page, "pipeline", height=1060)


def test_a_row_of_the_demo_changes_live(page: Page, demo: str) -> None:
    page.open(f"{demo}/#/views/spend_by_city")
    page.wait(shows("header p", "follows the changes"))
    before = page.value("document.querySelector('tbody').innerText")
    page.wait("!!document.querySelector('tr.changed, tr.new')")
    assert page.value("document.querySelector('tbody').innerText") != before
    pictured(page, "view", height=560)


def test_the_records_of_the_demo_can_be_looked_into(page: Page, demo: str) -> None:
    page.open(f"{demo}/#/topics/orders")
    page.wait(shows("tbody tr", "12.50"))
    with urllib.request.urlopen(demo) as answer:
        assert answer.headers["content-security-policy"].startswith("default-src 'none'")
