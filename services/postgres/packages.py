"""PostgreSQL's programs: those of Debian that are installed, or its packages, fetched once into this clone."""

from pathlib import Path

from services.debian import fetch, locked
from services.jars import CACHE, Say

PROGRAMS = "usr/lib/postgresql/*/bin"


def programs(*, say: Say = print, cache: Path = CACHE, system: Path = Path("/")) -> Path:
    """The folder of PostgreSQL's programs, the newest that there is."""
    return _newest(system) or _fetched(say, cache / "debian" / "postgres")


def libraries(programs: Path) -> Path | None:
    """Where unpacked packages have their libraries; None where they are installed."""
    root = programs.parents[4]
    return None if root == Path("/") else next((root / "usr/lib").glob("*-linux-gnu"), None)


def _newest(root: Path) -> Path | None:
    found = [each for each in root.glob(PROGRAMS) if (each / "postgres").exists() and (each / "initdb").exists()]
    return max(found, key=lambda each: float(each.parent.name), default=None)


def _fetched(say: Say, folder: Path) -> Path:
    with locked(folder) as missing:
        if missing:
            say("fetching PostgreSQL from Debian, about 50 MB, the first time")
            fetch(folder, "PostgreSQL", lambda apt: apt.needed("postgresql"))
            say(f"PostgreSQL is in {folder}")
    found = _newest(folder)
    assert found is not None
    return found
