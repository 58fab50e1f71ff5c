"""What every benchmark does with its figures: a table for the reader, a file for the record.

Figures of one run are compared with each other only: machines differ and are noisy, ratios travel better.
"""

import json
import os
import platform
from collections.abc import Mapping
from importlib.metadata import version
from pathlib import Path

from rich.console import Console
from rich.table import Table

RESULTS = Path(__file__).parent / "results"


def report(name: str, figures: Mapping[str, float], goals: Mapping[str, str]) -> None:
    """Prints the figures, each with the goal that it is measured against, and writes results/NAME.json."""
    table = Table(title=f"benchmark: {name}", title_justify="left")
    for heading in ("figure", "value", "goal"):
        table.add_column(heading, justify="left" if heading == "figure" else "right", no_wrap=True)
    for key, value in figures.items():
        table.add_row(key, shown(value), goals.get(key, ""))
    Console(width=110).print(table)
    _write(name, figures)


def keep(name: str, figures: Mapping[str, float]) -> None:
    """Writes results/NAME-partial.json: what a long run has so far, which is then not lost when it is cut off."""
    _write(f"{name}-partial", figures)


def kept(name: str) -> dict[str, float]:
    """What a run on this machine that was cut off has kept; nothing if there was none."""
    path = RESULTS / f"{name}-partial.json"
    found = json.loads(path.read_text()) if path.exists() else {}
    return dict(found["figures"]) if found and found["machine"] == machine() else {}


def _write(name: str, figures: Mapping[str, float]) -> None:
    RESULTS.mkdir(exist_ok=True)
    text = json.dumps({"machine": machine(), "figures": {k: round(v, 4) for k, v in figures.items()}}, indent=2)
    (RESULTS / f"{name}.json").write_text(text + "\n")


def shown(value: float) -> str:
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:,.3g}"


def machine() -> dict[str, str | int]:
    packages = {name: version(name) for name in ("pyspark", "pyarrow", "numpy")}
    return {"cores": os.cpu_count() or 0, "system": platform.system(), "python": platform.python_version(), **packages}
