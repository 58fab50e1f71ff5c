"""RabbitMQ's packages, fetched once from Debian into this clone, unpacked and not installed."""

from functools import partial
from pathlib import Path

from services.debian import fetch, locked
from services.jars import CACHE, Say

ERLANG = (
    "asn1 base crypto eldap ftp inets mnesia os-mon parsetools public-key runtime-tools snmp ssl syntax-tools tftp "
    "tools xmerl"
)
NAMES = ("rabbitmq-server", *(f"erlang-{each}" for each in ERLANG.split()))
INSTALLED = Path("usr/lib/erlang")


def packages(*, say: Say = print, cache: Path = CACHE) -> Path:
    """The folder that is to RabbitMQ and Erlang what `/` is on a machine where they are installed."""
    folder = cache / "debian" / "rabbitmq"
    if folder.exists():
        return folder
    with locked(folder) as missing:
        if missing:
            say("fetching RabbitMQ and Erlang from Debian, about 35 MB, the first time")
            fetch(folder, "RabbitMQ", lambda _: NAMES, partial(_say_where, folder))
            say(f"RabbitMQ {version(folder)} is in {folder}")
    return folder


def version(folder: Path) -> str:
    return server(folder).parent.name.removeprefix("rabbitmq_server-")


def server(folder: Path) -> Path:
    """Where RabbitMQ's programs are."""
    return next((folder / "usr/lib/rabbitmq/lib").glob("rabbitmq_server-*/sbin"))


def _say_where(folder: Path, partial: Path) -> None:
    """Erlang's start script knows one place, that of the package."""
    script = partial / INSTALLED / "bin" / "erl"
    script.write_text(script.read_text().replace(f"ROOTDIR=/{INSTALLED}", f"ROOTDIR={folder / INSTALLED}"))
