"""Steps: what one frame of the log does to the views of a pipeline.

A step is one batch of the pipeline: for every view the rows that leave and the rows that come, and the position that
a store has when it has taken the step. All values here are immutable.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Literal

import pyarrow as pa

from penstock.errors import ViewError, did_you_mean
from penstock.schema import Schema

Row = dict[str, Any]
Kept = Literal["table", "topic", "files"]


@dataclass(frozen=True)
class View:
    """A view of a lineage, as it was announced: with a key, at most one row for each; without, a bag of rows.
    `partition_by` are the columns by which its files are parted, `index` those of each index that was declared.
    """

    name: str
    schema: Schema
    key: tuple[str, ...] = ()
    kept: Kept = "table"
    partition_by: tuple[str, ...] = ()
    index: tuple[tuple[str, ...], ...] = ()


@dataclass(frozen=True)
class Lineage:
    """A life of a pipeline's answers: its number, the frame from which on readers see it, its views."""

    pipeline: str
    number: int
    frame: int
    views: tuple[View, ...]

    @property
    def producer(self) -> str:
        return f"{self.pipeline}/{self.number}"

    @property
    def tables(self) -> tuple[View, ...]:
        """The views that stores keep."""
        return self.kept_as("table")

    def kept_as(self, kept: Kept) -> tuple[View, ...]:
        """The views that stores of one kind keep."""
        return tuple(view for view in self.views if view.kept == kept)

    def topic(self, view: View) -> str:
        """The topic that holds the view's changes."""
        return f"{self.pipeline}.{self.number}.{view.name}"

    def view(self, name: str) -> View:
        return find_view(self.views, name)


def find_view(views: tuple[View, ...], name: str) -> View:
    """The view of this name, as Spark compares names: regardless of case."""
    for view in views:
        if view.name.lower() == name.lower():
            return view
    names = [view.name for view in views]
    raise ViewError(
        f'view "{name}" does not exist',
        detail=f"The views are {', '.join(sorted(names))}." if names else "There are no views yet.",
        hint=did_you_mean(name, names, otherwise="" if names else "Run the pipeline first."),
    )


@dataclass(frozen=True)
class Position:
    """How far a store has come: the last frame that it took, and what that frame was.

    `log` is the log's identity: frames of another log mean nothing here. `batch` is the lineage's last batch, None
    before its first. `until` is the frame up to which that batch has read the sources, itself not included.
    """

    log: str
    lineage: int
    frame: int
    batch: int | None = None
    until: int = 0


@dataclass(frozen=True)
class Change:
    """What a step does to one view, row by row: `old[i]` leaves and `new[i]` comes. Either may be NULL, not both.

    In a view with a key, `old` and `new` have the same key, and within a step a key occurs once. In a bag one of the
    two is always NULL. `old` is what the view must hold: if it does not, something was lost or damaged.
    """

    view: str
    old: pa.StructArray
    new: pa.StructArray

    def __len__(self) -> int:
        return len(self.new)

    def pairs(self) -> Iterator[tuple[Row | None, Row | None]]:
        """The rows that leave and those that come, as Python values."""
        return zip(self.old.to_pylist(), self.new.to_pylist(), strict=True)


@dataclass(frozen=True)
class Step:
    """The changes of one frame for all views, and the position after it."""

    position: Position
    changes: tuple[Change, ...] = ()
