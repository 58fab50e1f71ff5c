"""Backpressure: appends to a bounded topic wait for its slowest reader, leave records out, or are refused.

How far readers have come is looked up before an append, and whether there is room is decided under the writers' lock:
readers only go on, so a topic never gets beyond its bound, however many processes append. Appends to topics that are
not bounded do nothing more than before.
"""

import time
from collections.abc import Mapping
from dataclasses import replace
from datetime import timedelta

from penstock.errors import TopicFull
from penstock.log.bound import Bound, Room, RoomUnknown
from penstock.log.consumers import Consumers
from penstock.log.draft import Draft
from penstock.log.records import Appended
from penstock.log.writer import Writer

POLL_SECONDS = 0.005


class Backpressure:
    def __init__(self, writer: Writer, consumers: Consumers) -> None:
        self._writer = writer
        self._consumers = consumers

    def commit(self, draft: Draft) -> Appended | None:
        """Appends the draft, once there is room for it."""
        try:
            return self._writer.commit(draft)
        except RoomUnknown as unknown:
            return self._commit_bounded(draft, unknown.bounds)

    def _commit_bounded(self, draft: Draft, bounds: Mapping[str, Bound]) -> Appended | None:
        begun = time.monotonic()
        while True:
            seen = self._consumers.version, self._bounds(draft)
            rooms = tuple(self._room(topic, bound) for topic, bound in bounds.items())
            try:
                return self._writer.commit(replace(draft, rooms=rooms))
            except RoomUnknown as unknown:  # another bound was set meanwhile
                bounds = unknown.bounds
            except TopicFull as full:
                bound = bounds[full.topic]
                if bound.policy == "fail" or self._is_too_large(draft, full.topic, bound):
                    raise
                if not self._awaited(draft, seen, begun + bound.timeout / timedelta(seconds=1)):
                    full.detail += f" It waited for {bound.timeout}."
                    raise
                bounds = self._bounds(draft)

    def _bounds(self, draft: Draft) -> dict[str, Bound]:
        """As they are by now."""
        topics = {part.topic for part in draft.parts}
        return self._writer.ask(lambda catalog: {each: catalog.bounds[each] for each in topics & catalog.bounds.keys()})

    def _room(self, topic: str, bound: Bound) -> Room:
        ends = self._writer.ask(lambda catalog: catalog.ends(topic))
        done = {str(reader): reader.done_of(ends) for reader in self._consumers.readers(topic)}
        if not done:
            return Room(topic, None, bound)
        slowest = min(done, key=lambda name: done[name])
        return Room(topic, done[slowest] + bound.records, bound, slowest)

    def _is_too_large(self, draft: Draft, topic: str, bound: Bound) -> bool:
        """However long it waits."""
        return sum(part.count for part in draft.parts if part.topic == topic) > bound.records

    def _awaited(self, draft: Draft, seen: object, until: float) -> bool:
        """Waits until readers may have come further, or the bound is another one; False if neither was so in time."""
        while (self._consumers.version, self._bounds(draft)) == seen:
            if time.monotonic() >= until:
                return False
            time.sleep(POLL_SECONDS)
        return True
