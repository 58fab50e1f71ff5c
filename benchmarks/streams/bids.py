"""The bids in memory, as the Python libraries get them, and how such a side is measured.

Nothing is read or decoded while the clock runs. A side may be several processes, each with its share of the auctions,
as from a topic that is partitioned by its key: none of them ever needs what another one holds. Each says that it is
ready, and begins when it is told to.
"""

import argparse
import gc
import json
import sys
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa

START = datetime(2024, 1, 1, tzinfo=UTC)
"""When the first event is; windows are numbered from there."""
Bid = tuple[int, int, int, Any]
"""Auction, bidder, price, and the time as the job wants it."""


@dataclass(frozen=True)
class Asked:
    """What to do: a job, so many `times` over the first `rows` bids, of which this process gets every auction that is
    its share.
    """

    job: str
    events: Path
    rows: int
    share: int
    shares: int
    times: int
    answer: Path | None


def asked() -> Asked:
    parser = argparse.ArgumentParser()
    parser.add_argument("--job", required=True)
    parser.add_argument("--events", required=True, type=Path)
    parser.add_argument("--rows", required=True, type=int)
    parser.add_argument("--share", default="0/1")
    parser.add_argument("--times", type=int, default=1)
    parser.add_argument("--answer", type=Path)
    given = parser.parse_args()
    share, shares = map(int, given.share.split("/"))
    return Asked(given.job, given.events, given.rows, share, shares, given.times, given.answer)


def read_bids(asked: Asked, times: Callable[[pa.Array], Sequence[Any]]) -> list[Bid]:
    with pa.memory_map(str(asked.events)) as file:
        table = pa.ipc.open_file(file).read_all().slice(0, asked.rows)
    auction = table["auction"].combine_chunks()
    # The hot ones are whole hundreds: these have to be spread, too.
    spread = (auction.to_numpy() + auction.to_numpy() // 100) % asked.shares
    table = table.filter(pa.array(spread == asked.share))
    columns = [table[name].to_pylist() for name in ("auction", "bidder", "price")]
    return list(zip(*columns, times(table["at"].combine_chunks()), strict=True))


def measured(asked: Asked, rows: int, run: Callable[[], Iterable[Sequence[int]]]) -> None:
    """Runs when it is told to; what `run` gives are the rows of the answer, if they were asked for."""
    gc.collect()
    gc.freeze()  # the bids are there for good: the collector need not look at them again and again
    print("ready", flush=True)
    sys.stdin.readline()
    wall, processor = time.perf_counter(), time.process_time()
    for _ in range(asked.times):
        answer = run()
    figures = {
        "rows": rows * asked.times,
        "seconds": time.perf_counter() - wall,
        "cpu_seconds": time.process_time() - processor,
    }
    if asked.answer:
        asked.answer.write_text(json.dumps([list(row) for row in answer]))
    print(json.dumps(figures), flush=True)
