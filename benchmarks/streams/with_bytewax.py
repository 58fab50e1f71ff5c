"""The jobs by Bytewax, from memory to nowhere: `python -m benchmarks.streams.with_bytewax --job count ...`"""

from collections.abc import Callable, Iterable, Sequence
from datetime import timedelta
from typing import Any

import bytewax.operators as op
import bytewax.operators.windowing as win
import pyarrow as pa
from bytewax.dataflow import Dataflow
from bytewax.operators.windowing import EventClock, TumblingWindower
from bytewax.outputs import DynamicSink, StatelessSinkPartition
from bytewax.testing import TestingSource, run_main

from benchmarks.streams.bids import START, Asked, Bid, asked, measured, read_bids

BATCH = 1000
Row = Sequence[int]


class Sink(DynamicSink, StatelessSinkPartition):  # type: ignore[misc]
    """Counts what comes; what is asked for is kept."""

    def __init__(self, kept: list[Any] | None) -> None:
        self.kept = kept
        self.count = 0

    def build(self, step_id: str, worker_index: int, worker_count: int) -> "Sink":
        return self

    def write_batch(self, items: list[Any]) -> None:
        self.count += len(items)
        if self.kept is not None:
            self.kept += items


def mapped(bids: Any) -> Any:
    return op.map("map", bids, lambda bid: (bid[0], bid[1], bid[2] * 908 // 1000, bid[3]))


def counted(bids: Any) -> Any:
    def more(held: tuple[int, int] | None, bid: Bid) -> tuple[tuple[int, int], tuple[int, int]]:
        n, total = held or (0, 0)
        now = n + 1, total + bid[2]
        return now, now

    return op.stateful_map("count", op.key_on("key", bids, lambda bid: str(bid[0])), more)


def windowed(bids: Any) -> Any:
    # The bids are of the past: a window closes when a later bid of its auction comes, or at the end.
    clock = EventClock(lambda bid: bid[3], timedelta(seconds=10), to_system_utc=lambda _: None)
    windower = TumblingWindower(align_to=START, length=timedelta(minutes=1))
    return win.count_window("count", bids, clock, windower, key=lambda bid: str(bid[0])).down


JOBS: dict[str, Callable[[Any], Any]] = {"map": mapped, "count": counted, "window": windowed}
ANSWERS: dict[str, Callable[[list[Any]], Iterable[Row]]] = {
    "map": lambda rows: [(len(rows), sum(row[2] for row in rows))],
    "count": lambda rows: [(int(auction), *held) for auction, held in dict(rows).items()],
    "window": lambda rows: [(int(auction), minute, n) for auction, (minute, n) in rows],
}


def run(asked: Asked, bids: list[Bid]) -> Iterable[Row]:
    sink = Sink([] if asked.answer else None)
    flow = Dataflow(asked.job)
    op.output("out", JOBS[asked.job](op.input("in", flow, TestingSource(bids, batch_size=BATCH))), sink)
    run_main(flow)
    return ANSWERS[asked.job](sink.kept) if sink.kept else []


def times(at: pa.Array) -> Sequence[Any]:
    return at.to_pylist()  # type: ignore[no-any-return]


def main() -> None:
    this = asked()
    bids = read_bids(this, times)
    measured(this, len(bids), lambda: run(this, bids))


if __name__ == "__main__":
    main()
