"""Idleness: what only the clock knows of a stream, written into the log so that it has a place there.

A partition or producer that brought nothing for as long as its stream's `idle` says, while others went on, is marked as
idle. A stream that brought nothing for that long follows the other streams of the pipeline: its watermark is moved to
the least of theirs. Both hold for this pipeline alone, and a replay meets them where they stand. How long something has
been silent is told by the append time of its last record, whoever was running then.
"""

from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta

from penstock.log import Epoch
from penstock.log.protocol import OrderedLog
from penstock.model import History, Pipeline, Stream

LOOKS = 4
"""How often the clock is looked at while the shortest idle time passes."""


def now() -> datetime:
    return datetime.now(UTC)


class Idleness:
    """Of one pipeline's streams; every mark expects the epoch of its run."""

    def __init__(self, log: OrderedLog, pipeline: Pipeline, epoch: Epoch, clock: Callable[[], datetime] = now) -> None:
        self._log = log
        self._pipeline = pipeline
        self._epoch = epoch
        self._clock = clock
        streams = [each for each in pipeline.relations if isinstance(each, Stream) and each.event_time]
        # A history goes on with its table, which nothing waits for.
        self._streams = [each for each in streams if not isinstance(each, History)]
        idle = [each.idle for each in self._streams if each.idle is not None]
        self._every = min(idle) / LOOKS if idle else None
        self._due_at = datetime.min.replace(tzinfo=UTC)

    def look(self) -> None:
        """Marks what is idle, if it is time to look again."""
        at = self._clock()
        if self._every is None or at < self._due_at:
            return
        self._due_at = at + self._every
        for stream in self._streams:
            if stream.idle is None:
                continue
            if self._is_silent(stream, at):
                self._follow(stream, at)
            elif stream.watermark_by == "partition":
                self._rest_partitions(stream, at - stream.idle)
            elif stream.watermark_by == "producer":
                self._rest_producers(stream, at - stream.idle)

    def _is_silent(self, stream: Stream, at: datetime) -> bool:
        """Whether the whole of it is; without `idle`, no stream ever is."""
        found = self._log.describe(stream.topic)
        heard = max([*(each.heard_at for each in found.partitions), *(each.heard_at for each in found.producers)])
        return stream.idle is not None and at - heard >= stream.idle

    def _rest_partitions(self, stream: Stream, since: datetime) -> None:
        found = self._log.describe(stream.topic).partitions
        ahead = max((each.largest_time for each in found if each.heard_at > since and each.largest_time), default=None)
        resting = [
            each.partition
            for each in found
            if each.heard_at <= since and not self._rests(each.idle) and _is_behind(each.largest_time, ahead)
        ]
        if resting:
            self._log.rest(stream.topic, partitions=resting, scope=self._pipeline.name, expect=[self._epoch])

    def _rest_producers(self, stream: Stream, since: datetime) -> None:
        found = {
            each: _reached(each.announced, each.largest_time, stream.watermark)
            for each in self._log.describe(stream.topic).producers
        }
        ahead = max((time for each, time in found.items() if each.heard_at > since and time), default=None)
        resting = [
            each.name
            for each, time in found.items()
            if each.heard_at <= since and not self._rests(each.idle) and _is_behind(time, ahead)
        ]
        if resting:
            self._log.rest(stream.topic, producers=resting, scope=self._pipeline.name, expect=[self._epoch])

    def _rests(self, scopes: frozenset[str]) -> bool:
        return not scopes.isdisjoint(("", self._pipeline.name))

    def _follow(self, stream: Stream, at: datetime) -> None:
        others = list(self._live(at))
        if not others or None in others:
            return
        until = min(each for each in others if each is not None)
        mine = self._watermark(stream)
        if mine is None or mine < until:
            self._log.punctuate(stream.topic, until, scope=self._pipeline.name, expect=[self._epoch])

    def _live(self, at: datetime) -> Iterator[datetime | None]:
        """The watermarks of the streams that go on."""
        for each in self._streams:
            if (each.watermark is not None or each.watermark_by == "producer") and not self._is_silent(each, at):
                yield self._watermark(each)

    def _watermark(self, stream: Stream) -> datetime | None:
        return self._log.watermark(
            stream.topic, delay=stream.watermark, by=stream.watermark_by, scope=self._pipeline.name
        )


def _reached(announced: datetime | None, largest: datetime | None, delay: timedelta | None) -> datetime | None:
    times = [announced, None if largest is None or delay is None else largest - delay]
    return max((time for time in times if time is not None), default=None)


def _is_behind(time: datetime | None, ahead: datetime | None) -> bool:
    return ahead is not None and (time is None or time < ahead)
