"""Feeds: the changes of a view as server-sent events, one reading of the log for all who follow.

The newest events wait in memory, ready to be sent; who comes from further back reads the log until there. An event's id
is the place of its change, and places never change: whoever comes back with the last id that it saw goes on with the
next, at this server or at another one, without a gap and without seeing anything twice. After all changes of a frame
comes an event `batch`: what was seen then is the whole answer at that position, never a part of a batch.
"""

import asyncio
from bisect import bisect_left
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import contextmanager
from functools import partial
from itertools import islice
from time import monotonic
from typing import TypeVar

from penstock.errors import RecordsGone, ServeError, ViewError
from penstock.log import Place
from penstock.serve.forms import fields, json_text
from penstock.serve.positions import fields_of
from penstock.serve.pulse import Pulse
from penstock.serve.source import Served
from penstock.views import Position, changes
from penstock.views.changelog import RowChange

MOST_BYTES = 8 << 20
"""Of events that wait in memory, for each view."""
PIECE_BYTES = 256 << 10
"""Of events that are on their way to one reader: slow ones may be many."""
BEAT_SECONDS = 15.0
"""A sign of life for proxies, and to notice who has left."""
Event = tuple[Place, bytes]
T = TypeVar("T")


def change_event(change: RowChange) -> Event:
    row = fields(change.view.schema)(change.row)
    data = json_text({"change": change.weight, "row": row})
    text = f"id: {change.position.frame}:{change.index}\nevent: change\ndata: {data}\n\n"
    return change.place, text.encode(errors="backslashreplace")


def batch_event(position: Position) -> Event:
    """It follows all changes of its frame."""
    text = f"id: {position.frame}\nevent: batch\ndata: {json_text(fields_of(position))}\n\n"
    return Place(position.frame, LAST), text.encode()


LAST = (1 << 24) - 1
"""No change has this place: a frame has fewer of them."""


def start_event(place: Place) -> bytes:
    """What a reader has who comes back before anything has happened."""
    return f"id: {place.frame - 1}\nevent: start\ndata: {{}}\n\n".encode()


def events_of(served: Served, view: str, start: Place, end: int) -> Iterator[Event]:
    """The events from a place on, in the frames before `end`."""
    last: Position | None = None
    # From the beginning of the frame: who has seen all its changes still lacks the event that says so.
    for change in changes(served.log, served.pipeline.name, view, start.frame):
        if last is not None and change.position.frame != last.frame:
            yield batch_event(last)
        if change.position.frame >= end:
            return
        last = change.position
        if change.place >= start:
            yield change_event(change)
    if last is not None:
        yield batch_event(last)


def pieced(items: Iterator[T], size: Callable[[T], int] = len) -> list[T]:  # type: ignore[assignment]
    """As many of the items as are sent at once, at least one if there is one."""
    found, held = [], 0
    for item in items:
        found.append(item)
        held += size(item)
        if held >= PIECE_BYTES:
            break
    return found


