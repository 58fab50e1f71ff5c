"""The events of Nexmark as files for Flink's filesystem connector: CSV, or JSON lines.

Times are numbers, microseconds since 1970: Flink loses nothing of them, and takes less time for them than for texts
(for all columns of the bids 60 % of the CPU). Every file is in order of time. Bids are dealt in turn to as many
files as there are cores, so that the readers go on side by side; persons and auctions, which are few, lie in one file
each. Flink's connector has one watermark per reader, not per file: a reader that took two small files one after the
other would find the second one late.
"""

import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path
from typing import BinaryIO, Literal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv

from benchmarks.nexmark.events import Shape, cut, events
from benchmarks.nexmark.journal import side

Format = Literal["csv", "json"]
Told = Callable[[int], None]
CHUNK = 250_000
CSV = pyarrow.csv.WriteOptions(include_header=False, quoting_style="none")
"""No text of the events has a comma or a quote; pyarrow refuses to write one that has."""


def write_files(folder: Path, count: int, shape: Shape, *, form: Format = "csv", told: Told = lambda _: None) -> None:
    """Writes the events and q13's side table below `folder`, a folder per kind; `told` hears how many are there."""
    with ExitStack() as stack, ThreadPoolExecutor(os.cpu_count()) as pool:
        files = {kind: opened(stack, folder / kind, number, form) for kind, number in files_of().items()}
        dealt = dict.fromkeys(files, 0)
        for first, size in cut(count, CHUNK):
            tables = {kind: numbered(table) for kind, table in events(first, size, shape).items()}
            hands = [hand for kind, table in tables.items() for hand in deal(table, files[kind], dealt[kind])]
            list(pool.map(lambda hand: hand[0].write(encoded(hand[1], form)), hands))
            dealt = {kind: dealt[kind] + table.num_rows for kind, table in tables.items()}
            told(first + size)
        opened(stack, folder / "side", 1, form)[0].write(encoded(side(), form))


def files_of() -> dict[str, int]:
    return {"person": 1, "auction": 1, "bid": os.cpu_count() or 1}


def opened(stack: ExitStack, folder: Path, number: int, form: Format) -> list[BinaryIO]:
    folder.mkdir(parents=True)
    return [stack.enter_context(open(folder / f"{each}.{form}", "wb")) for each in range(number)]


def deal(table: pa.Table, files: list[BinaryIO], dealt: int) -> list[tuple[BinaryIO, pa.Table]]:
    """Row by row in turn, going on where the rows before, `dealt` of them, ended."""
    turns = (np.arange(table.num_rows) + dealt) % len(files)
    return [(file, table.take(np.flatnonzero(turns == turn))) for turn, file in enumerate(files)]


def numbered(table: pa.Table) -> pa.Table:
    """Times as numbers: `at` becomes `at_micros`."""
    for place, field in enumerate(table.schema):
        if pa.types.is_timestamp(field.type):
            table = table.set_column(place, f"{field.name}_micros", table[field.name].cast(pa.int64()))
    return table


def encoded(table: pa.Table, form: Format) -> bytes:
    if form == "json":
        return json_lines(table)
    sink = pa.BufferOutputStream()
    pyarrow.csv.write_csv(table, sink, CSV)
    return bytes(sink.getvalue().to_pybytes())


def json_lines(table: pa.Table) -> bytes:
    """An object per row. Texts are taken as they are: those of the events need no escape."""
    parts: list[pa.Array | str] = ["{"]
    for place, field in enumerate(table.schema):
        quote = "" if pa.types.is_integer(field.type) else '"'
        value = table[field.name].combine_chunks().cast(pa.string())
        parts += [f'{", " if place else ""}"{field.name}": {quote}', value, quote]
    lines = pc.binary_join_element_wise(*parts, "}\n", "")
    whole = pa.ListArray.from_arrays(pa.array([0, len(lines)], pa.int32()), lines)
    return str(pc.binary_join(whole, "")[0].as_py()).encode()
