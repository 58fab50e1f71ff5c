"""A producer, as a topic's registry knows it: while it is there, the watermark waits for it.

Readers whose watermark is that of the producers wait for every one that has joined: for the largest event time that it
brought, less their delay, or for what it announced, whichever is later. Records count for the producer under whose name
they were appended.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Generic, TypeVar

from penstock.errors import LogError, did_you_mean
from penstock.log.catalog import Catalog
from penstock.log.draft import Draft, check_name
from penstock.log.frame import Punctuation
from penstock.log.records import micros

T = TypeVar("T")
"""What an append answers."""


@dataclass(frozen=True)
class Producer(Generic[T]):
    """A name, and how what it says is committed. `Log.producer` makes it."""

    name: str
    commit: Callable[[Draft], T]

    def __post_init__(self) -> None:
        if not check_name("a producer", self.name):
            raise LogError("a producer needs a name", detail='The producer is "".')

    def join(self, topic: str, until: datetime | None = None) -> T:
        """From now on the topic's watermark waits for this producer; it stands at `until`, or at nothing yet."""
        said = Punctuation(topic, None if until is None else micros(until), says="joins", producer=self.name)
        return self.commit(Draft(punctuation=(said,), control=lambda catalog: _there(catalog, topic)))

    def announce(self, topic: str, until: datetime) -> T:
        """This producer will bring nothing before `until` any more."""
        said = Punctuation(topic, micros(until), producer=self.name)
        return self.commit(Draft(punctuation=(said,), control=lambda catalog: self._joined(catalog, topic)))

    def leave(self, topic: str) -> T:
        """From now on the topic's watermark does not wait for this producer."""
        said = Punctuation(topic, says="leaves", producer=self.name)
        return self.commit(Draft(punctuation=(said,), control=lambda catalog: self._joined(catalog, topic)))

    def _joined(self, catalog: Catalog, topic: str) -> Sequence[Mapping[str, Any]]:
        _there(catalog, topic)
        known = list(catalog.standings[topic].producers.members)
        if self.name not in known:
            raise LogError(
                f'producer "{self.name}" has not joined topic "{topic}"',
                detail=f"Those that have are {', '.join(known)}." if known else "Nobody has.",
                hint=did_you_mean(self.name, known, otherwise="Let it join first."),
            )
        return ()


def _there(catalog: Catalog, topic: str) -> Sequence[Mapping[str, Any]]:
    catalog.topic(topic)
    return ()
