"""The journal of a log on Kafka: a topic of one partition, whose messages are frames without records.

The n-th committed message is frame n. What only the order tells (the number, the append time, running maxima, places
in the frame) is not written: whoever reads the journal from its first message on fills it in, and finds what everybody
finds.
"""

import json
from collections.abc import Sequence
from dataclasses import replace

from penstock.log.catalog import Catalog
from penstock.log.frame import Block, Header, header_json, parse_header
from penstock.log.kafka.messages import JSON, Outgoing
from penstock.log.records import Span
from penstock.log.topic import Topic

CONFIG = {
    "cleanup.policy": "delete",
    "retention.ms": "-1",
    "retention.bytes": "-1",
    "message.timestamp.type": "LogAppendTime",
    "max.message.bytes": str(8 << 20),
}
LATER = ("frame", "group", "at")
"""What the reader fills in."""


def journal_name(prefix: str) -> str:
    return f"{prefix}_penstock.journal"


def journal_message(prefix: str, said: Header) -> Outgoing:
    """What has to be written for a frame to be there; its number and times are nobody's yet."""
    found = {name: value for name, value in header_json(said).items() if name not in LATER}
    return Outgoing(journal_name(prefix), 0, None, JSON.encode(found).encode(), [])


def said_in(value: bytes) -> Header:
    """What a message of the journal says."""
    return parse_header(json.dumps(dict.fromkeys(LATER, 0) | json.loads(value)).encode())


def unplaced(span: Span, topic: Topic, times: tuple[int, int] | None = None, end: int | None = None) -> Block:
    """A block of records that lie in Kafka, not yet in a frame."""
    return Block(
        topic=span.topic,
        partition=span.partition,
        schema=len(topic.schemas) - 1,
        base=span.base,
        count=span.count,
        index=0,
        bytes=0,
        crc=0,
        times=times,
        until=span.base + span.count if end is None else end,
    )


def placed(said: Header, catalog: Catalog, written: int) -> Header:
    """The frame that comes next, said to a journal at this time; append times never go back."""
    number, at = catalog.next_frame, max(catalog.appended_at, written)
    return replace(said, frame=number, group=number, at=at, blocks=tuple(_placed(said.blocks, catalog)))


def _placed(blocks: Sequence[Block], catalog: Catalog) -> list[Block]:
    found, index = [], 0
    tops: dict[tuple[str, int], int | None] = {}
    for block in blocks:
        where = (block.topic, block.partition)
        standing = catalog.standings.get(block.topic)
        before = tops.get(where, standing.top(block.partition) if standing else None)
        times = [each for each in (before, block.times and block.times[1]) if each is not None]
        tops[where] = max(times, default=None)
        found.append(replace(block, index=index, top=tops[where]))
        index += block.end - block.base
    return found
