"""Delivering: the changes of a view go out, in order, at least once, whoever is away meanwhile.

What cannot be delivered is tried again, after a second, two, four, at most an hour, each wait with some chance in it;
after the last attempt it becomes a dead letter, in a topic of the log, once, and the next is tried. The place is kept
after each delivery. Whoever dies between the two delivers again, under the same identity.
"""

import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from datetime import timedelta
from hashlib import blake2b
from itertools import dropwhile
from random import Random
from typing import Protocol

from penstock.errors import PenstockError, RecordsGone, ViewError
from penstock.log import Place
from penstock.views.changelog import RowChange, ViewChanges
from penstock.views.sinks.memory import Memory
from penstock.views.sinks.news import News, Source, news_of

POLL_SECONDS = 0.01
FIRST_SECONDS = 1.0
MOST_SECONDS = 3600.0
LETTERS = "id STRING, lineage INT, frame BIGINT, number INT, attempts INT, reason STRING, body STRING"
Stop = Callable[[], bool]
Tell = Callable[[PenstockError], None]


@dataclass(frozen=True)
class Letter:
    """What is delivered at once, under an identity that stays the same."""

    id: str
    body: str


@dataclass(frozen=True)
class Parcel(Letter):
    """A letter, the first news in it, and where to go on after it."""

    first: News
    goes_on: Place


class Undelivered(Exception):
    """An attempt failed, for a reason that may be shown; not before `wait` seconds should be the next."""

    def __init__(self, reason: str, *, wait: float = 0.0) -> None:
        super().__init__(reason)
        self.reason = reason
        self.wait = wait


class Unwanted(Exception):
    """Nothing more is wanted at this address."""


class Courier(Protocol):
    """Brings parcels to one address. `where` may be shown, `address` not."""

    kind: str
    where: str
    address: str
    attempts: int
    every: timedelta

    def parcels(self, news: Iterable[News]) -> Iterator[Parcel]:
        """The news in order, as they are delivered."""

    def deliver(self, letter: Letter) -> None:
        """Raises `Undelivered` or `Unwanted`, and `ViewError` where its own settings are at fault."""

    def close(self) -> None: ...


