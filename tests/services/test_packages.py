"""RabbitMQ's packages are fetched once, whole or not at all, and what is missing is named."""

import sys
from pathlib import Path

import pytest

from services.jars import ServiceError
from services.rabbitmq.packages import packages, version

PROGRAM = """#!{python}
import pathlib, sys
here, words = pathlib.Path({here!r}), sys.argv[1:]
(here / "runs").open("a").write(pathlib.Path(sys.argv[0]).name + "\\n")
{act}
"""
APT = """
if "download" in words:
    if not (here / "lists").exists():
        sys.exit("W: something else\\nE: Unable to locate package rabbitmq-server")
    pathlib.Path("rabbitmq-server.deb").touch()
elif (here / "network").exists():
    (here / "lists").touch()
else:
    sys.exit("E: Could not resolve host")
"""
DPKG = """
erlang = pathlib.Path(words[2]) / "usr/lib/erlang/bin"
erlang.mkdir(parents=True)
(erlang / "erl").write_text("ROOTDIR=/usr/lib/erlang")
(pathlib.Path(words[2]) / "usr/lib/rabbitmq/lib/rabbitmq_server-9.9/sbin").mkdir(parents=True)
"""


@pytest.fixture
def debian(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A machine with an `apt-get` that finds packages once it has lists, which it gets if there is a file `network`."""
    (tmp_path / "bin").mkdir()
    for name, act in (("apt-get", APT), ("dpkg-deb", DPKG)):
        program = tmp_path / "bin" / name
        program.write_text(PROGRAM.format(python=sys.executable, here=str(tmp_path), act=act))
        program.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    return tmp_path


def test_packages_are_fetched_once_with_lists_of_our_own(debian: Path) -> None:
    (debian / "network").touch()
    said: list[str] = []
    for _ in range(2):
        folder = packages(say=said.append, cache=debian / "cache")
    assert version(folder) == "9.9" and len(said) == 2
    assert (folder / "usr/lib/erlang/bin/erl").read_text() == f"ROOTDIR={folder}/usr/lib/erlang"
    assert (debian / "runs").read_text().split() == ["apt-get"] * 3 + ["dpkg-deb"]


def test_packages_that_could_not_be_fetched_are_not_there(debian: Path) -> None:
    with pytest.raises(ServiceError, match=r"could not be fetched from Debian\n.*E: Could not resolve host"):
        packages(say=lambda text: None, cache=debian / "cache")
    (debian / "network").touch()
    assert packages(say=lambda text: None, cache=debian / "cache").is_dir()


def test_a_machine_that_is_not_debian_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "")
    with pytest.raises(ServiceError, match=r'cannot be fetched here\n.*There is no "apt-get" on the PATH\.\n.*Debian'):
        packages(say=lambda text: None, cache=tmp_path)
