"""What is served: a pipeline's views, where its store and its log say that they are.

The store is only read, each thread by a connection of its own. Whether a view has caught up with an append follows from
the log: no frame up to the append's holds anything for this pipeline that its last batch has not read.
"""

import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime
from functools import cached_property
from pathlib import Path

from penstock.errors import PenstockError, ServeError, ViewError
from penstock.log.protocol import OrderedLog
from penstock.model import Pipeline, Stream
from penstock.serve.elsewhere import Elsewhere
from penstock.serve.positions import Asked
from penstock.serve.unread import Unread
from penstock.views import Lineage, Position, ViewReader, current
from penstock.views.lookup import Lookup
from penstock.views.step import View

Resend = Callable[[str, str, int, Callable[[], bool]], int]
"""Of a view, a kind of sink, at most so many, until it is told to stop; how many were taken."""


@dataclass
class Served:
    """`home` is where the pipeline's checkpoints lie, `sinks` where its sinks write down how far they are. `elsewhere`
    is the pipeline's own store, where `store` is not that. `resend` sends dead letters of a view's sink again.
    """

    log: OrderedLog
    pipeline: Pipeline
    store: Path
    home: Path
    sinks: Path | None = None
    elsewhere: Elsewhere | None = None
    resend: Resend | None = None
    _here: threading.local = field(default_factory=threading.local, repr=False)

    @property
    def topics(self) -> frozenset[str]:
        """What the pipeline reads."""
        return frozenset(relation.topic for relation in self.pipeline.relations)

    @property
    def lookup(self) -> Lookup:
        """The one of this thread."""
        found: Lookup | None = getattr(self._here, "lookup", None)
        if found is None:
            found = self._here.lookup = Lookup(self.store)
        return found

    def position(self) -> Position | None:
        return self.lookup.position() if self.store.exists() else None

    @cached_property
    def reader(self) -> ViewReader:
        """Of the tables in the store, for all threads: it has a connection for each."""
        return ViewReader(self.store)

    def lineage(self) -> Lineage:
        found = current(self.log, self.pipeline.name)
        if found is None:
            raise ServeError(
                f'pipeline "{self.pipeline.name}" has no views yet',
                hint="Run it first: penstock run",
                status=404,
            )
        return found

    def view(self, name: str) -> View:
        try:
            return self.lineage().view(name)
        except ViewError as error:
            raise ServeError(error.primary, detail=error.detail, hint=error.hint, status=404) from None

    def check_exists(self, position: Asked) -> None:
        """Refuses a position that the log has not come to: nobody can have been told it."""
        end = self.log.mark().next_frame
        if position.frame >= end:
            raise ServeError(
                f"position {position} is not one of this log",
                detail=f"The log ends before frame {end}.",
                hint="Was the log replaced? Then positions of before mean nothing.",
            )

    def has_reached(self, wanted: Asked) -> bool:
        """Whether the store holds what an answer of this position had, or what an append brought."""
        position = self.position()
        if position is None:
            return False
        if wanted.lineage is not None:
            return position.frame >= wanted.frame
        return wanted.frame < position.until or self._unread.count(position.until, wanted.frame + 1) == 0

    def lag(self) -> int | None:
        """Frames with something for the pipeline that the store's answers do not know yet; None before the first."""
        position = self.position()
        return None if position is None else self._unread.count(position.until, self.log.mark().next_frame)

    def lag_after(self, frame: int) -> int:
        """Frames with something for the pipeline from this one on, up to which a run has come."""
        return self._ahead.count(frame, self.log.mark().next_frame)

    def lag_elsewhere(self, position: Position) -> int:
        """Frames with something for the pipeline that its own store, on a server, does not know yet."""
        return self._behind.count(position.until, self.log.mark().next_frame)

    @cached_property
    def _behind(self) -> Unread:
        return Unread(self.log, self.topics, ("", self.pipeline.name))

    @cached_property
    def _unread(self) -> Unread:
        return Unread(self.log, self.topics, ("", self.pipeline.name))

    @cached_property
    def _ahead(self) -> Unread:
        """The run is ahead of the store: what one has looked at is of no use to the other."""
        return Unread(self.log, self.topics, ("", self.pipeline.name))

    def watermarks(self) -> dict[str, datetime]:
        """How far each stream had come, where the answers know everything that is in the log; else it is not known."""
        try:
            found = self._watermarks()
            return found if self.lag() == 0 else {}  # in this order: else a record could come between the two
        except PenstockError:
            return {}

    def _watermarks(self) -> dict[str, datetime]:
        found = {}
        for relation in self.pipeline.relations:
            if isinstance(relation, Stream) and relation.event_time:
                how = {"by": relation.watermark_by, "scope": self.pipeline.name}
                time = self.log.watermark(relation.topic, delay=relation.watermark, **how)  # type: ignore[arg-type]
                if time is not None:
                    found[relation.name] = time
        return found
