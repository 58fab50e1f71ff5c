"""Expiry: the oldest records of a topic go, as its retention says, in whole files of sealed stretches.

What goes is written into the log first: which offset of each partition is the first one kept. Only then are files
removed, so whoever finds one gone is told why. What frames say of themselves stays. Killed anywhere, it leaves files
that nobody reads, and the next run removes them. A stretch that cannot be sealed, because it is damaged, keeps its
records and all after it.
"""

from bisect import bisect_left
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import takewhile
from typing import Any

from penstock.log.catalog import Catalog
from penstock.log.journal import Journal, Stretch
from penstock.log.retention import MICROSECOND
from penstock.log.topic import Topic

SHARE = 4
"""A stretch is closed early where it holds more than one of so many parts of what a topic may have."""
Needs = Callable[[str], Mapping[int, int]]
"""A reader's lowest offset that it still needs, by partition of a topic; partitions that it does not read are left
out.
"""


@dataclass(frozen=True)
class Expired:
    """What goes of a topic: the offsets before `begins`, in files of these stretches."""

    topic: str
    begins: tuple[int, ...]
    records: int
    bytes: int
    stretches: tuple[int, ...]


@dataclass
class _Choice:
    """How far records of a topic may go; a partition that is `held` goes no further."""

    begins: list[int]
    held: set[int] = field(default_factory=set)
    stretches: list[int] = field(default_factory=list)
    bytes: int = 0


def is_kept(catalog: Catalog, found: Mapping[str, Any]) -> bool:
    """Whether a sealed file, by its entry in the list, holds anything that is kept."""
    begins = catalog.begins(found["topic"])
    return bool(found["base"] + found["count"] > (begins[found["partition"]] if begins else 0))


def expired(journal: Journal, catalog: Catalog, topic: Topic, now: int, needs: Sequence[Needs]) -> Expired:
    """What of a topic is to go now."""
    before = catalog.begins(topic.name)
    choice = _Choice(list(before))
    lowest = needed(needs, topic.name) if topic.retention.unread else {}
    left = _size(journal, catalog, topic.name) if topic.retention.bytes is not None else 0
    for stretch in _sealed_stretches(journal, topic.name, before):
        files = [found for found in stretch.files if found["topic"] == topic.name and is_kept(catalog, found)]
        for found in files:
            partition, end = found["partition"], found["base"] + found["count"]
            size = _bytes(found)
            goes = _is_old(stretch, found, topic, now) or _is_too_much(topic, left - size)
            if partition in choice.held or not goes or end > lowest.get(partition, end):
                choice.held.add(partition)
                continue
            choice.begins[partition] = end
            choice.bytes, left = choice.bytes + size, left - size
            choice.stretches += [stretch.first] if stretch.first not in choice.stretches[-1:] else []
        if len(choice.held) == topic.partitions:
            break
    records = sum(choice.begins) - sum(before)
    return Expired(topic.name, tuple(choice.begins), records, choice.bytes, tuple(choice.stretches))


def is_ripe(journal: Journal, catalog: Catalog, topic: Topic, now: int) -> bool:
    """Whether the open stretch holds records that are to go: it has to be closed for that."""
    retention = topic.retention
    frames = journal.stretch(journal.mark().stretch).frames
    blocks = [(found.header.at, block.bytes) for found in frames for block in found.header.blocks_of(topic.name)]
    if not blocks:
        return False
    old = retention.age is not None and blocks[0][0] < now - retention.age // MICROSECOND
    size = sum(each for _, each in blocks)
    most = retention.bytes
    return old or (most is not None and size * SHARE > most and _size(journal, catalog, topic.name) > most)


def needed(needs: Sequence[Needs], topic: str) -> dict[int, int]:
    """The lowest offset of each partition that any reader needs."""
    lowest: dict[int, int] = {}
    for each in needs:
        for partition, offset in each(topic).items():
            lowest[partition] = min(offset, lowest.get(partition, offset))
    return lowest


def _sealed_stretches(journal: Journal, topic: str, begins: Sequence[int]) -> Iterator[Stretch]:
    """The sealed stretches from the first on that may hold records of the topic, up to one that is not sealed."""

    def has_come_further(first: int) -> bool:
        ends = journal.catalog_before(first).ends(topic)
        return any(end > begin for end, begin in zip(ends, begins, strict=False))

    firsts, sealed = journal.firsts(), set(journal.sealed())
    following = bisect_left(firsts, True, key=has_come_further)
    yield from map(journal.stretch, takewhile(sealed.__contains__, firsts[max(0, following - 1) :]))


def _size(journal: Journal, catalog: Catalog, topic: str) -> int:
    """The bytes of a topic's records, sealed or not."""
    total = 0
    for first in journal.firsts():
        stretch = journal.stretch(first)
        if stretch.sealed:
            kept = [found for found in stretch.files if found["topic"] == topic and is_kept(catalog, found)]
            total += sum(map(_bytes, kept))
        else:
            blocks = [block for found in stretch.frames for block in found.header.blocks]
            total += sum(block.bytes for block in blocks if block.topic == topic)
    return total


def _bytes(found: Mapping[str, Any]) -> int:
    return sum(int(batch["bytes"]) for batch in found["batches"])


def _is_old(stretch: Stretch, found: Mapping[str, Any], topic: Topic, now: int) -> bool:
    age = topic.retention.age
    if age is None:
        return False
    members = stretch.members[topic.name, found["partition"]]
    return bool(members[-1].found.header.at < now - age // MICROSECOND)


def _is_too_much(topic: Topic, without: int) -> bool:
    """Whether the topic has enough without a file."""
    return topic.retention.bytes is not None and without >= topic.retention.bytes
