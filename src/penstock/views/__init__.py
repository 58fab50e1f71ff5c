"""Changes fold into the current answer, once."""

from penstock.views.changelog import changes
from penstock.views.following import catch_up, follow
from penstock.views.lineage import current
from penstock.views.reading import ViewReader
from penstock.views.sqlite import SqliteStore
from penstock.views.step import Lineage, Position, Step
from penstock.views.store import Store

__all__ = [
    "Lineage",
    "Position",
    "SqliteStore",
    "Step",
    "Store",
    "ViewReader",
    "catch_up",
    "changes",
    "current",
    "follow",
]
