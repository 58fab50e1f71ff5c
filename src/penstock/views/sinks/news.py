"""News: what happened to one row of a view, as those outside are told of it.

A row was inserted, deleted, or replaced by another under the same key. Its identity follows from the log, the pipeline,
the lineage, the view and the place of the change alone: it is the same whoever tells of it, and whenever.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime
from functools import lru_cache
from hashlib import blake2b
from typing import Any, Literal

from penstock.log import Place
from penstock.log.protocol import OrderedLog
from penstock.log.records import instant
from penstock.schema import Schema
from penstock.text import writer
from penstock.views.changelog import RowChange
from penstock.views.step import Position, Row, View

Kind = Literal["inserted", "updated", "deleted"]


@dataclass(frozen=True)
class Source:
    """Whose changes: those of a view of a pipeline in a log."""

    log: OrderedLog
    pipeline: str
    view: str

    def appended_at(self, frame: int) -> datetime:
        """When the frame was appended."""
        return instant(next(self.log.frames(frame)).at)


@dataclass(frozen=True)
class News:
    """`index` is the number of its first change in the frame; whoever stops after it goes on at `goes_on`."""

    view: View
    position: Position
    index: int
    goes_on: Place
    old: Row | None
    new: Row | None

    @property
    def kind(self) -> Kind:
        return "inserted" if self.old is None else "deleted" if self.new is None else "updated"

    @property
    def place(self) -> Place:
        return Place(self.position.frame, self.index)

    def identity(self, pipeline: str) -> str:
        """Without a full stop, which it must not have where it is signed."""
        at = (self.position.log, pipeline, self.position.lineage, self.view.name, self.position.frame, self.index)
        return f"msg_{blake2b(repr(at).encode(), digest_size=16).hexdigest()}"


def news_of(changes: Iterable[RowChange]) -> Iterator[News]:
    """A row that leaves and the one that takes its place are one piece of news."""
    waiting: RowChange | None = None
    for change in changes:
        if waiting is not None and _is_replaced(waiting, by=change):
            yield _news(waiting, change)
            waiting = None
            continue
        if waiting is not None:
            yield _news(waiting, waiting)
        waiting = change if change.weight < 0 else None
        if waiting is None:
            yield _news(change, change)
    if waiting is not None:
        yield _news(waiting, waiting)


def _is_replaced(old: RowChange, *, by: RowChange) -> bool:
    """In the log a row stands right before the one that replaces it."""
    same = by.weight > 0 and by.view == old.view and by.place == Place(old.position.frame, old.index + 1)
    return same and bool(old.view.key) and all(old.row[name] == by.row[name] for name in old.view.key)


def _news(first: RowChange, last: RowChange) -> News:
    old = first.row if first.weight < 0 else None
    new = last.row if last.weight > 0 else None
    return News(first.view, first.position, first.index, Place(last.position.frame, last.index + 1), old, new)


@lru_cache(maxsize=64)
def _writers(schema: Schema) -> list[tuple[str, Any]]:
    return [(column.name, writer(column.type)) for column in schema.columns]


def json_row(view: View, row: Row | None) -> dict[str, Any] | None:
    """The row as JSON has it, the same as over HTTP."""
    return None if row is None else {name: write(row[name]) for name, write in _writers(view.schema)}


def time_text(at: datetime) -> str:
    return at.isoformat(timespec="microseconds").replace("+00:00", "Z")
