"""The three jobs in SQL, their answers computed by Arrow, and the process that a side of Spark runs in."""

import argparse
import json
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc

DECLARED = """
    CREATE STREAM bid (auction BIGINT, bidder BIGINT, price BIGINT, at TIMESTAMP)
      WITH (event_time = 'at', watermark = '10 seconds');"""
VIEWS = {
    "map": ("", "SELECT auction, bidder, price * 908 DIV 1000 AS price, at FROM bid"),
    "count": ("", "SELECT auction, count(*) AS n, sum(price) AS total FROM bid GROUP BY auction"),
    "window": (
        ", emit = 'final'",
        """SELECT auction, window.start AS start, count(*) AS n FROM bid GROUP BY auction, window(at, '1 minute')""",
    ),
}
JOBS = tuple(VIEWS)
Answer = Counter[tuple[int, ...]]
"""Rows, and how often each occurs."""
FIRST, MINUTE = 1_704_067_200_000_000, 60_000_000


@dataclass(frozen=True)
class Asked:
    """Jobs over all bids of a log, in batches of `batch` records, of which the first `warm` are not measured; their
    answers go to a folder, or nowhere.
    """

    jobs: tuple[str, ...]
    log: Path
    batch: int
    warm: int
    answers: Path | None


def asked() -> Asked:
    parser = argparse.ArgumentParser()
    parser.add_argument("--jobs", required=True)
    parser.add_argument("--log", required=True, type=Path)
    parser.add_argument("--batch", type=int, default=500_000)
    parser.add_argument("--warm", type=int, default=4)
    parser.add_argument("--answers", type=Path)
    given = parser.parse_args()
    return Asked(tuple(given.jobs.split(",")), given.log, given.batch, given.warm, given.answers)


def write_answer(folder: Path, side: str, job: str, rows: Iterable[Sequence[int]]) -> None:
    (folder / f"{side}-{job}-0.json").write_text(json.dumps([list(row) for row in rows]))


def view_text(job: str, store: str) -> str:
    options, query = VIEWS[job]
    return f"{DECLARED} CREATE VIEW answer WITH (store = '{store}'{options}) AS {query};"


def right_answer(job: str, bids: pa.Table) -> Answer:
    """What every side has to say; of the windows those that are surely closed when the last bid has come."""
    if job == "map":
        prices = pc.divide(pc.multiply(bids["price"], 908), 1000)
        return Counter([(len(bids), pc.sum(prices).as_py())])
    if job == "count":
        counts = bids.group_by("auction").aggregate([("price", "count"), ("price", "sum")])
        return rows_of(counts, ["auction", "price_count", "price_sum"])
    minutes = bids.append_column("minute", minute_of(bids["at"]))
    counts = minutes.group_by(["auction", "minute"]).aggregate([([], "count_all")])
    return closed(rows_of(counts, ["auction", "minute", "count_all"]), bids)


def rows_of(table: pa.Table, columns: Sequence[str]) -> Answer:
    return Counter(zip(*(table[name].to_pylist() for name in columns), strict=True))


def minute_of(times: pa.ChunkedArray) -> pa.ChunkedArray:
    """Windows are numbered from the first one on."""
    micros = times.cast(pa.timestamp("us", tz="UTC")).cast(pa.int64())
    return pc.subtract(pc.divide(micros, MINUTE), FIRST // MINUTE)


def closed(windows: Answer, bids: pa.Table) -> Answer:
    last = pc.max(bids["at"].cast(pa.int64())).as_py() - FIRST - 10_000_000
    return Counter({row: count for row, count in windows.items() if (row[1] + 1) * MINUTE < last})
