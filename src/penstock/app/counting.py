"""Counting: what the frames that a batch has read hold for its pipeline; once, however many want to know."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from itertools import islice, takewhile

from penstock.log.protocol import OrderedLog

REMEMBERED = 1_000
"""Batches whose counts are asked for again soon."""


@dataclass(frozen=True)
class Read:
    """How many frames with records for the pipeline, and how many records of each topic."""

    frames: int
    records: Mapping[str, int]


class Counts:
    def __init__(self, log: OrderedLog, topics: Iterable[str]) -> None:
        self._log = log
        self._topics = frozenset(topics)
        self.between = lru_cache(REMEMBERED)(self._between)

    def _between(self, start: int, end: int) -> Read:
        """The frames from `start` up to, not including, `end`."""
        frames, records = 0, Counter[str]()
        for _, counts in takewhile(lambda each: each[0] < end, self._counted(start)):
            frames += 1
            records.update(counts)
        return Read(frames, records)

    def after(self, frame: int, most: int) -> int:
        """How many frames there are from this one on, as far as they are counted."""
        return sum(1 for _ in islice(self._counted(frame), most))

    def _counted(self, start: int) -> Iterator[tuple[int, Mapping[str, int]]]:
        for header in self._log.frames(start) if start < self._log.mark().next_frame else ():
            counts = Counter[str]()
            for block in header.blocks:
                if block.topic in self._topics:
                    counts[block.topic] += block.count
            if counts.total():
                yield header.frame, counts
