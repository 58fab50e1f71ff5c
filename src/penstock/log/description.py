"""Description: what is told of a topic, and what declaring it again amounts to."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from penstock.errors import LogError
from penstock.log.catalog import Catalog
from penstock.log.records import instant
from penstock.log.topic import Topic, same_declaration, topic_json


@dataclass(frozen=True)
class PartitionState:
    partition: int
    end: int
    largest_time: datetime | None


@dataclass(frozen=True)
class Description:
    """What `describe` tells of a topic."""

    topic: Topic
    partitions: tuple[PartitionState, ...]

    @property
    def records(self) -> int:
        return sum(each.end for each in self.partitions)


def _instant(at: int | None) -> datetime | None:
    return None if at is None else instant(at)


def described(catalog: Catalog, name: str) -> Description:
    topic, at = catalog.topic(name), catalog.partitions[name]
    states = [PartitionState(p, at.ends[p], _instant(at.tops[p])) for p in range(topic.partitions)]
    return Description(topic, tuple(states))


def creation(catalog: Catalog, topic: Topic) -> Sequence[Mapping[str, Any]]:
    existing = catalog.topics.get(topic.name)
    if existing is None:
        return [{"create": {"topic": topic.name} | topic_json(topic)}]
    if same_declaration(existing, topic):
        return []
    raise LogError(
        f'topic "{topic.name}" exists already, declared otherwise',
        detail=f"It is {declaration(existing)}; asked for is {declaration(topic)}.",
        hint="To add columns: penstock log add-column. For anything else choose another name.",
    )


def declaration(topic: Topic) -> str:
    """The topic in one line."""
    text = f"({topic.schema}) with {topic.partitions} partition{'s' if topic.partitions > 1 else ''}"
    text += f", key ({', '.join(topic.key)})" if topic.key else ""
    return text + (f", event time {topic.event_time}" if topic.event_time else "")
