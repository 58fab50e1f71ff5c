"""What a run of Nexmark found: the record, the table and the plot of benchmarks/README.md."""

import json
import re
from collections.abc import Mapping
from math import exp, log
from pathlib import Path
from typing import Any

import matplotlib.pyplot as plt
from rich.console import Console
from rich.table import Table

from benchmarks._report import RESULTS, machine

README = Path(__file__).parents[1] / "README.md"
SYSTEMS = ("penstock", "flink_durable", "flink_fastest")
COLOURS = {"penstock": "#1f6f8b", "flink_durable": "#e07a5f", "flink_fastest": "#c9b79c"}
Found = Mapping[str, Mapping[str, Mapping[str, Any]]]


def written(name: str, events: int, found: Found) -> None:
    """Writes results/NAME.json and prints the table; of a whole run also the README's table and the plot."""
    recorded(name, events, found)
    lines = [row(query, each) for query, each in found.items()]
    _print(lines)
    if name == "nexmark":
        plot(_rates(found), RESULTS / "nexmark.png")
        _put_into_readme(lines)


def recorded(name: str, events: int, found: Found) -> None:
    """Writes results/NAME.json."""
    rates = _rates(found)
    record = {
        "machine": machine(),
        "events": events,
        "queries": {query: {s: rate and round(rate) for s, rate in each.items()} for query, each in rates.items()},
        "geometric_mean_against_flink_durable": mean_ratio(rates, "flink_durable"),
        "geometric_mean_against_flink_fastest": mean_ratio(rates, "flink_fastest"),
        "figures": found,
    }
    RESULTS.mkdir(exist_ok=True)
    (RESULTS / f"{name}.json").write_text(json.dumps(record, indent=2) + "\n")


def _rates(found: Found) -> dict[str, dict[str, float | None]]:
    return {query: {system: _rate(each.get(system)) for system in SYSTEMS} for query, each in found.items()}


def _rate(figures: Mapping[str, Any] | None) -> float | None:
    return figures.get("events_per_second") if figures else None


def mean_ratio(rates: Mapping[str, Mapping[str, float | None]], other: str) -> float | None:
    """The geometric mean over the queries that both run, writing to nothing."""
    ratios = [
        log(ours / theirs)
        for query, each in rates.items()
        if re.fullmatch(r"q\d+", query) and (ours := each["penstock"]) and (theirs := each[other])
    ]
    return round(exp(sum(ratios) / len(ratios)), 3) if ratios else None


HEADINGS = (
    *("query", "events/s", "Flink durable", "Flink fastest", "times durable", "times fastest"),
    *("CPU s", "Flink CPU s", "memory MB", "Flink memory MB", "state MB", "Flink state MB"),
)


def row(query: str, each: Mapping[str, Mapping[str, Any]]) -> list[str]:
    ours, durable, fastest = (each.get(system, {}) for system in SYSTEMS)
    rates = [figures.get("events_per_second") for figures in (ours, durable, fastest)]
    times = [rates[0] / other if rates[0] and other else None for other in rates[1:]]
    return [
        query,
        *(f"{rate:,.0f}" if rate else "" for rate in rates),
        *(f"{ratio:.2f}" if ratio else "" for ratio in times),
        *(f"{figures[key] / scale:,.0f}" if figures.get(key) is not None else "" for figures, key, scale in (
            (ours, "cpu_seconds", 1),
            (durable, "cpu_seconds", 1),
            (ours, "peak_memory_bytes", 1e6),
            (durable, "peak_memory_bytes", 1e6),
            (ours, "state_bytes", 1e6),
            (durable, "state_bytes", 1e6),
        )),
    ]  # fmt: skip


def _print(lines: list[list[str]]) -> None:
    table = Table(title="benchmark: nexmark", title_justify="left")
    for heading in HEADINGS:
        table.add_column(heading, justify="left" if heading == "query" else "right")
    for line in lines:
        table.add_row(*line)
    Console(width=140).print(table)


def _put_into_readme(lines: list[list[str]]) -> None:
    """Between its two marks."""
    rows = [HEADINGS, ["---"] * len(HEADINGS), *lines]
    table = "\n".join("| " + " | ".join(each) + " |" for each in rows)
    text = README.read_text()
    before, rest = text.split("<!-- nexmark -->\n", 1)
    after = rest.split("<!-- /nexmark -->", 1)[1]
    README.write_text(f"{before}<!-- nexmark -->\n{table}\n<!-- /nexmark -->{after}")


def plot(rates: Mapping[str, Mapping[str, float | None]], path: Path) -> None:
    """Events a second by query, a bar for each system."""
    queries = [query for query in rates if re.fullmatch(r"q\d+", query)]
    figure, axes = plt.subplots(figsize=(12, 4.5))
    for number, system in enumerate(SYSTEMS):
        places = [at + (number - 1) * 0.27 for at in range(len(queries))]
        heights = [rates[query][system] or 0 for query in queries]
        axes.bar(places, heights, 0.27, label=system.replace("_", " "), color=COLOURS[system])
    axes.set_xticks(range(len(queries)), queries)
    axes.set_yscale("log")
    axes.set_ylabel("events per second")
    axes.spines[["top", "right"]].set_visible(False)
    axes.legend(frameon=False, ncols=3, loc="upper right")
    figure.tight_layout()
    figure.savefig(path, dpi=110)
    plt.close(figure)
