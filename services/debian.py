"""Packages of Debian, fetched once into this clone.

They are unpacked, not installed: no rights are needed for that, and nothing starts with the machine. The folder is
there whole or not at all. Processes that want it at the same time fetch it once.
"""

import fcntl
import os
import shutil
import subprocess
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from services.jars import ServiceError, program

Names = Callable[["Apt"], Sequence[str]]


@contextmanager
def locked(folder: Path) -> Iterator[bool]:
    """Inside, nobody else fetches the folder; whether it is missing still."""
    folder.parent.mkdir(parents=True, exist_ok=True)
    with open(folder.with_name(f"{folder.name}.lock"), "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield not folder.exists()


def fetch(folder: Path, what: str, names: Names, finish: Callable[[Path], None] = lambda _: None) -> None:
    """Unpacks the packages of `what` into the folder; `finish` is told where they lie before they are there."""
    hint = f"{what} is taken from Debian, or a system made of it."
    apt, dpkg = (program(name, f"{what} cannot be fetched here", hint) for name in ("apt-get", "dpkg-deb"))
    partial, files = folder.with_name(f"{folder.name}.partial"), folder.with_name(f"{folder.name}.files")
    for each in (partial, files):
        shutil.rmtree(each, ignore_errors=True)
        each.mkdir()
    try:
        _download(Apt(apt, files, what), names)
    except ServiceError:  # the system's lists may be missing, or old
        _download(_with_lists(Apt(apt, files, what)), names)
    for package in sorted(files.glob("*.deb")):
        checked([dpkg, "-x", str(package), str(partial)], files, what)
    finish(partial)
    shutil.rmtree(files)
    os.replace(partial, folder)


class Apt:
    """`apt-get`, run in a folder."""

    def __init__(self, path: str, folder: Path, what: str, options: Sequence[str] = ()) -> None:
        self.path = path
        self.folder = folder
        self.what = what
        self.options = options

    def run(self, *words: str) -> str:
        return checked([self.path, *self.options, *words], self.folder, self.what)

    def needed(self, name: str) -> list[str]:
        """The package, and what of the packages that it needs is not installed here."""
        said = self.run("--simulate", "--no-install-recommends", "install", name)
        return [line.split()[1] for line in said.splitlines() if line.startswith("Inst ")]


def _download(apt: Apt, names: Names) -> None:
    apt.run("download", *names(apt))


def _with_lists(apt: Apt) -> Apt:
    """With lists of our own: to bring the system's up to date takes its administrator."""
    state, cache = apt.folder / "state", apt.folder / "cache"
    for each in (state / "lists" / "partial", cache / "archives" / "partial"):
        each.mkdir(parents=True)
    own = ["-o", f"Dir::State={state}", "-o", f"Dir::Cache={cache}", "-o", "Dir::State::status=/var/lib/dpkg/status"]
    found = Apt(apt.path, apt.folder, apt.what, own)
    found.run("update")
    return found


def checked(words: Sequence[str], folder: Path, what: str) -> str:
    done = subprocess.run(words, cwd=folder, capture_output=True, text=True, check=False)
    if done.returncode == 0:
        return done.stdout
    lines = [line.strip() for line in (done.stderr or done.stdout).splitlines() if line.strip()]
    said = next((line for line in lines if line.startswith("E:")), lines[-1] if lines else "nothing")
    raise ServiceError(
        f"{what} could not be fetched from Debian",
        detail=f"{words[0]} said: {said}",
        hint="Is the network there, and do the package sources of this machine have it?",
    )
