"""A frame: one transaction of the journal, as bytes and back.

`encode` and `decode` are exact inverses and touch no files. A frame's header stands at both of its ends, each under a
checksum, so that one damaged byte never hides what a frame held. Bodies are checked block by block, by whoever reads
them. The layout is in docs/formats/log.md.
"""

import json
import struct
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal
from zlib import crc32

FRONT = struct.Struct("<4sIQII")
BACK = struct.Struct("<IIQI4s")
FRONT_MAGIC = b"PENF"
BACK_MAGIC = b"FNEP"
ENDS = FRONT.size + BACK.size
INDEX_BITS = 24
"""A place is `frame << INDEX_BITS | index`."""
Says = Literal["", "joins", "leaves", "idle"]


@dataclass(frozen=True)
class Block:
    """The records of one topic and partition in a frame, and where their columns lie."""

    topic: str
    partition: int
    schema: int
    base: int
    count: int
    index: int
    bytes: int
    crc: int
    start: int = 0
    file: str | None = None
    extras: tuple[str, ...] = ()
    times: tuple[int, int] | None = None
    top: int | None = None
    uncorrected: int = 0
    until: int | None = None
    """Of records that lie in Kafka: the offset after the last; offsets there have gaps."""

    @property
    def end(self) -> int:
        return self.base + self.count if self.until is None else self.until


@dataclass(frozen=True)
class Punctuation:
    """Nothing before `until` any more on `topic`; for everybody, or for the readers of one scope.

    With a `producer`, nothing of that producer; or what it says is that it joins (with `until` from there on) or
    leaves. Says "idle": the partition, or the producer, does not count until it brings something again.
    """

    topic: str
    until: int | None = None
    scope: str = ""
    says: Says = ""
    partition: int | None = None
    producer: str | None = None


@dataclass(frozen=True)
class Header:
    frame: int
    group: int
    at: int
    blocks: tuple[Block, ...] = ()
    producer: str | None = None
    sequence: int | None = None
    note: Mapping[str, Any] = field(default_factory=dict)
    punctuation: tuple[Punctuation, ...] = ()
    control: tuple[Mapping[str, Any], ...] = ()

    def blocks_of(self, topic: str) -> list[Block]:
        return [block for block in self.blocks if block.topic == topic]


@dataclass(frozen=True)
class Found:
    """A header read from a file: what it says, where its frame begins, and the lengths that lead on from there."""

    header: Header
    start: int
    header_bytes: int
    body_bytes: int

    @property
    def body(self) -> int:
        return self.start + FRONT.size + self.header_bytes

    @property
    def end(self) -> int:
        return self.start + ENDS + 2 * self.header_bytes + self.body_bytes


def padding(length: int) -> int:
    return -length % 8


def padded_json(value: Any) -> bytes:
    text = json.dumps(value, separators=(",", ":"), ensure_ascii=False).encode()
    return text + b" " * padding(len(text))


def encode(header: Header, body: Sequence[bytes]) -> list[bytes]:
    """The frame's bytes, in pieces that can be written one after the other; `body` is padded already."""
    text = padded_json(header_json(header))
    length = sum(map(len, body))
    front = FRONT.pack(FRONT_MAGIC, len(text), length, 0, 0)[:16]
    crc = crc32(text, crc32(front))
    ends = front + struct.pack("<II", crc, 0), BACK.pack(0, crc, length, len(text), BACK_MAGIC)
    return [ends[0], text, *body, text, ends[1]]


def decode_front(data: bytes | memoryview, start: int, base: int = 0) -> Found | None:
    """The frame that begins at `start` of `data` (which begins at byte `base` of its file), or None if its header is
    not whole.
    """
    at = start - base
    if at < 0 or at + FRONT.size > len(data):
        return None
    magic, length, body, crc, _ = FRONT.unpack_from(data, at)
    text = bytes(data[at + FRONT.size : at + FRONT.size + length])
    if magic != FRONT_MAGIC or len(text) != length or crc32(text, crc32(data[at : at + 16])) != crc:
        return None
    return Found(parse_header(text), start, length, body)


def decode_back(data: bytes | memoryview, end: int, base: int = 0) -> Found | None:
    """The frame that ends at `end`, read from its second header, or None if that is not whole."""
    at = end - base - BACK.size
    if at < 0 or at + BACK.size > len(data):
        return None
    _, crc, body, length, magic = BACK.unpack_from(data, at)
    text = bytes(data[at - length : at]) if length <= at else b""
    front = struct.pack("<4sIQ", FRONT_MAGIC, length, body)
    if magic != BACK_MAGIC or not text or crc32(text, crc32(front)) != crc:
        return None
    return Found(parse_header(text), end - ENDS - 2 * length - body, length, body)


def header_json(header: Header) -> dict[str, Any]:
    found: dict[str, Any] = {"frame": header.frame, "group": header.group, "at": header.at}
    if header.producer is not None:
        found |= {"producer": header.producer, "sequence": header.sequence}
    if header.note:
        found["note"] = dict(header.note)
    if header.blocks:
        found["blocks"] = [_block_json(block) for block in header.blocks]
    if header.punctuation:
        found["punctuation"] = [_punctuation_json(each) for each in header.punctuation]
    if header.control:
        found["control"] = [dict(each) for each in header.control]
    return found


def parse_header(text: bytes) -> Header:
    found = json.loads(text)
    return Header(
        frame=found["frame"],
        group=found["group"],
        at=found["at"],
        blocks=tuple(_block(each) for each in found.get("blocks", ())),
        producer=found.get("producer"),
        sequence=found.get("sequence"),
        note=found.get("note", {}),
        punctuation=tuple(Punctuation(**each) for each in found.get("punctuation", ())),
        control=tuple(found.get("control", ())),
    )


def _punctuation_json(said: Punctuation) -> dict[str, Any]:
    found: dict[str, Any] = {"topic": said.topic, "scope": said.scope}
    found |= {} if said.until is None else {"until": said.until}
    found |= {"says": said.says} if said.says else {}
    found |= {} if said.partition is None else {"partition": said.partition}
    return found | ({} if said.producer is None else {"producer": said.producer})


def _block_json(block: Block) -> dict[str, Any]:
    found: dict[str, Any] = {
        "topic": block.topic,
        "partition": block.partition,
        "schema": block.schema,
        "base": block.base,
        "count": block.count,
        "index": block.index,
        "bytes": block.bytes,
        "crc": block.crc,
    }
    if block.until is not None:
        found |= {"kafka": True, "end": block.until}
    else:
        found |= {"start": block.start} if block.file is None else {"file": block.file}
    if block.extras:
        found["extras"] = list(block.extras)
    if block.times:
        found["times"] = list(block.times)
    if block.top is not None:
        found["top"] = block.top
    if block.uncorrected:
        found["uncorrected"] = block.uncorrected
    return found


def _block(found: dict[str, Any]) -> Block:
    times = found.get("times")
    return Block(
        topic=found["topic"],
        partition=found["partition"],
        schema=found["schema"],
        base=found["base"],
        count=found["count"],
        index=found["index"],
        bytes=found["bytes"],
        crc=found["crc"],
        start=found.get("start", 0),
        file=found.get("file"),
        extras=tuple(found.get("extras", ())),
        times=(times[0], times[1]) if times else None,
        top=found.get("top"),
        uncorrected=found.get("uncorrected", 0),
        until=found["end"] if found.get("kafka") else None,
    )
