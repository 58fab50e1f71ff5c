"""Hatch's hook: a wheel is built with a fresh kernel jar inside.

An editable install takes the jar that is there: `kernel/build.py` keeps it fresh afterwards, and Python work can go
on while a kernel under change does not compile.
"""

import runpy
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface


class KernelHook(BuildHookInterface[Any]):
    """Runs `kernel/build.py` before the files of the wheel are collected."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """A jar is there when this returns; the build fails otherwise."""
        script = runpy.run_path(str(Path(self.root, "kernel", "build.py")))
        if version != "editable" or not script["JAR"].exists():
            script["build"]()
