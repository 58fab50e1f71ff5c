"""The stages of a batch: the moments at which a run may die, and the batch is in the log once all the same.

What lies on disk at each stage, and what the next run makes of it, is told in docs/architecture.md.
"""

from collections.abc import Callable
from enum import Enum


class Stage(Enum):
    """In the order in which a batch passes them; only the store is free to come later."""

    PLANNED = "after planning"
    """The checkpoint says which frames the batch reads."""
    STATE_COMMITTED = "after the state commit"
    """The state after the batch is in the checkpoint; the batch's changes are in no topic yet."""
    FRAMED = "after the frame"
    """The changes are in the log: the batch has happened."""
    STORED = "after the store"
    """The store has taken the batch's frame."""
    COMMITTING = "before Spark's commit"
    """Nothing is left to do but Spark's own note that the batch is over."""


OnStage = Callable[[Stage, int], None]
"""Is told that a batch, by its number, has reached a stage; in whichever thread."""


def nobody(_stage: Stage, _batch: int) -> None:
    """Listens to nothing."""
