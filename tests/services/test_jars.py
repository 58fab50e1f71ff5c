"""Jars are fetched once, whole or not at all, and what is missing is named."""

import sys
from pathlib import Path

import pytest

from services.jars import ServiceError, jars

PACKAGES = ("a.group:one:1.0", "a.group:two:2.0")


@pytest.fixture
def maven(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A `mvn` that copies what it is asked for, or fails if there is a file `fail`; it counts its runs."""
    program = tmp_path / "bin" / "mvn"
    program.parent.mkdir()
    program.write_text(f"""#!{sys.executable}
import pathlib, sys
here = pathlib.Path({str(tmp_path)!r})
(here / "runs").open("a").write("x")
folder = pathlib.Path(next(word for word in sys.argv if "outputDirectory" in word).partition("=")[2])
(folder / "one.jar").touch()
if (here / "fail").exists():
    print("[INFO] looking")
    sys.exit("[ERROR] Could not find artifact a.group:two:jar:2.0")
""")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", str(program.parent))
    return tmp_path


def test_jars_are_fetched_once(maven: Path) -> None:
    said: list[str] = []
    for _ in range(2):
        folder = jars("thing-1", PACKAGES, say=said.append, cache=maven / "cache")
        assert [path.name for path in folder.iterdir()] == ["one.jar"]
    assert (maven / "runs").read_text() == "x" and len(said) == 2


def test_jars_that_could_not_all_be_fetched_are_not_there(maven: Path) -> None:
    (maven / "fail").touch()
    with pytest.raises(
        ServiceError, match=r"could not fetch a.group:one:1.0, a.group:two:2.0\n.*Could not find artifact"
    ):
        jars("thing-1", PACKAGES, say=lambda text: None, cache=maven / "cache")
    (maven / "fail").unlink()
    assert jars("thing-1", PACKAGES, say=lambda text: None, cache=maven / "cache").is_dir()


def test_a_missing_maven_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "")
    with pytest.raises(ServiceError, match=r'Maven is needed .*\n.*There is no "mvn" on the PATH\.\n.*Install Maven'):
        jars("thing-1", PACKAGES, say=lambda text: None, cache=tmp_path)


def test_packages_come_alone_if_asked_for(maven: Path) -> None:
    jars("thing-1", PACKAGES, say=lambda _: None, cache=maven / "cache", alone=True)
    assert (maven / "cache" / "jars" / "thing-1.pom.xml").read_text().count("<exclusion>") == len(PACKAGES)
