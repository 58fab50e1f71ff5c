"""Progress: how far a run has come, told at most once in a while.

Batches are gathered as they end, in whichever thread; `tell` is called often, by one thread, and speaks when there is
something new and it is time. What is behind is counted only then.
"""

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from threading import Lock
from time import monotonic
from types import MappingProxyType

from penstock.app.counting import Counts
from penstock.engine.batches import Committed

EVERY_SECONDS = 1.0
MICROSECOND = timedelta(microseconds=1)
MOST_LAG = 10_000
"""Frames of lag that are counted; beyond that a run is far behind, however far."""


@dataclass(frozen=True)
class Progress:
    """What was done since the last one: up to which batch, what was read, in how many seconds of work, what changed,
    how many records became dead letters, how many rows came too late for each view, and how many frames are left.
    `watermarks`: how far each stream has come; `open`, how many windows each view has open; `alerts`, for which views
    more rows were late, of a hundred, than was said; and `view_watermarks`, how far time has come for each view that
    goes by it.
    """

    batch: int
    batches: int
    frames: int
    records: int
    seconds: float
    lag: int
    changes: Mapping[str, int] = field(default_factory=dict)
    letters: int = 0
    late: Mapping[str, int] = field(default_factory=dict)
    watermarks: Mapping[str, datetime] = field(default_factory=dict)
    open: Mapping[str, int] = field(default_factory=dict)
    alerts: Mapping[str, float] = field(default_factory=dict)
    view_watermarks: Mapping[str, datetime] = field(default_factory=dict)


@dataclass(frozen=True)
class Alert:
    """How many rows of a hundred may be late for a view, of those in the topics from which they come."""

    most: Decimal
    topics: frozenset[str]


class Meter:
    """`watermarks` tells how far each stream had come before a frame, in microseconds; `of_views` how far that is for
    each view; `alerts` for which views late rows are told when there are too many.
    """

    def __init__(
        self,
        counts: Counts,
        on_progress: Callable[[Progress], None],
        watermarks: Callable[[int], Mapping[str, int]] = lambda _: {},
        alerts: Mapping[str, Alert] = MappingProxyType({}),
        *,
        of_views: Callable[[Mapping[str, int]], Mapping[str, int]] = lambda _: {},
    ) -> None:
        self._alerts = alerts
        self._watermarks = watermarks
        self._of_views = of_views
        self._counts = counts
        self._on_progress = on_progress
        self._lock = Lock()
        self._waiting: list[Committed] = []
        self._due_at = monotonic()  # the first batch is told at once

    def add(self, done: Committed) -> None:
        with self._lock:
            self._waiting.append(done)

    def tell(self, *, now: bool = False) -> None:
        if not self._waiting or (monotonic() < self._due_at and not now):
            return
        with self._lock:
            waiting, self._waiting = self._waiting, []
        self._due_at = monotonic() + EVERY_SECONDS
        self._on_progress(self._gathered(waiting))

    def _gathered(self, done: list[Committed]) -> Progress:
        changes, late = Counter[str](), Counter[str]()
        for each in done:
            changes.update(each.changes)
            late.update(each.late)
        end = done[-1].end
        read = [self._counts.between(each.start, each.end) for each in done]
        frames, records = sum(each.frames for each in read), Counter[str]()
        for some in read:
            records.update(some.records)
        lag = self._counts.after(end, MOST_LAG)
        seconds = sum(each.took.total_seconds() for each in done)
        letters = sum(each.letters for each in done)
        streams = self._watermarks(end)
        return Progress(
            done[-1].batch,
            len(done),
            frames,
            records.total(),
            seconds,
            lag,
            dict(changes),
            letters,
            dict(+late),
            {stream: time_of(micros) for stream, micros in streams.items()},
            done[-1].open,
            self._alarming(late, records),
            {view: time_of(micros) for view, micros in self._of_views(streams).items()},
        )

    def _alarming(self, late: Mapping[str, int], records: Mapping[str, int]) -> dict[str, float]:
        shares = {
            view: 100 * late.get(view, 0) / max(sum(records.get(topic, 0) for topic in alert.topics), 1)
            for view, alert in self._alerts.items()
        }
        return {view: share for view, share in shares.items() if share > self._alerts[view].most}


def time_of(micros: int) -> datetime:
    """Times that Python does not have are its last, or its first."""
    first, last = datetime.min.replace(tzinfo=UTC), datetime.max.replace(tzinfo=UTC)
    epoch = datetime(1970, 1, 1, tzinfo=UTC)
    least, most = (first - epoch) // MICROSECOND, (last - epoch) // MICROSECOND
    return epoch + min(max(micros, least), most) * MICROSECOND
