"""Retention: how long the records of a topic are kept.

For ever, unless it says otherwise. By age or size whole sealed files go, the oldest first; compaction takes records
that a newer one of the same key replaces.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from penstock.errors import LogError

DELETIONS = timedelta(days=1)
MICROSECOND = timedelta(microseconds=1)


@dataclass(frozen=True)
class Retention:
    """Records older than `age` go, and the oldest where the topic has more than `bytes`; `unread`: none that a reader
    still needs. `compacted`: the newest record of each key stays; deletions go too, `deletions` after that.
    """

    age: timedelta | None = None
    bytes: int | None = None
    unread: bool = False
    compacted: bool = False
    deletions: timedelta = DELETIONS

    def __post_init__(self) -> None:
        if self.age is not None and self.age < timedelta(0):
            raise LogError(f"records cannot be kept for {self.age}", hint="Give a duration that is not negative.")
        if self.bytes is not None and self.bytes < 0:
            raise LogError(f"a topic cannot be kept at {self.bytes} bytes", hint="Give 0 or more.")
        if self.deletions < timedelta(0):
            raise LogError(
                f"deletions cannot be kept for {self.deletions}", hint="Give a duration that is not negative."
            )

    @property
    def ends(self) -> bool:
        """Whether records go by their age or by size."""
        return self.age is not None or self.bytes is not None


FOREVER = Retention()


def retention_json(retention: Retention) -> dict[str, Any]:
    return {
        "age": None if retention.age is None else retention.age // MICROSECOND,
        "bytes": retention.bytes,
        "unread": retention.unread,
        "compacted": retention.compacted,
        "deletions": retention.deletions // MICROSECOND,
    }


def retention_of(found: Mapping[str, Any]) -> Retention:
    return Retention(
        None if found["age"] is None else found["age"] * MICROSECOND,
        found["bytes"],
        found["unread"],
        found["compacted"],
        found["deletions"] * MICROSECOND,
    )
