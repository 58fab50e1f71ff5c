"""PostgreSQL's programs are those that are installed, or are fetched once from Debian."""

import sys
from pathlib import Path

import pytest

from services.jars import ServiceError
from services.postgres.packages import libraries, programs
from tests.services.test_packages import PROGRAM

APT = """
if "--simulate" in words:
    print("Reading package lists...\\nInst libpq5 (15.1 Debian [amd64])\\nInst postgresql-15 (15.1 Debian [amd64])")
elif "download" in words:
    for name in words[words.index("download") + 1:]:
        pathlib.Path(name + ".deb").touch()
"""
DPKG = """
root = pathlib.Path(words[2])
if "postgresql-15" in words[1]:
    (root / "usr/lib/postgresql/15/bin").mkdir(parents=True)
    for name in ("postgres", "initdb"):
        (root / "usr/lib/postgresql/15/bin" / name).touch()
else:
    (root / "usr/lib/x86_64-linux-gnu").mkdir(parents=True)
"""


def put(root: Path, *versions: str) -> None:
    for version in versions:
        folder = root / "usr/lib/postgresql" / version / "bin"
        folder.mkdir(parents=True)
        for name in ("postgres", "initdb"):
            (folder / name).touch()


def test_the_newest_that_is_installed_is_taken(tmp_path: Path) -> None:
    put(tmp_path, "9.6", "15", "13")
    assert programs(system=tmp_path, cache=tmp_path / "cache").parent.name == "15"


def test_what_is_not_installed_is_fetched_once_with_what_it_needs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "bin").mkdir()
    for name, act in (("apt-get", APT), ("dpkg-deb", DPKG)):
        program = tmp_path / "bin" / name
        program.write_text(PROGRAM.format(python=sys.executable, here=str(tmp_path), act=act))
        program.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    said: list[str] = []
    for _ in range(2):
        found = programs(say=said.append, cache=tmp_path / "cache", system=tmp_path / "nothing")
    root = tmp_path / "cache/debian/postgres"
    assert found == root / "usr/lib/postgresql/15/bin"
    assert libraries(found) == root / "usr/lib/x86_64-linux-gnu"
    assert (tmp_path / "runs").read_text().split() == ["apt-get", "apt-get", "dpkg-deb", "dpkg-deb"]
    assert len(said) == 2


def test_a_machine_that_is_not_debian_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "")
    with pytest.raises(ServiceError, match=r'PostgreSQL cannot be fetched here\n.*There is no "apt-get" on the PATH\.'):
        programs(say=lambda text: None, cache=tmp_path, system=tmp_path / "nothing")
