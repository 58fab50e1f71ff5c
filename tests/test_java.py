"""The Java runtime is found as Spark finds it, and refused before Spark trips over it."""

from pathlib import Path

import pytest

from penstock.engine.java import Java, find_java
from tests.texts import refused


def fake_java(home: Path, says: str) -> Path:
    """A `java` under `home`/bin that answers `-version` with `says`, on standard error as Java does."""
    java = home / "bin" / "java"
    java.parent.mkdir(parents=True)
    java.write_text(f"#!/bin/sh\ncat >&2 <<'END'\n{says}\nEND\n")
    java.chmod(0o755)
    return java


def path_of(java: Path) -> str:
    """A PATH with `java` first, and with the tools that the fake itself needs."""
    return f"{java.parent}:/usr/bin:/bin"


@pytest.mark.parametrize(
    ("says", "version"),
    [
        ('openjdk version "17.0.15" 2025-04-15\nOpenJDK Runtime Environment', 17),
        ('java version "21.0.2" 2024-01-16 LTS', 21),
        ('openjdk version "25-ea" 2025-09-16', 25),
        ('Picked up JAVA_TOOL_OPTIONS: -Xmx1g\nopenjdk version "17" 2021-09-14', 17),
    ],
)
def test_a_new_enough_java_is_accepted(tmp_path: Path, says: str, version: int) -> None:
    java = fake_java(tmp_path, says)
    assert find_java({"PATH": path_of(java)}) == Java(str(java), version)


def test_java_home_goes_before_the_path(tmp_path: Path) -> None:
    chosen = fake_java(tmp_path / "home", 'openjdk version "21.0.2"')
    other = fake_java(tmp_path / "path", 'openjdk version "17.0.1"')
    assert find_java({"JAVA_HOME": str(tmp_path / "home"), "PATH": path_of(other)}) == Java(str(chosen), 21)


def test_a_java_home_without_java_is_not_passed_over_for_the_path(tmp_path: Path) -> None:
    java = fake_java(tmp_path / "path", 'openjdk version "17.0.1"')
    with refused("engine/java-home", folder=tmp_path):
        find_java({"JAVA_HOME": str(tmp_path), "PATH": path_of(java)})


@pytest.mark.parametrize("environment", [{"PATH": ""}, {}])
def test_a_missing_java_is_an_error_that_says_what_to_install(environment: dict[str, str]) -> None:
    with refused("engine/java-missing"):
        find_java(environment)


@pytest.mark.parametrize(("says", "version"), [('java version "1.8.0_392"', 8), ('openjdk version "11.0.2"', 11)])
def test_an_old_java_is_refused_with_its_version(tmp_path: Path, says: str, version: int) -> None:
    java = fake_java(tmp_path, says)
    with refused("engine/java-old", folder=tmp_path, version=f"Java {version}."):
        find_java({"JAVA_HOME": str(tmp_path), "PATH": path_of(java)})


def test_what_does_not_answer_like_java_is_shown(tmp_path: Path) -> None:
    java = fake_java(tmp_path, "The operation couldn't be completed. Unable to locate a Java Runtime.")
    with refused("engine/java-silent", folder=tmp_path):
        find_java({"PATH": path_of(java)})


def test_a_java_that_cannot_be_run_is_an_error(tmp_path: Path) -> None:
    java = fake_java(tmp_path, "")
    java.write_text("no program")
    with refused("engine/java-broken", folder=tmp_path):
        find_java({"PATH": path_of(java)})
