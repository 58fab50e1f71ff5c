"""Redis' server: that of Debian if it is installed, or its packages, fetched once into this clone."""

from pathlib import Path

from services.debian import fetch, locked
from services.jars import CACHE, Say

PROGRAM = Path("usr/bin/redis-server")


def program(*, say: Say = print, cache: Path = CACHE, system: Path = Path("/")) -> Path:
    if (system / PROGRAM).exists():
        return system / PROGRAM
    folder = cache / "debian" / "redis"
    with locked(folder) as missing:
        if missing:
            say("fetching Redis from Debian, about 2 MB, the first time")
            fetch(folder, "Redis", lambda apt: apt.needed("redis-server"))
            say(f"Redis is in {folder}")
    return folder / PROGRAM


def libraries(program: Path) -> Path | None:
    """Where unpacked packages have their libraries; None where they are installed."""
    root = program.parents[2]
    return None if root == Path("/") else next((root / "usr/lib").glob("*-linux-gnu"), None)