class Feed:
    """The events of one view. Belongs to one event loop."""

    def __init__(self, served: Served, view: str, pulse: Pulse) -> None:
        self.view = view
        self.followers = 0
        self._served = served
        self._pulse = pulse
        self._begin = self._end = Place(served.log.mark().next_frame)
        self._places: list[Place] = []
        self._events: list[bytes] = []
        self._bytes = 0
        self._reading = asyncio.Lock()

    async def check(self, start: Place) -> None:
        """Refuses a place from which on not all changes are kept."""
        if start >= self._begin:
            return
        try:
            await asyncio.to_thread(lambda: next(events_of(self._served, self.view, start, start.frame + 1), None))
        except (ViewError, RecordsGone) as error:
            raise ServeError(error.primary, detail=error.detail, hint=error.hint, status=410) from error

    async def follow(self, start: Place) -> AsyncIterator[bytes]:
        """The events from a place on, as they come, until the server stops. Empty: nothing has happened for a while."""
        place, told_at = start, monotonic()
        while not self._pulse.stopping:
            if monotonic() - told_at >= BEAT_SECONDS:
                yield b""
                told_at = monotonic()
            if place < self._begin:
                async for found, goes_on in self._from_log(place):
                    if found:
                        yield found
                    place, told_at = goes_on, monotonic()
            elif place < self._end:
                found, place = self._ready(place)
                if found:
                    yield found
                    told_at = monotonic()
            elif not await self._moved():
                # While this reader waited for its turn, another may have taken in what is new.
                await self._pulse.next(told_at + BEAT_SECONDS - monotonic(), since=partial(self._goes_on, place))

    def _goes_on(self, place: Place) -> bool:
        return place < self._end or self._served.log.mark().next_frame > self._end.frame

    def _ready(self, place: Place) -> tuple[bytes, Place]:
        """What waits in memory from a place on."""
        at = bisect_left(self._places, place)
        piece = pieced(islice(self._events, at, None))
        at += len(piece)
        return b"".join(piece), self._places[at] if at < len(self._places) else self._end

    async def _moved(self) -> bool:
        """Takes in what the log has got; whether there was anything. One does it for all."""
        async with self._reading:
            end = self._served.log.mark().next_frame
            if end <= self._end.frame:
                return False
            found, size = await asyncio.to_thread(self._gathered, end)
            if size > MOST_BYTES:  # everybody reads that much from the log, piece by piece
                self._places, self._events, self._bytes = [], [], 0
                self._begin = Place(end)
            else:
                self._places += [place for place, _ in found]
                self._events += [event for _, event in found]
                self._bytes += size
            self._end = Place(end)
            if self._bytes > MOST_BYTES:
                self._forget()
            return True

    def _gathered(self, end: int) -> tuple[list[Event], int]:
        found: list[Event] = []
        size = 0
        for event in events_of(self._served, self.view, self._end, end):
            size += len(event[1])
            if size > MOST_BYTES:
                break
            found.append(event)
        return found, size

    def _forget(self) -> None:
        """Half of what is in memory goes, the older one."""
        at = 0
        while at < len(self._events) and self._bytes > MOST_BYTES // 2:
            self._bytes -= len(self._events[at])
            at += 1
        self._begin = self._places[at] if at < len(self._places) else self._end
        del self._places[:at], self._events[:at]

    async def _from_log(self, start: Place) -> AsyncIterator[tuple[bytes, Place]]:
        """What the log holds from a place on, in pieces, each with the place where it goes on."""
        end = self._served.log.mark().next_frame
        found = events_of(self._served, self.view, start, end)
        while True:
            piece = await asyncio.to_thread(pieced, found, lambda event: len(event[1]))
            if not piece:
                break
            last = piece[-1][0]
            yield b"".join(event for _, event in piece), Place(last.frame, last.index + 1)
        yield b"", Place(end)


class Feeds:
    """One for each view that somebody follows, and how many do."""

    def __init__(self, served: Served, pulse: Pulse, most: int) -> None:
        self.followers = 0
        self._served = served
        self._pulse = pulse
        self._most = most
        self._feeds: dict[str, Feed] = {}

    def feed(self, view: str) -> Feed:
        if self.followers >= self._most:
            raise ServeError(
                f"{self._most} readers follow changes already",
                hint="Try again later.",
                status=503,
            )
        if view not in self._feeds:
            self._feeds[view] = Feed(self._served, view, self._pulse)
        return self._feeds[view]

    @contextmanager
    def following(self, feed: Feed) -> Iterator[None]:
        """Inside, somebody follows; what nobody follows is forgotten."""
        self.followers += 1
        feed.followers += 1
        try:
            yield
        finally:
            self.followers -= 1
            feed.followers -= 1
            if not feed.followers and self._feeds.get(feed.view) is feed:
                del self._feeds[feed.view]
