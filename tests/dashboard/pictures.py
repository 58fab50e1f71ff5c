"""Pictures of the dashboard for the documents, taken by the tests: PENSTOCK_PICTURES=write

A picture carries what its page was made of, as a text in the file. So a test notices that the page is not the one of
the picture any more.
"""

import json
import os
from pathlib import Path
from zlib import crc32

from services.chromium import Page

PICTURES = Path(__file__).parents[2] / "docs/images"
PARTS = "[...document.querySelectorAll('h2, .graph .caption, .graph .title')].map((each) => each.textContent)"
TEXT = b"iTXtpenstock\0\0\0\0\0"
"""The type of the chunk, its keyword, and that it is not packed and in no language."""
LAST = 12
"""Bytes of the chunk that ends a picture."""


def pictured(page: Page, name: str, *, height: int) -> None:
    """The picture of that name, light and dark, shows this page."""
    parts = page.value(PARTS)
    if os.environ.get("PENSTOCK_PICTURES") == "write":
        _take(page, name, height, parts)
    for scheme in ("light", "dark"):
        shown = parts_in((PICTURES / f"{name}-{scheme}.png").read_bytes())
        assert shown == parts, f"the picture {name}-{scheme} is of another page; anew: PENSTOCK_PICTURES=write"


def _take(page: Page, name: str, height: int, parts: list[str]) -> None:
    PICTURES.mkdir(exist_ok=True)
    page.resize(1200, height)
    for scheme in ("light", "dark"):
        page.prefer(color_scheme=scheme, reduced_motion="reduce")
        (PICTURES / f"{name}-{scheme}.png").write_bytes(with_parts(page.picture(), parts))
    page.prefer()
    page.resize(1200, 800)


def with_parts(picture: bytes, parts: list[str]) -> bytes:
    chunk = TEXT + json.dumps(parts).encode()
    framed = (len(chunk) - 4).to_bytes(4) + chunk + crc32(chunk).to_bytes(4)
    return picture[:-LAST] + framed + picture[-LAST:]


def parts_in(picture: bytes) -> list[str]:
    _, _, rest = picture[: -LAST - 4].partition(TEXT)
    found: list[str] = json.loads(rest or "[]")
    return found