class Delivery:
    """One sink of one view. Belongs to one thread."""

    def __init__(self, source: Source, courier: Courier, memory: Memory, *, tell: Tell, chance: Random) -> None:
        self._log = source.log
        self._pipeline = source.pipeline
        self._view = source.view
        self._courier = courier
        self._memory = memory
        self._tell = tell
        self._chance = chance
        self._told = ""
        self._due_at = time.monotonic()

    def run(self, stop: Stop | None, well: Callable[[], None] = lambda: None) -> None:
        """Delivers what comes, until `stop` says so; without it, what is there now, each at the first attempt: what
        fails is then an error. `well` is told of every delivery.
        """
        if not self._is_wanted():
            _pause(MOST_SECONDS, stop or _at_once)
            return
        held = self._memory.held.place
        reading = ViewChanges(self._log, self._pipeline, self._view, held.frame)
        try:
            while stop is None or not stop():
                _pause(self._due_at - time.monotonic(), stop or _at_once)
                fresh = dropwhile(lambda change: change.place < held, self._changes(reading))
                for parcel in self._courier.parcels(news_of(fresh)):
                    if not self._delivered(parcel, stop):
                        return
                    well()
                self._memory.passed(reading.frame, now=stop is None)
                if stop is None:
                    return
                time.sleep(POLL_SECONDS)
        finally:
            self._courier.close()

    def _changes(self, reading: ViewChanges) -> Iterator[RowChange]:
        try:
            yield from reading.fresh()
        except (ViewError, RecordsGone) as error:  # what happened meanwhile is not kept
            hint = f"Take {self._memory.path} away: the sink begins with what comes from now on."
            raise ViewError(error.primary, detail=error.detail, hint=hint) from error

    def _delivered(self, parcel: Parcel, stop: Stop | None) -> bool:
        """Whether to go on behind the parcel: it was delivered, or is a dead letter."""
        while stop is None or not stop():
            try:
                self._courier.deliver(parcel)
            except Undelivered as failure:
                attempts = self._memory.failed()
                if attempts >= self._courier.attempts:
                    self._bury(parcel, failure.reason)
                    return True
                error = self._failed(failure)
                if stop is None:
                    raise error from None
                self._tell_once(error)
                _pause(max(failure.wait, backoff(attempts, self._chance)), stop)
            except Unwanted:
                self._memory.refused(_digest(self._courier.address))
                self._tell_once(self._unwanted())
                return False
            else:
                self._memory.delivered(parcel.goes_on)
                self._told = ""
                self._due_at = time.monotonic() + self._courier.every.total_seconds()
                return True
        return False

    def _bury(self, parcel: Parcel, reason: str) -> None:
        """The letter is in the log once: its place is its sequence. Only then the sink goes on behind it."""
        name = dead_topic(self._pipeline, self._view, self._courier.kind)
        self._log.create_topic(name, LETTERS, own=True)
        position = parcel.first.position
        letter = {
            "id": parcel.id,
            "lineage": position.lineage,
            "frame": position.frame,
            "number": parcel.first.index,
            "attempts": self._memory.held.attempts,
            "reason": reason,
            "body": parcel.body,
        }
        self._log.append_all({name: [letter]}, producer=name, sequence=int(parcel.first.place))
        self._memory.delivered(parcel.goes_on)
        self._tell(
            ViewError(
                f'the {self._courier.kind} of view "{self._view}" gives up a message to {self._courier.where}',
                detail=f"{reason}; that was attempt {letter['attempts']}.",
                hint=f"It is a dead letter now: penstock log read {name}; penstock redrive {self._view} sends it.",
            )
        )

    def _is_wanted(self) -> bool:
        """Another address than the one that was refused may want it."""
        refused = self._memory.held.refused
        if not refused:
            return True
        if refused != _digest(self._courier.address):
            self._memory.wanted()
            return True
        self._tell_once(self._unwanted())
        return False

    def _tell_once(self, error: PenstockError) -> None:
        if error.primary != self._told:
            self._tell(error)
        self._told = error.primary

    def _failed(self, failure: Undelivered) -> ViewError:
        return ViewError(
            f'the {self._courier.kind} of view "{self._view}" does not reach {self._courier.where}',
            detail=f"{failure.reason}.",
            hint="It is tried again, less and less often; what comes meanwhile waits.",
        )

    def _unwanted(self) -> ViewError:
        return ViewError(
            f'the {self._courier.kind} of view "{self._view}" is off: {self._courier.where} wants nothing more',
            detail="It answered 410 Gone.",
            hint=f"Declare another address, or take {self._memory.path} away to begin with what comes from now on.",
        )


def backoff(attempts: int, chance: Random) -> float:
    """A random part, at least half: whoever was overrun is not overrun again by all at the same moment."""
    return min(FIRST_SECONDS * 2.0 ** (attempts - 1), MOST_SECONDS) * chance.uniform(0.5, 1.0)


def dead_topic(pipeline: str, view: str, kind: str) -> str:
    return f"{pipeline}.{view}.{kind}.dead-letters"


def is_dead_topic(pipeline: str, topic: str) -> bool:
    # names of pipelines may have dots, those of views have none
    view, _, rest = topic.removeprefix(f"{pipeline}.").partition(".")
    return topic == f"{pipeline}.{view}.{rest}" and rest in ("webhook.dead-letters", "email.dead-letters")


def _digest(address: str) -> str:
    return blake2b(address.encode(), digest_size=16).hexdigest()


def _at_once() -> bool:
    return True


def _pause(seconds: float, stop: Stop) -> None:
    """Sleeps, unless it is time to stop."""
    until = time.monotonic() + seconds
    while not stop() and (left := until - time.monotonic()) > 0:
        time.sleep(min(left, POLL_SECONDS))
