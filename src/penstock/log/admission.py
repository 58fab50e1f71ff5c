"""Admission: what is decided of an append only under the writers' lock.

Whether its conditions hold, its topics are still as they were and have room, and which offsets its records get.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import timedelta
from typing import Any

from penstock.errors import ConditionFailed, LogError, TopicFull
from penstock.log.bound import Room, RoomUnknown, dropped_json
from penstock.log.catalog import Catalog
from penstock.log.draft import Draft, Part, plausible_times
from penstock.log.frame import Block
from penstock.log.records import Condition, EndOffset, Epoch
from penstock.log.topic import check_partition


def blocks_of(parts: Sequence[Part], catalog: Catalog, at: int) -> Iterator[Block]:
    """The blocks of a frame that is appended at `at`."""
    index = start = 0
    ends: dict[tuple[str, int], int] = {}
    tops: dict[tuple[str, int], int] = {}
    for part in parts:
        check_part(part, catalog)
        standing = catalog.standings[part.topic]
        key = (part.topic, part.partition)
        base = ends.get(key, standing.ends[part.partition])
        top = tops.get(key, standing.top(part.partition))
        times = plausible_times(part, at + catalog.topic(part.topic).plausible // timedelta(microseconds=1))
        if times:
            top = tops[key] = max(times[1], top if top is not None else times[1])
        yield Block(
            topic=part.topic,
            partition=part.partition,
            schema=part.schema,
            base=base,
            count=part.count,
            index=index,
            bytes=part.bytes,
            crc=part.crc,
            start=start,
            file=part.file,
            extras=part.extras,
            times=times,
            top=top,
            uncorrected=part.uncorrected,
        )
        ends[key] = base + part.count
        index += part.count
        start += len(part.data)


def admitted(draft: Draft, catalog: Catalog) -> tuple[Draft, Sequence[Mapping[str, Any]]]:
    """What of a draft there is room for, and what is to be said in the log about the rest."""
    if not catalog.bounds:
        return draft, ()
    bounds = {part.topic: catalog.bounds[part.topic] for part in draft.parts if part.topic in catalog.bounds}
    if bounds.keys() - {room.topic for room in draft.rooms}:
        raise RoomUnknown(bounds)
    dropped = []
    for room in draft.rooms:
        count = sum(part.count for part in draft.parts if part.topic == room.topic)
        if room.most is None or (excess := sum(catalog.ends(room.topic)) + count - room.most) <= 0:
            continue
        if room.bound.policy != "drop":
            raise _full(room, room.bound.records + excess - count, count)
        draft = replace(draft, parts=tuple(part for part in draft.parts if part.topic != room.topic))
        dropped.append(dropped_json(room.topic, count))
    return draft, dropped


def _full(room: Room, unread: int, count: int) -> TopicFull:
    return TopicFull(
        f'topic "{room.topic}" is full',
        topic=room.topic,
        detail=f"Its slowest reader, {room.reader}, has {unread:,} unread records, these are {count:,} more, and the "
        f"bound is {room.bound.records:,}. Nothing was written.",
        hint="Let it read on, append less at once, or change the bound: penstock log bound",
    )


def check_part(part: Part, catalog: Catalog) -> None:
    """Its topic may have been lost to recovery since the columns were made."""
    topic = catalog.topic(part.topic)
    check_partition(topic, part.partition)
    if part.schema >= len(topic.schemas):
        raise LogError(f'the columns of topic "{part.topic}" are others by now', hint="Append again.")


def check_condition(condition: Condition, catalog: Catalog) -> None:
    match condition:
        case EndOffset(topic, partition, offset):
            check_partition(catalog.topic(topic), partition)
            found = catalog.ends(topic)[partition]
            if found != offset:
                raise end_passed(condition, found)
        case Epoch(name, value):
            found = catalog.epochs.get(name, 0)
            if found != value:
                raise epoch_over(condition, found)


def end_passed(condition: EndOffset, found: int) -> ConditionFailed:
    return ConditionFailed(
        f'partition {condition.partition} of "{condition.topic}" does not end at {condition.offset}',
        detail=f"It ends at {found}: somebody appended meanwhile.",
        hint="Read what is new, then try again.",
    )


def epoch_over(condition: Epoch, found: int) -> ConditionFailed:
    return ConditionFailed(
        f'epoch {condition.value} of "{condition.name}" is over',
        detail=f"The epoch is {found}.",
        hint="A newer owner has taken over: stop.",
    )
