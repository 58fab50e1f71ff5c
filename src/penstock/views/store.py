"""Store: where views are kept. One of the two doors: write your own in thirty lines.

A store is told what happened, in the order of the log, and keeps the answers with its own position. It need not be
reliable in any other way: what it forgets (it was down, it was restored from an older copy, its last write was lost)
it is told again, from the position that it says it has. It must keep three promises:

1. *All or nothing.* A call takes all its steps, for all views, together with the position, or none of them. Whoever
   reads the store never sees one view ahead of another.
2. *Once.* A step at or below the position is passed over, and so is a switch.
3. *Durable.* When a call has returned, its steps survive a crash; or if not, then `position` does not claim them.

A store in the memory of a process, complete:

    from collections import Counter

    from penstock.errors import ViewError

    class Memory:
        def __init__(self):
            self._position, self._views = None, {}

        def position(self):
            return self._position

        def rows(self, view):
            return self._views[view]

        def apply(self, steps):
            fresh = [step for step in steps if step.position.frame > self._position.frame]
            if any(step.position.lineage != self._position.lineage for step in fresh):
                raise ViewError("a step of another lineage")
            self._fold(self._views, fresh)

        def switch(self, lineage, steps):
            if self._position is None or self._position.frame < lineage.frame:
                self._fold({view.name: Counter() for view in lineage.tables}, steps)

        def _fold(self, views, steps):
            position, views = self._position, {view: Counter(rows) for view, rows in views.items()}
            for step in steps:
                for change in step.changes:
                    for old, new in change.pairs():
                        views[change.view][repr(new)] += new is not None
                        views[change.view][repr(old)] -= old is not None
                        if views[change.view][repr(old)] < 0:
                            raise ViewError(f"{change.view} has no row {old}")
                position = step.position
            self._position, self._views = position, views  # both at once, or nothing

`penstock.views.testing` proves the promises for any store, `tests/views/contract.py` for this one and ours.
"""

from collections.abc import Iterable, Sequence
from typing import Protocol

from penstock.views.step import Lineage, Position, Step


class Store(Protocol):
    """Keeps views. Called by one thread at a time; other stores and readers may be at work meanwhile."""

    def position(self) -> Position | None:
        """How far the store has come; None if it is new."""

    def apply(self, steps: Sequence[Step]) -> None:
        """Takes the steps, in order, in one transaction; those at or below the position are passed over.

        All steps are of the position's lineage. Raises `ViewError`, and takes none, if a row that should leave is not
        there, or a key is there already.
        """

    def switch(self, lineage: Lineage, steps: Iterable[Step]) -> None:
        """Replaces all views by those of the lineage (its `tables`, or what else `follow` was told that the store
        keeps), in one transaction.

        The steps make them from nothing; the last one has no changes and the position of the switch, which is at
        `lineage.frame`. A switch at or below the position is passed over; `steps` is then not read.
        """
