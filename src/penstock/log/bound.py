"""A bound: how far the slowest reader of a topic may be behind, and what becomes of appends beyond it.

Readers are the groups and queues that the log remembers; a topic that none of them reads is not bounded.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, Literal

from penstock.errors import LogError

Policy = Literal["block", "drop", "fail"]
POLICIES = ("block", "drop", "fail")
DEAD_LETTERS = ".dead-letters"


@dataclass(frozen=True)
class Bound:
    """At most so many unread `records`. Beyond that an append waits up to `timeout` for room (`block`), leaves its
    records of the topic out and counts them (`drop`), or is refused (`fail`).
    """

    records: int
    policy: Policy = "block"
    timeout: timedelta = timedelta(seconds=30)

    def __post_init__(self) -> None:
        if self.records < 1:
            raise LogError(f"a topic cannot be bounded to {self.records} unread records", hint="Choose 1 or more.")
        if self.policy not in POLICIES:
            raise LogError(f'"{self.policy}" is no policy', hint=f"Choose {', '.join(POLICIES)}.")
        if self.timeout < timedelta(0):
            raise LogError(f"nobody can wait for {self.timeout}", hint="Choose 0 seconds or more.")


@dataclass(frozen=True)
class Room:
    """A topic may come to hold at most so many records, because a reader has read no further; None: any number."""

    topic: str
    most: int | None
    bound: Bound
    reader: str = ""


class RoomUnknown(Exception):
    """An append to topics that are bounded does not know how much room they have."""

    def __init__(self, bounds: Mapping[str, Bound]) -> None:
        super().__init__(", ".join(bounds))
        self.bounds = bounds


def check_can_be_bounded(topic: str) -> None:
    if topic.endswith(DEAD_LETTERS):
        raise LogError(f'topic "{topic}" cannot be bounded', detail="Dead letters are neither held up nor dropped.")


def bound_json(topic: str, bound: Bound | None) -> Mapping[str, Any]:
    """As a frame says it."""
    if bound is None:
        return {"bound": {"topic": topic, "records": None}}
    return {"bound": {"topic": topic} | limits_json(bound)}


def limits_json(bound: Bound) -> dict[str, Any]:
    return {
        "records": bound.records,
        "policy": bound.policy,
        "timeout": bound.timeout // timedelta(microseconds=1),
    }


def bound_of(found: Mapping[str, Any]) -> Bound:
    return Bound(found["records"], found["policy"], timedelta(microseconds=found["timeout"]))


def dropped_json(topic: str, records: int) -> Mapping[str, Any]:
    return {"dropped": {"topic": topic, "records": records}}


def dropped_in(control: Sequence[Mapping[str, Any]]) -> int:
    return sum(int(each["dropped"]["records"]) for each in control if "dropped" in each)
