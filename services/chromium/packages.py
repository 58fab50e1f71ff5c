"""Chromium: that of Debian if it is installed, or its packages, fetched once into this clone."""

from pathlib import Path

from services.debian import fetch, locked
from services.jars import CACHE, Say

PROGRAM = Path("usr/lib/chromium/chromium")
FONTS = ("fonts-inter",)
"""So that pictures look the same wherever they are taken."""
SETTINGS = """<?xml version="1.0"?>
<fontconfig>
  <dir>{fonts}</dir>
  <dir>/usr/share/fonts</dir>
  <cachedir>{cache}</cachedir>
  <alias><family>sans-serif</family><prefer><family>Inter</family></prefer></alias>
</fontconfig>
"""


def program(*, say: Say = print, cache: Path = CACHE, system: Path = Path("/")) -> Path:
    if (system / PROGRAM).exists():
        return system / PROGRAM
    folder = cache / "debian" / "chromium"
    with locked(folder) as missing:
        if missing:
            say("fetching Chromium from Debian, about 125 MB, the first time")
            fetch(folder, "Chromium", lambda apt: [*apt.needed("chromium"), *FONTS])
            say(f"Chromium is in {folder}")
    return folder / PROGRAM


def libraries(program: Path) -> list[Path]:
    """Where unpacked packages have their libraries; none where they are installed."""
    root = program.parents[3]
    found = [] if root == Path("/") else list((root / "usr/lib").glob("*-linux-gnu"))
    return [*found, *(each for base in found for each in base.iterdir() if any(each.glob("lib*.so*")))]


def fonts(program: Path, folder: Path) -> Path | None:
    """Settings for fonts, written into the folder, where they were fetched; None where the system has its own."""
    root = program.parents[3]
    if root == Path("/"):
        return None
    settings = folder / "fonts.conf"
    settings.write_text(SETTINGS.format(fonts=root / "usr/share/fonts", cache=folder / "fonts"))
    return settings
