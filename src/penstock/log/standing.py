"""A standing: how far one topic has come at some point of the log.

Where its partitions begin and end, when each got its last record, how far event times, announcements and punctuation
have come, and how far it has been compacted.
"""

from dataclasses import dataclass, field
from typing import Any, Literal

from penstock.log.frame import Block, Punctuation
from penstock.log.pace import NONE, Pace, Reached, pace_json, pace_of, reached_json, reached_of, time_json, time_of

By = Literal["stream", "partition", "producer"]
"""Whose progress the watermark is: that of the records together, or the least of all partitions or producers."""


@dataclass(frozen=True)
class Compaction:
    """Before frame `below` only the newest record of each key is kept for sure, before `deletions` no deletion. The
    last run that ended is `done`: up to which frame, and when.
    """

    below: int = 0
    deletions: int = 0
    done: tuple[int, int] | None = None


@dataclass
class Standing:
    ends: list[int]
    heard: list[int]
    """When each partition got its last record; before the first one, when the topic was made."""
    partitions: Pace
    producers: Pace = field(default_factory=Pace)
    producers_heard: dict[str, int] = field(default_factory=dict)
    until: dict[str, int] = field(default_factory=dict)
    """Punctuation: scope -> time."""
    uncorrected: int = 0
    """How many records have an event time that could not be corrected."""
    begins: list[int] = field(default_factory=list)
    """The first offset of each partition that is kept."""
    compaction: Compaction = field(default_factory=Compaction)

    def top(self, partition: int) -> int | None:
        """The largest event time of a partition."""
        return time_json(self.partitions.members[str(partition)].top)

    def watermark(self, by: By, delay: int | None, scope: str) -> int | None:
        """The time before which nothing is expected any more, for readers of a scope."""
        marks = [self.until.get(each, NONE) for each in ("", scope)]
        match by:
            case "stream":
                top = max((reached.top for reached in self.partitions.members.values()), default=NONE)
                level = Reached(top=top).level(delay)
            case "partition":
                level = self.partitions.level(delay, scope)
            case "producer":
                level = self.producers.level(delay, scope)
        return time_json(max(level, *marks))

    def add(self, block: Block, producer: str | None, at: int) -> None:
        self.ends[block.partition] = block.end
        self.heard[block.partition] = at
        self.uncorrected += block.uncorrected
        self.partitions.bring(str(block.partition), time_of(block.top))
        if producer in self.producers.members:
            self.producers.bring(producer, NONE if block.times is None else block.times[1])
            self.producers_heard[producer] = at

    def mark(self, said: Punctuation, at: int) -> None:
        if said.producer is not None:
            self._mark_producer(said, said.producer, at)
        elif said.says == "idle" and said.partition is not None:
            self.partitions.rest(str(said.partition), said.scope)
        elif said.until is not None:
            self.until[said.scope] = max(said.until, self.until.get(said.scope, said.until))

    def _mark_producer(self, said: Punctuation, producer: str, at: int) -> None:
        match said.says:
            case "idle":
                self.producers.rest(producer, said.scope)
                return
            case "joins":
                self.producers.join(producer, time_of(said.until))
            case "leaves":
                self.producers.leave(producer)
            case _:
                self.producers.announce(producer, time_of(said.until))
        if producer in self.producers.members:
            self.producers_heard[producer] = at
        else:
            self.producers_heard.pop(producer, None)


def begun(ends: list[int], at: int) -> Standing:
    """Of a topic that has just been made."""
    pace = Pace({str(partition): Reached() for partition in range(len(ends))})
    return Standing(ends, [at] * len(ends), pace, begins=[0] * len(ends))


def standing_json(found: Standing) -> dict[str, Any]:
    producers = {
        name: [*reached_json(reached), found.producers_heard[name]] for name, reached in found.producers.members.items()
    }
    return {
        "ends": found.ends,
        "tops": [found.top(partition) for partition in range(len(found.ends))],
        "heard": found.heard,
        "until": found.until,
        "partition_pace": pace_json(found.partitions),
        "producers": producers,
        "producer_pace": pace_json(found.producers),
        "uncorrected": found.uncorrected,
        **({"begins": found.begins} if any(found.begins) else {}),
        **({"compaction": compaction_json(found.compaction)} if found.compaction != Compaction() else {}),
    }


def compaction_json(found: Compaction) -> dict[str, Any]:
    return {"below": found.below, "deletions": found.deletions, "done": found.done and list(found.done)}


def compaction_of(found: dict[str, Any]) -> Compaction:
    done = found["done"]
    return Compaction(found["below"], found["deletions"], (done[0], done[1]) if done else None)


def standing_of(found: dict[str, Any]) -> Standing:
    tops = {str(partition): Reached(top=time_of(top)) for partition, top in enumerate(found["tops"])}
    producers = {name: reached_of(each) for name, each in found["producers"].items()}
    return Standing(
        list(found["ends"]),
        list(found["heard"]),
        pace_of(tops, found["partition_pace"]),
        pace_of(producers, found["producer_pace"]),
        {name: each[2] for name, each in found["producers"].items()},
        dict(found["until"]),
        found["uncorrected"],
        list(found.get("begins", [0] * len(found["ends"]))),
        compaction_of(found["compaction"]) if "compaction" in found else Compaction(),
    )
