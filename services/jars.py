"""Jars of a service, fetched once with Maven into this clone.

A folder of jars is there whole or not at all. Processes that want it at the same time fetch it once.
"""

import fcntl
import os
import shutil
import subprocess
from collections.abc import Callable, Sequence
from pathlib import Path

CACHE = Path(__file__).resolve().parent.parent / ".services"
POM = """<project xmlns="http://maven.apache.org/POM/4.0.0">
  <modelVersion>4.0.0</modelVersion>
  <groupId>penstock</groupId><artifactId>{name}</artifactId><version>1</version><packaging>pom</packaging>
  <dependencies>{dependencies}</dependencies>
</project>
"""
DEPENDENCY = "<dependency><groupId>{}</groupId><artifactId>{}</artifactId><version>{}</version>{alone}</dependency>"
ALONE = "<exclusions><exclusion><groupId>*</groupId><artifactId>*</artifactId></exclusion></exclusions>"
Say = Callable[[str], None]


class ServiceError(Exception):
    """A service cannot be had or started: what is wrong, what was found, what to do."""

    def __init__(self, primary: str, *, detail: str, hint: str) -> None:
        super().__init__(f"{primary}\n  detail: {detail}\n  hint:   {hint}")
        self.primary = primary


def jars(name: str, packages: Sequence[str], *, say: Say = print, cache: Path = CACHE, alone: bool = False) -> Path:
    """The folder with the packages (`group:artifact:version`) and, unless they are to be alone, all that they need at
    run time.
    """
    folder = cache / "jars" / name
    if folder.exists():
        return folder
    folder.parent.mkdir(parents=True, exist_ok=True)
    with open(folder.parent / f"{name}.lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not folder.exists():
            maven = program("mvn", "Maven is needed to fetch the jars of a service", "Install Maven 3.6 or newer.")
            say(f"fetching the jars of {name} with Maven, the first time")
            _fetch(maven, folder, packages, ALONE if alone else "")
            say(f"{len(list(folder.glob('*.jar')))} jars are in {folder}")
    return folder


def _fetch(maven: str, folder: Path, packages: Sequence[str], alone: str) -> None:
    partial = folder.with_name(f"{folder.name}.partial")
    shutil.rmtree(partial, ignore_errors=True)
    partial.mkdir()
    dependencies = "".join(DEPENDENCY.format(*package.split(":"), alone=alone) for package in packages)
    pom = folder.with_name(f"{folder.name}.pom.xml")
    pom.write_text(POM.format(name=folder.name, dependencies=dependencies))
    asked = ["dependency:copy-dependencies", "-DincludeScope=runtime", f"-DoutputDirectory={partial}"]
    done = subprocess.run([maven, "-q", "-B", "-f", str(pom), *asked], capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise ServiceError(
            f"Maven could not fetch {', '.join(packages)}",
            detail=_first_error(done.stdout + done.stderr),
            hint="Is the network there? Maven's own settings say where packages come from.",
        )
    os.replace(partial, folder)


def _first_error(output: str) -> str:
    lines = [line.strip() for line in output.splitlines() if line.strip()]
    return next((line for line in lines if "ERROR" in line), lines[-1] if lines else "It said nothing.")


def program(name: str, why: str, hint: str) -> str:
    """The path of a program that must be there."""
    if found := shutil.which(name):
        return found
    raise ServiceError(why, detail=f'There is no "{name}" on the PATH.', hint=hint)
