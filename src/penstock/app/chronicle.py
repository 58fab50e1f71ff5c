"""The chronicle of a run: what each batch did and where its time went, written into the lineage's diary soon after.

Batches are gathered as they end, in whichever thread; `write` is called often, by one thread that no batch waits for,
and asks Spark, the log and the store for the rest. A batch is written when everything is known of it, or when that has
not come for a while.
"""

from collections import Counter, deque
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from time import monotonic, perf_counter, time
from typing import Any

from penstock.app.counting import Counts
from penstock.app.progress import time_of
from penstock.engine.asked import Told
from penstock.engine.batches import Committed
from penstock.engine.stages import Stage
from penstock.serve.diary import Diary

EVERY_SECONDS = 0.5
PATIENCE_SECONDS = 2.0
"""So long a batch is held back for what Spark and the store say of it."""
MOST_WAITING = 10_000
Ask = Callable[[int], Iterable[Told]]
"""What Spark tells of the batches after one."""


@dataclass(frozen=True)
class Written:
    """A batch as it was written down, and when its frame was in the log, in seconds of Unix time."""

    line: dict[str, Any]
    framed_at: float


class StoreClock:
    """When the store took each batch; hears of all stages, from whichever thread."""

    def __init__(self) -> None:
        self.at: dict[int, float] = {}

    def __call__(self, stage: Stage, batch: int) -> None:
        if stage is Stage.STORED:
            self.at[batch] = perf_counter()

    def forget(self, until: int) -> None:
        """Those up to a batch are not asked for any more."""
        for batch in [each for each in list(self.at) if each <= until]:
            del self.at[batch]


@dataclass
class Totals:
    """What the run has done since it began."""

    started_at: str = field(default_factory=lambda: datetime.now(UTC).isoformat())
    batches: int = 0
    seconds: float = 0.0
    frames: int = 0
    letters: int = 0
    phases: Counter[str] = field(default_factory=Counter)
    records: Counter[str] = field(default_factory=Counter)
    changes: Counter[str] = field(default_factory=Counter)
    late: Counter[str] = field(default_factory=Counter)

    def add(self, line: Mapping[str, Any], frames: int) -> None:
        self.batches += 1
        self.seconds += line["seconds"]
        self.frames += frames
        self.letters += line["letters"]
        for name in ("phases", "records", "changes", "late"):
            getattr(self, name).update(line[name])


class Chronicle:
    """`topics` are those of the pipeline's relations, by name; `watermarks` tells how far each stream had come before a
    frame, in microseconds.
    """

    def __init__(
        self,
        diary: Diary,
        counts: Counts,
        topics: Mapping[str, str],
        watermarks: Callable[[int], Mapping[str, int]] = lambda _: {},
        stored: StoreClock | None = None,
    ) -> None:
        self._diary = diary
        self._counts = counts
        self._topics = topics
        self._watermarks = watermarks
        self._stored = stored or StoreClock()
        self._waiting: deque[Committed] = deque(maxlen=MOST_WAITING)
        self._told: dict[int, Told] = {}
        self._asked = -1
        self._state: dict[str, int] = {}
        self._due_at = monotonic()
        self._totals = Totals()
        self._sum_up({}, {})  # who counts sees that a run has begun

    def add(self, done: Committed) -> None:
        self._waiting.append(done)

    def write(self, ask: Ask, *, now: bool = False) -> list[Written]:
        """Writes what is due, if anything is; which batches those were."""
        if not self._waiting or (monotonic() < self._due_at and not now):
            return []
        self._due_at = monotonic() + EVERY_SECONDS
        self._learn(ask(self._asked))
        ready = []
        while self._waiting and (now or self._is_known(self._waiting[0])):
            ready.append(self._waiting.popleft())
        return self._written(ready) if ready else []

    def _learn(self, news: Iterable[Told]) -> None:
        for told in news:
            self._told[told.batch] = told
            self._asked = max(self._asked, told.batch)
            if told.state:
                self._state = _by_level(told.state)

    def _is_known(self, done: Committed) -> bool:
        if done.batch in self._told and done.batch in self._stored.at:
            return True
        return perf_counter() - done.framed > PATIENCE_SECONDS

    def _written(self, ready: list[Committed]) -> list[Written]:
        lines = [self._line(done) for done in ready]
        marks = self._watermarks(ready[-1].end)  # Java is asked for them: once, and not for every batch
        lines[-1]["watermarks"] = {stream: time_of(micros).isoformat() for stream, micros in marks.items()}
        self._diary.add(lines)
        for done, line in zip(ready, lines, strict=True):
            self._totals.add(line, self._counts.between(done.start, done.end).frames)
        self._sum_up(lines[-1]["watermarks"], ready[-1].open)
        self._told = {batch: told for batch, told in self._told.items() if batch > ready[-1].batch}
        self._stored.forget(ready[-1].batch)
        clock = time() - perf_counter()
        return [Written(line, clock + done.framed) for done, line in zip(ready, lines, strict=True)]

    def _sum_up(self, watermarks: Mapping[str, str], open: Mapping[str, int]) -> None:
        now = {"watermarks": watermarks, "open": dict(open), "state": self._state}
        self._diary.sum_up({**vars(self._totals), **now})

    def _line(self, done: Committed) -> dict[str, Any]:
        told = self._told.get(done.batch)
        read = self._counts.between(done.start, done.end)
        return {
            "batch": done.batch,
            "frame": done.frame,
            "until": done.end,
            "at": None if done.at is None else done.at.isoformat(),
            "seconds": round(done.took.total_seconds() if told is None else told.seconds, 6),
            "phases": self._phases(done, told),
            "records": {name: read.records.get(topic, 0) for name, topic in self._topics.items()},
            "changes": dict(done.changes),
            "late": {view: count for view, count in done.late.items() if count},
            "letters": done.letters,
            "watermarks": {},
            "state_bytes": sum(told.state) if told and told.state else None,
        }

    def _phases(self, done: Committed, told: Told | None) -> dict[str, float]:
        """In seconds; those that are known."""
        found = {"computing": done.computing, "appending": done.appending}
        if told is not None:
            found = {"planning": told.planning, **found, "committing": told.committing}
        if done.batch in self._stored.at:
            found["storing"] = max(0.0, self._stored.at[done.batch] - done.framed)
        return {phase: round(seconds, 6) for phase, seconds in found.items()}


def _by_level(state: tuple[int, ...]) -> dict[str, int]:
    """The state of each level, or of all where one operator of Spark's has all of them."""
    return {"all": state[0]} if len(state) == 1 else {str(level): size for level, size in enumerate(state, 1)}
