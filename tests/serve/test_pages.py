"""The dashboard's files: all there, nothing from elsewhere, nothing inline."""

import re
from html.parser import HTMLParser

from penstock.serve.pages import FOLDER
from tests.serve.client import Client

ELSEWHERE = re.compile(r"(?<!w3\.org/2000/svg)https?://(?!www\.w3\.org/2000/svg)")


def test_the_page_may_run_nothing_but_its_own_files(client: Client) -> None:
    got = client.get("/")
    assert got.headers["content-type"] == "text/html; charset=utf-8"
    policy = dict(part.split(" ", 1) for part in got.headers["content-security-policy"].split("; "))
    assert (policy["default-src"], policy["script-src"], policy["connect-src"]) == ("'none'", "'self'", "'self'")
    assert "unsafe" not in got.headers["content-security-policy"]
    assert got.headers["x-content-type-options"] == "nosniff"


class Page(HTMLParser):
    """What a page refers to, and whatever in it would be run or would style."""

    def __init__(self) -> None:
        super().__init__()
        self.files: list[str] = []
        self.inline: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = dict(attrs)
        self.files += [value for name, value in attrs if value and name in ("src", "href") and value[0] != "#"]
        self.inline += [name for name in given if name.startswith("on") or name == "style"]
        self.inline += [tag] if tag == "style" or (tag == "script" and "src" not in given) else []


def test_everything_that_the_page_refers_to_is_there(client: Client) -> None:
    page = Page()
    page.feed(client.get("/").data.decode())
    assert page.inline == []
    assert {path: client.get(f"/{path}").status for path in page.files} == dict.fromkeys(page.files, 200)


def test_modules_import_what_is_there_and_nothing_comes_from_elsewhere() -> None:
    names = {each.name for each in FOLDER.iterdir()}
    for file in FOLDER.iterdir():
        text = file.read_text()
        assert set(re.findall(r'from "\./([^"]+)"', text)) <= names
        assert ELSEWHERE.search(text) is None, file.name
        assert "innerHTML" not in text, file.name


def test_files_are_sent_again_only_when_they_have_changed(client: Client) -> None:
    mark = client.get("/dashboard/main.js").headers["etag"]
    assert client.get("/dashboard/main.js", headers={"if-none-match": mark}).status == 304
    got = client.get("/dashboard/none.js")
    assert (got.status, got.primary) == (404, 'the dashboard has no file "none.js"')
