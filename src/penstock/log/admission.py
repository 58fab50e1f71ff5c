"""Admission: what is decided of an append only under the writers' lock.

Whether its conditions hold and its topics are still as they were, and which offsets its records get.
"""

from collections.abc import Iterator, Sequence
from datetime import timedelta

from penstock.errors import ConditionFailed, LogError
from penstock.log.catalog import Catalog
from penstock.log.draft import Part, plausible_times
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
                raise ConditionFailed(
                    f'partition {partition} of "{topic}" does not end at {offset}',
                    detail=f"It ends at {found}: somebody appended meanwhile.",
                    hint="Read what is new, then try again.",
                )
        case Epoch(name, value):
            found = catalog.epochs.get(name, 0)
            if found != value:
                raise ConditionFailed(
                    f'epoch {value} of "{name}" is over',
                    detail=f"The epoch is {found}.",
                    hint="A newer owner has taken over: stop.",
                )
