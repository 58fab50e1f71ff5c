"""Chromium is that of Debian which is installed, or is fetched once; and a page's faults are told."""

import sys
from pathlib import Path

import pytest

from services.chromium.packages import fonts, libraries, program
from tests.services.test_packages import PROGRAM

APT = """
if "--simulate" in words:
    print("Inst chromium-common (1 Debian [amd64])\\nInst chromium (1 Debian [amd64])")
elif "download" in words:
    for name in words[words.index("download") + 1:]:
        pathlib.Path(name + ".deb").touch()
"""
DPKG = """
root = pathlib.Path(words[2])
if "fonts-inter" in words[1]:
    (root / "usr/share/fonts").mkdir(parents=True, exist_ok=True)
else:
    for path in ("usr/lib/chromium/chromium", "usr/lib/x86_64-linux-gnu/pulse/libpulse.so.1"):
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).touch()
"""


def test_what_is_installed_is_taken(tmp_path: Path) -> None:
    (tmp_path / "usr/lib/chromium").mkdir(parents=True)
    (tmp_path / "usr/lib/chromium/chromium").touch()
    assert program(system=tmp_path, cache=tmp_path / "cache") == tmp_path / "usr/lib/chromium/chromium"
    assert (libraries(Path("/usr/lib/chromium/chromium")), fonts(Path("/usr/lib/chromium/chromium"), tmp_path)) == (
        [],
        None,
    )


def test_what_is_not_installed_is_fetched_once_with_its_fonts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "bin").mkdir()
    for name, act in (("apt-get", APT), ("dpkg-deb", DPKG)):
        script = tmp_path / "bin" / name
        script.write_text(PROGRAM.format(python=sys.executable, here=str(tmp_path), act=act))
        script.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    said: list[str] = []
    for _ in range(2):
        found = program(say=said.append, cache=tmp_path / "cache", system=tmp_path / "nothing")
    root = tmp_path / "cache/debian/chromium"
    assert (found, len(said)) == (root / "usr/lib/chromium/chromium", 2)
    base = root / "usr/lib/x86_64-linux-gnu"
    assert libraries(found) == [base, base / "pulse"]
    settings = fonts(found, tmp_path)
    assert settings is not None and str(root / "usr/share/fonts") in settings.read_text()
