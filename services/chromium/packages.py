"""Chromium: that of Debian if it is installed, or its packages, fetched once into this clone."""

from pathlib import Path

from services.debian import fetch, locked
from services.jars import CACHE, Say

PROGRAM = Path("usr/lib/chromium/chromium")


def program(*, say: Say = print, cache: Path = CACHE, system: Path = Path("/")) -> Path:
    if (system / PROGRAM).exists():
        return system / PROGRAM
    folder = cache / "debian" / "chromium"
    with locked(folder) as missing:
        if missing:
            say("fetching Chromium from Debian, about 125 MB, the first time")
            fetch(folder, "Chromium", lambda apt: apt.needed("chromium"))
            say(f"Chromium is in {folder}")
    return folder / PROGRAM


def libraries(program: Path) -> Path | None:
    """Where unpacked packages have their libraries; None where they are installed."""
    root = program.parents[3]
    return None if root == Path("/") else next((root / "usr/lib").glob("*-linux-gnu"), None)
