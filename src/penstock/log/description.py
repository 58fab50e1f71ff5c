"""Description: what is told of a topic, and what declaring it again amounts to."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from penstock.errors import LogError
from penstock.log.bound import Bound
from penstock.log.catalog import Catalog
from penstock.log.pace import Pace, time_json
from penstock.log.records import instant, instant_or_none
from penstock.log.topic import PLAUSIBLE, Topic, same_declaration, topic_json


@dataclass(frozen=True)
class PartitionState:
    partition: int
    end: int
    largest_time: datetime | None
    heard_at: datetime
    """When it got its last record; before the first one, when the topic was made."""
    idle: frozenset[str] = frozenset()
    """The scopes for which it is idle; "" is everybody."""
    begin: int = 0
    """The first offset that is kept."""


@dataclass(frozen=True)
class ProducerState:
    """A producer that has joined: what it announced, and when it was last heard of."""

    name: str
    announced: datetime | None
    largest_time: datetime | None
    heard_at: datetime
    idle: frozenset[str] = frozenset()


@dataclass(frozen=True)
class Description:
    """What `describe` tells of a topic."""

    topic: Topic
    partitions: tuple[PartitionState, ...]
    producers: tuple[ProducerState, ...] = ()
    uncorrected: int = 0
    """How many records have an event time that could not be corrected."""
    compacted: int = 0
    """Before this frame only the newest record of each key is there for sure."""
    bound: Bound | None = None
    dropped: int = 0
    """How many records were left out, because the topic was full."""

    @property
    def records(self) -> int:
        return sum(each.end - each.begin for each in self.partitions)


def described(catalog: Catalog, name: str) -> Description:
    topic, at = catalog.topic(name), catalog.standings[name]
    partitions = [
        PartitionState(
            p,
            at.ends[p],
            instant_or_none(at.top(p)),
            instant(at.heard[p]),
            _idle_for(at.partitions, str(p)),
            at.begins[p],
        )
        for p in range(topic.partitions)
    ]
    producers = [
        ProducerState(
            producer,
            instant_or_none(time_json(reached.announced)),
            instant_or_none(time_json(reached.top)),
            instant(at.producers_heard[producer]),
            _idle_for(at.producers, producer),
        )
        for producer, reached in at.producers.members.items()
    ]
    return Description(
        topic,
        tuple(partitions),
        tuple(producers),
        at.uncorrected,
        at.compaction.below,
        catalog.bounds.get(name),
        catalog.dropped.get(name, 0),
    )


def _idle_for(pace: Pace, member: str) -> frozenset[str]:
    return frozenset(scope for scope, idle in pace.idle.items() if member in idle)


def creation(catalog: Catalog, topic: Topic) -> Sequence[Mapping[str, Any]]:
    existing = catalog.topics.get(topic.name)
    if existing is None:
        return [{"create": {"topic": topic.name} | topic_json(topic)}]
    if same_declaration(existing, topic):
        return []
    raise declared_otherwise(existing, topic)


def declared_otherwise(existing: Topic, topic: Topic) -> LogError:
    return LogError(
        f'topic "{topic.name}" exists already, declared otherwise',
        detail=f"It is {declaration(existing)}; asked for is {declaration(topic)}.",
        hint="To add columns: penstock log add-column. For anything else choose another name.",
    )


def declaration(topic: Topic) -> str:
    """The topic in one line."""
    text = f"({topic.schema}) with {topic.partitions} partition{'s' if topic.partitions > 1 else ''}"
    text += f", key ({', '.join(topic.key)})" if topic.key else ""
    text += f", event time {topic.event_time}" if topic.event_time else ""
    text += f", corrected from {', '.join(topic.corrected.columns)}" if topic.corrected else ""
    return text + (f", plausible up to {topic.plausible} ahead" if topic.plausible != PLAUSIBLE else "")
