"""The bids, made once: a file for the libraries, and logs of several lengths for what reads logs."""

from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path

import pyarrow as pa

from benchmarks.nexmark.events import AUCTIONS, OF, PERSONS, Shape, cut, events
from penstock.log import Log

COLUMNS = ["auction", "bidder", "price", "at"]
SCHEMA = "auction BIGINT, bidder BIGINT, price BIGINT, at TIMESTAMP"
FRAME = 100_000
SHAPE = Shape(events_per_second=1000)


def tables(rows: int) -> Iterator[pa.Table]:
    """The first bids, some at a time; the last table may have more than are asked for."""
    count = rows * OF // (OF - PERSONS - AUCTIONS) + OF
    return (events(first, size, SHAPE)["bid"].select(COLUMNS) for first, size in cut(count, FRAME))


def make(folder: Path, *, file: int, logs: Sequence[int]) -> None:
    """The first `file` bids in a file, and logs that hold the first so many."""
    with ExitStack() as open_files:
        opened = {rows: open_files.enter_context(Log.open(log_of(folder, rows))) for rows in set(logs)}
        for log in opened.values():
            log.create_topic("bid", SCHEMA, event_time="at")
        sink = open_files.enter_context(pa.OSFile(str(file_of(folder)), "wb"))
        schema = next(tables(1)).schema
        writer = open_files.enter_context(pa.ipc.new_file(sink, schema))
        made = 0
        for table in tables(max(file, *logs)):
            writer.write_table(table.slice(0, max(0, file - made)))
            for rows, log in opened.items():
                if made < rows:
                    log.append("bid", table.slice(0, rows - made))
            made += len(table)


def file_of(folder: Path) -> Path:
    return folder / "bids.arrow"


def log_of(folder: Path, rows: int) -> Path:
    return folder / f"log-{rows}"


def first(folder: Path, rows: int) -> pa.Table:
    with pa.memory_map(str(file_of(folder))) as file:
        return pa.ipc.open_file(file).read_all().slice(0, rows)
