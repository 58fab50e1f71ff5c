"""RabbitMQ's packages, fetched once from Debian into this clone.

They are unpacked, not installed: no rights are needed for that, and nothing starts with the machine. The folder is
there whole or not at all. Processes that want it at the same time fetch it once.
"""

import fcntl
import os
import shutil
import subprocess
from pathlib import Path

from services.jars import CACHE, Say, ServiceError, program

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
    folder.parent.mkdir(parents=True, exist_ok=True)
    with open(folder.parent / "rabbitmq.lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not folder.exists():
            say("fetching RabbitMQ and Erlang from Debian, about 35 MB, the first time")
            _fetch(folder)
            say(f"RabbitMQ {version(folder)} is in {folder}")
    return folder


def version(folder: Path) -> str:
    return server(folder).parent.name.removeprefix("rabbitmq_server-")


def server(folder: Path) -> Path:
    """Where RabbitMQ's programs are."""
    return next((folder / "usr/lib/rabbitmq/lib").glob("rabbitmq_server-*/sbin"))


def _fetch(folder: Path) -> None:
    hint = "RabbitMQ is taken from Debian, or a system made of it."
    apt, dpkg = (program(name, "RabbitMQ cannot be fetched here", hint) for name in ("apt-get", "dpkg-deb"))
    partial, files = folder.with_name("rabbitmq.partial"), folder.with_name("rabbitmq.files")
    for each in (partial, files):
        shutil.rmtree(each, ignore_errors=True)
        each.mkdir()
    if _run([apt, "download", *NAMES], files) is not None:  # the system's lists may be missing, or old
        _fetch_with_lists(apt, files)
    for package in sorted(files.glob("*.deb")):
        _checked([dpkg, "-x", str(package), str(partial)], files)
    _say_where(partial, folder)
    shutil.rmtree(files)
    os.replace(partial, folder)


def _fetch_with_lists(apt: str, files: Path) -> None:
    """With lists of our own: to bring the system's up to date takes its administrator."""
    state, cache = files / "state", files / "cache"
    for each in (state / "lists" / "partial", cache / "archives" / "partial"):
        each.mkdir(parents=True)
    own = ["-o", f"Dir::State={state}", "-o", f"Dir::Cache={cache}", "-o", "Dir::State::status=/var/lib/dpkg/status"]
    _checked([apt, *own, "update"], files)
    _checked([apt, *own, "download", *NAMES], files)


def _say_where(partial: Path, folder: Path) -> None:
    """Erlang's start script knows one place, that of the package."""
    script = partial / INSTALLED / "bin" / "erl"
    script.write_text(script.read_text().replace(f"ROOTDIR=/{INSTALLED}", f"ROOTDIR={folder / INSTALLED}"))


def _checked(words: list[str], folder: Path) -> None:
    if (said := _run(words, folder)) is not None:
        raise ServiceError(
            "RabbitMQ could not be fetched from Debian",
            detail=f"{words[0]} said: {said}",
            hint="Is the network there, and do the package sources of this machine have rabbitmq-server?",
        )


def _run(words: list[str], folder: Path) -> str | None:
    """None if it went well, else the error."""
    done = subprocess.run(words, cwd=folder, capture_output=True, text=True, check=False)
    if done.returncode == 0:
        return None
    lines = [line.strip() for line in (done.stderr or done.stdout).splitlines() if line.strip()]
    return next((line for line in lines if line.startswith("E:")), lines[-1] if lines else "nothing")
