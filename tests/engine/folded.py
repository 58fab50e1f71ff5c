"""A change topic folded by hand, frame by frame, and held to what is promised of every frame.

Values are compared bit by bit here: what leaves is exactly what came.
"""

import struct
from collections import Counter
from typing import Any

from penstock.log import Entry, Log, Place

Exact = Any


class Folded:
    """What the topic of a view adds up to."""

    def __init__(self, log: Log, topic: str) -> None:
        self._log = log
        self._topic = topic
        self._key = log.topic(topic).key
        self._held: Counter[Exact] = Counter()
        self._values: dict[Exact, dict[str, Any]] = {}

    def take(self, frame: int) -> None:
        """Takes a frame: what leaves is there, nothing comes and leaves, a key occurs once and does change."""
        entries = list(self._log.read(self._topic, start=Place(frame), end=Place(frame + 1)))
        leaves = Counter(exact(row) for entry in entries if (row := self._leaving(entry)) is not None)
        comes = Counter(exact(dict(entry.value)) for entry in entries if not entry.deleted)  # type: ignore[arg-type]
        assert not leaves & comes, f"{self._topic}, frame {frame}: rows with both signs: {leaves & comes}"
        assert leaves <= self._held, f"{self._topic}, frame {frame}: rows that are not there: {leaves - self._held}"
        keys = [exact(entry.key) for entry in entries] if self._key else []
        assert len(keys) == len(set(keys)), f"{self._topic}, frame {frame}: a key occurs twice"
        self._values |= {exact(dict(entry.value)): dict(entry.value) for entry in entries}  # type: ignore[arg-type]
        self._held = self._held - leaves + comes

    def _leaving(self, entry: Entry) -> dict[str, Any] | None:
        """The row that the entry takes away; with a key it has the same as the one that comes."""
        if not self._key:
            assert entry.replaces is None
            return dict(entry.value) if entry.deleted else None  # type: ignore[arg-type]
        assert not entry.deleted or entry.replaces is not None
        if entry.replaces is None:
            return None
        assert exact(tuple(entry.replaces[name] for name in self._key)) == exact(entry.key)
        return dict(entry.replaces)

    def rows(self) -> list[dict[str, Any]]:
        return [self._values[row] for row in self._held.elements()]


def exact(value: Any) -> Exact:
    """A value that can be counted and equals another only if they are the same, bit by bit."""
    if isinstance(value, float):
        return struct.pack(">d", value)
    if isinstance(value, dict):
        return tuple((name, exact(each)) for name, each in value.items())
    if isinstance(value, list | tuple):
        return tuple(map(exact, value))
    return value
