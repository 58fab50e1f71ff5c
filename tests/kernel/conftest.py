"""Checks that are written in Scala: the kernel and `kernel/test` compiled once, each main class run by plain Java."""

import os
import runpy
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent.parent


@pytest.fixture(scope="session")
def run_checks(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], str]:
    """Runs a main class of `kernel/test`; returns its closing line, fails with all it said where it failed."""
    build = runpy.run_path(str(ROOT / "kernel" / "build.py"))
    classes = tmp_path_factory.mktemp("kernel")
    build["compile_scala"](ROOT / "kernel" / "src", classes)
    build["compile_scala"](ROOT / "kernel" / "test", classes, [classes])
    soak = "true" if os.environ.get("PENSTOCK_SOAK") else "false"
    quiet = f"-Dlog4j2.configurationFile={(ROOT / 'src' / 'penstock' / 'engine' / 'log4j2.properties').as_uri()}"
    jvm = [build["java"](), "-Xmx1g", "-XX:+UseSerialGC", f"-Dpenstock.soak={soak}", quiet]

    def run(main: str) -> str:
        command = [*jvm, "-cp", f"{classes}{os.pathsep}{build['pyspark_jars']() / '*'}", main]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        said = done.stdout + done.stderr
        assert done.returncode == 0, said
        return done.stdout.splitlines()[-1]

    return run
