"""What a run of Nexmark found: the record, and what of it stands in benchmarks/README.md: table, sentences, plot."""

import json
import re
from collections.abc import Mapping
from math import exp, log
from pathlib import Path
from typing import Any

import matplotlib.pyplot as plt
from rich.console import Console
from rich.table import Table

from benchmarks.nexmark.comparison import SYSTEMS, Found

README = Path(__file__).parents[1] / "README.md"
MARKS = ("<!-- nexmark -->\n", "<!-- /nexmark -->")
COLOURS = {"penstock": "#1f6f8b", "flink_durable": "#e07a5f", "flink_fastest": "#c9b79c"}
NAMES = {"penstock": "Penstock", "flink_durable": "Flink durable", "flink_fastest": "Flink fastest"}
Record = dict[str, Any]
Rates = Mapping[str, Mapping[str, float | None]]


def record_of(machine: Mapping[str, object], events: int, checked: list[str], found: Found) -> Record:
    """`checked` are the queries whose answers were right on every system, before anything was measured."""
    rates = rates_of(found)
    return {
        "machine": dict(machine),
        "events": events,
        "checked": checked,
        "queries": {query: {s: rate and round(rate) for s, rate in each.items()} for query, each in rates.items()},
        "geometric_mean_against_flink_durable": mean_ratio(rates, "flink_durable"),
        "geometric_mean_against_flink_fastest": mean_ratio(rates, "flink_fastest"),
        "below_flink_durable": below(rates, "flink_durable"),
        "below_flink_fastest": below(rates, "flink_fastest"),
        "failed": failures(found),
        "figures": found,
    }


def write(record: Record, file: Path) -> None:
    """At once or not at all: a run may be cut off at any time."""
    file.parent.mkdir(exist_ok=True)
    unfinished = file.with_suffix(".new")
    unfinished.write_text(json.dumps(record, indent=2) + "\n")
    unfinished.replace(file)


def rates_of(found: Found) -> dict[str, dict[str, float | None]]:
    return {
        query: {system: each.get(system, {}).get("events_per_second") for system in SYSTEMS}
        for query, each in found.items()
    }


def ratios(rates: Rates, other: str) -> dict[str, float]:
    """Of the queries that both run, writing to nothing."""
    return {
        query: ours / theirs
        for query, each in rates.items()
        if re.fullmatch(r"q\d+", query) and (ours := each["penstock"]) and (theirs := each[other])
    }


def mean_ratio(rates: Rates, other: str) -> float | None:
    """The geometric mean."""
    logs = [log(ratio) for ratio in ratios(rates, other).values()]
    return round(exp(sum(logs) / len(logs)), 3) if logs else None


def below(rates: Rates, other: str) -> dict[str, float]:
    return {query: round(ratio, 2) for query, ratio in ratios(rates, other).items() if ratio < 1}


def failures(found: Found) -> dict[str, str]:
    return {
        f"{query} on {NAMES[system]}": figures["failed"]
        for query, each in found.items()
        for system, figures in each.items()
        if "failed" in figures
    }


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


def show(record: Record) -> None:
    table = Table(title="benchmark: nexmark", title_justify="left")
    for heading in HEADINGS:
        table.add_column(heading, justify="left" if heading == "query" else "right")
    for query, each in record["figures"].items():
        table.add_row(*row(query, each))
    console = Console(width=140)
    console.print(table)
    console.print(sentences(record), markup=False)


def sentences(record: Record) -> str:
    """How far the goal was reached, and what the table does not show by itself."""
    machine, read = record["machine"], record["figures"].get("read", {})
    versions = ", ".join(f"{name} {machine[name]}" for name in ("pyspark", "flink", "java") if name in machine)
    said = [f"{record['events']:,} events, {machine['cores']} cores, {versions}."]
    for other, goal in (("flink_durable", " (goal: 2, and none below 1)"), ("flink_fastest", "")):
        if mean := record[f"geometric_mean_against_{other}"]:
            said.append(f"**{mean:.2f} times {NAMES[other]}**, the geometric mean of the queries that both ran{goal};")
            said.append(f"{_named(record[f'below_{other}'])}.")
    if rate := read.get("flink_durable", {}).get("events_per_second"):
        said.append(_reading(rate, record["events"], record["figures"]))
    said += [f"Failed: {name} ({reason})." for name, reason in record["failed"].items()]
    return " ".join([*said, *record.get("remarks", ())])


def _named(slower: Mapping[str, float]) -> str:
    if not slower:
        return "no query is below it"
    return "below it: " + ", ".join(f"{query} {ratio:.2f}" for query, ratio in slower.items())


def _reading(rate: float, events: int, figures: Found) -> str:
    """What CSV costs Flink, beside the whole of q0, which needs four columns of the bids."""
    whole = figures.get("q0", {}).get("flink_durable", {}).get("seconds")
    than = f"; its whole q0, which needs fewer columns, takes {whole:.1f} s" if whole else ""
    return f"Reading every column from CSV takes Flink durable {events / rate:.1f} s{than}."


def block(record: Record) -> str:
    """What stands in the README between its two marks."""
    rows = [HEADINGS, ["---"] * len(HEADINGS), *(row(query, each) for query, each in record["figures"].items())]
    table = "\n".join("| " + " | ".join(each) + " |" for each in rows)
    return f"{table}\n\n{sentences(record)}\n"


def put_into(readme: Path, record: Record) -> None:
    before, rest = readme.read_text().split(MARKS[0], 1)
    after = rest.split(MARKS[1], 1)[1]
    readme.write_text(before + MARKS[0] + block(record) + MARKS[1] + after)


def plot(rates: Rates, path: Path) -> None:
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
