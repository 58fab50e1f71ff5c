"""The events of Nexmark in an embedded log, as they came, and the side table of q13."""

from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from benchmarks.nexmark.events import Shape, cut, events
from benchmarks.nexmark.queries import COLUMNS
from penstock.log import Log

FRAME = 50_000
SIDE = 10_000


def fill(
    log: Log, count: int, shape: Shape, *, frame: int = FRAME, told: Callable[[int], None] = lambda _: None
) -> None:
    """Appends the first `count` events, so many in a `frame`; `told` hears how many are there."""
    present = {topic.name for topic in log.topics()}
    for kind, columns in COLUMNS.items():
        if kind not in present:
            log.create_topic(kind, columns, event_time="at")
    for first, size in cut(count, frame):
        tables = events(first, size, shape)
        log.append_all({kind: table.to_batches()[0] for kind, table in tables.items() if len(table)})
        told(first + size)


def side() -> pa.Table:
    """What q13 looks auctions up in."""
    return pa.table({"key": range(SIDE), "value": [f"side {key}" for key in range(SIDE)]})


def write_side(path: Path) -> None:
    pq.write_table(side(), path)
