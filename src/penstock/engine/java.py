"""The Java runtime that Spark will start, checked before Spark tries.

It is looked for where Spark's own scripts look: `JAVA_HOME` if that is set, else the `PATH`. What is
returned has been run once and is new enough; everything else is an `EngineError` that says what was found
and what to do.
Spark itself would fail too, but with the log of a dead process.
"""

import re
import shutil
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from penstock.errors import EngineError

OLDEST: Final = 17
TESTED: Final = (17, 21)

_INSTALL = f"Install a Java runtime ({' or '.join(map(str, TESTED))}); put it on the PATH or name it in JAVA_HOME."
_PATIENCE_S = 30


@dataclass(frozen=True)
class Java:
    """A runtime that answers: its command and its feature version (8, 17, 21, ...)."""

    command: str
    version: int


def find_java(environment: Mapping[str, str]) -> Java:
    """The runtime that Spark would use in `environment`; an `EngineError` if that is missing or too old."""
    command = _java_command(environment)
    java = Java(command, _java_version(command))
    if java.version < OLDEST:
        raise EngineError(
            f"Spark needs Java {OLDEST} or newer",
            detail=f"{java.command} is Java {java.version}.",
            hint=_INSTALL,
        )
    return java


def _java_command(environment: Mapping[str, str]) -> str:
    home = environment.get("JAVA_HOME")
    path = f"{home}/bin" if home else environment.get("PATH", "")
    command = shutil.which("java", path=path)
    if command is None:
        where = f"JAVA_HOME is {home}, and there is no bin/java in it." if home else "There is no java on the PATH."
        raise EngineError("Java was not found", detail=where, hint=_INSTALL)
    return command


def _java_version(command: str) -> int:
    try:
        done = subprocess.run([command, "-version"], capture_output=True, text=True, timeout=_PATIENCE_S, check=False)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise EngineError("Java does not start", detail=f"{command}: {error}", hint=_INSTALL) from error
    # Java 8 and older call themselves 1.8; lines of other origin (JAVA_TOOL_OPTIONS) may come first.
    found = re.search(r'version "(?:1\.)?(\d+)', done.stderr)
    if found is None:
        said = done.stderr.strip() or f"nothing, and exit code {done.returncode}"
        raise EngineError("Java does not tell its version", detail=f"{command} said: {said}", hint=_INSTALL)
    return int(found[1])
