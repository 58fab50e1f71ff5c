"""Windows that late rows missed: how many each, over all batches of a lineage that are in the log."""

from collections import Counter
from dataclasses import dataclass

from penstock.log.protocol import OrderedLog
from penstock.views.lineage import batches_between
from penstock.views.step import Lineage


@dataclass(frozen=True)
class Window:
    """One that rows missed, in microseconds since 1970. Without an end: rows that missed no window, for their own time
    was over, and those of windows beyond the most that one batch tells of.
    """

    view: str
    start: int | None = None
    end: int | None = None


def missed_windows(log: OrderedLog, lineage: Lineage) -> Counter[Window]:
    """How many late rows each window of each view missed; their sum for a view are its late rows."""
    found: Counter[Window] = Counter()
    for header, _ in batches_between(log, lineage, 0, log.mark().next_frame, first=None):
        missed = header.note.get("missed", {})
        for view, late in header.note.get("late", {}).items():
            told = {Window(view, start, end): rows for start, end, rows in missed.get(view, ())}
            found.update(told)
            found[Window(view)] += late - sum(told.values())
    return +found
