"""Missed windows: how many of a batch's late rows each window of a view missed, however those rows are treated.

Rows that no window was over for, but their own time, miss none. What is told is bounded, whatever comes late: the
windows that most rows missed.
"""

from collections import Counter
from collections.abc import Iterable
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc

WINDOW = ("window_start", "window_end")
"""The columns of late rows that name the window."""
MOST = 100
"""Of so many windows of a view a batch tells."""
Missed = tuple[int | None, int, int]
"""A window's start, if that is known, and its end, in microseconds since 1970; and how many rows missed it."""


def missed_in(paths: Iterable[Path]) -> list[Missed]:
    """Of the late rows in Arrow files; the windows that most rows missed first."""
    found: Counter[tuple[int | None, int]] = Counter()
    for path in paths:
        with pa.memory_map(str(path)) as source:
            file = pa.ipc.open_file(source)
            for at in range(file.num_record_batches):
                found.update(_counted(file.get_batch(at)))
    told = sorted(found.items(), key=lambda each: (-each[1], each[0][1], each[0][0] or 0))
    return [(start, end, rows) for (start, end), rows in told[:MOST]]


def _counted(late: pa.RecordBatch) -> dict[tuple[int | None, int], int]:
    start, end = (late.column(name).cast(pa.int64()) for name in WINDOW)
    windows = pa.table([start, end], names=WINDOW).filter(pc.is_valid(end))
    counted = windows.group_by(list(WINDOW)).aggregate([([], "count_all")])
    return {(row[WINDOW[0]], row[WINDOW[1]]): row["count_all"] for row in counted.to_pylist()}
