"""The catalog: what all frames up to a point amount to.

Topics with their partitions' ends, the last sequence of each producer, epochs, the last append time. It follows from
the frames alone (`apply`), in order; a stretch begins with a snapshot of it so that nothing before has to be read.
"""

from dataclasses import dataclass, field, replace
from typing import Any

from penstock.log.bound import Bound, bound_of, limits_json
from penstock.log.frame import Header
from penstock.log.retention import retention_of
from penstock.log.standing import Compaction, Standing, begun, standing_json, standing_of
from penstock.log.topic import Topic, grown, schema_of, topic_json, topic_of, unknown_topic


@dataclass
class Catalog:
    next_frame: int = 0
    appended_at: int = 0
    topics: dict[str, Topic] = field(default_factory=dict)
    standings: dict[str, Standing] = field(default_factory=dict)
    producers: dict[str, tuple[int, int]] = field(default_factory=dict)
    epochs: dict[str, int] = field(default_factory=dict)
    bounds: dict[str, Bound] = field(default_factory=dict)
    dropped: dict[str, int] = field(default_factory=dict)
    """How many records of each topic were left out, because it was full."""
    orphans: dict[tuple[str, int], int] = field(default_factory=dict)
    """Ends of partitions whose topic is unknown: the frame that created it is damaged."""

    def topic(self, name: str) -> Topic:
        if name not in self.topics:
            raise unknown_topic(name, list(self.topics))
        return self.topics[name]

    def ends(self, name: str) -> list[int]:
        return list(self.standings[name].ends) if name in self.standings else []

    def begins(self, name: str) -> list[int]:
        return list(self.standings[name].begins) if name in self.standings else []

    def apply(self, header: Header) -> None:
        """Takes in the next frame."""
        for control in header.control:
            self._apply_control(control, header.at)
        for block in header.blocks:
            if block.topic in self.standings:
                self.standings[block.topic].add(block, header.producer, header.at)
            else:
                self.orphans[block.topic, block.partition] = block.end
        for said in header.punctuation:
            if said.topic in self.standings:
                self.standings[said.topic].mark(said, header.at)
        if header.producer is not None and header.sequence is not None:
            self.producers[header.producer] = (header.sequence, header.frame)
        self.appended_at = header.at
        self.next_frame = header.frame + 1

    def _apply_control(self, control: Any, at: int) -> None:
        if create := control.get("create"):
            topic = topic_of(create["topic"], create)
            self.topics[topic.name] = topic
            ends = [self.orphans.pop((topic.name, each), 0) for each in range(topic.partitions)]
            self.standings[topic.name] = begun(ends, at)
        if (columns := control.get("columns")) and columns["topic"] in self.topics:
            topic = self.topics[columns["topic"]]
            self.topics[topic.name] = grown(topic, schema_of(columns["schema"]))
        if epoch := control.get("epoch"):
            self.epochs[epoch["name"]] = epoch["value"]
        if bound := control.get("bound"):
            self.bounds.pop(bound["topic"], None)
            if bound["records"] is not None:
                self.bounds[bound["topic"]] = bound_of(bound)
        if dropped := control.get("dropped"):
            self.dropped[dropped["topic"]] = self.dropped.get(dropped["topic"], 0) + dropped["records"]
        self._apply_care(control, at)

    def _apply_care(self, control: Any, at: int) -> None:
        """What happens to records that are there."""
        if (kept := control.get("retention")) and kept["topic"] in self.topics:
            topic = self.topics[kept["topic"]]
            self.topics[topic.name] = replace(topic, retention=retention_of(kept))
        if (gone := control.get("begins")) and gone["topic"] in self.standings:
            standing = self.standings[gone["topic"]]
            standing.begins = list(map(max, standing.begins, gone["offsets"]))
        if (compacted := control.get("compacted")) and compacted["topic"] in self.standings:
            standing = self.standings[compacted["topic"]]
            standing.compaction = _compacted(standing.compaction, compacted, at)


def _compacted(before: Compaction, said: Any, at: int) -> Compaction:
    """After a run has begun, or is done. One that has let deletions go has used what an earlier one was done with."""
    if "done" in said:
        return replace(before, done=before.done or (said["done"], at))
    used = said["deletions"] > before.deletions
    below, deletions = max(before.below, said["below"]), max(before.deletions, said["deletions"])
    return Compaction(below, deletions, None if used else before.done)


def snapshot(catalog: Catalog) -> dict[str, Any]:
    """The catalog as JSON, for the prelude of a stretch."""
    return {
        "first": catalog.next_frame,
        "appended_at": catalog.appended_at,
        "topics": {
            name: topic_json(topic) | standing_json(catalog.standings[name]) for name, topic in catalog.topics.items()
        },
        "producers": {name: list(last) for name, last in catalog.producers.items()},
        "epochs": catalog.epochs,
        "bounds": {name: limits_json(bound) for name, bound in catalog.bounds.items()},
        "dropped": catalog.dropped,
    }


def restored(found: dict[str, Any]) -> Catalog:
    """The catalog of a prelude's JSON."""
    catalog = Catalog(next_frame=found["first"], appended_at=found["appended_at"])
    for name, each in found["topics"].items():
        catalog.topics[name] = topic_of(name, each)
        catalog.standings[name] = standing_of(each)
    catalog.producers = {name: (last[0], last[1]) for name, last in found["producers"].items()}
    catalog.epochs = dict(found["epochs"])
    catalog.bounds = {name: bound_of(each) for name, each in found.get("bounds", {}).items()}
    catalog.dropped = dict(found.get("dropped", {}))
    return catalog
