"""A stretch: one file of frames, behind a prelude that says what came before.

Reading needs no lock: bytes below the committed mark never change. `scan` passes over damage: what a frame held is
read from its second header where the first is damaged, and where neither can be read, the bytes up to the next whole
frame are a `Gap`.
"""

import json
import os
import struct
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any
from zlib import crc32

from penstock.log.frame import (
    BACK,
    BACK_MAGIC,
    ENDS,
    FRONT,
    FRONT_MAGIC,
    Block,
    Found,
    Header,
    decode_back,
    decode_front,
    padded_json,
)

MAGIC = b"PENSTOCK"
FORMAT = 2
PRELUDE = struct.Struct("<8sIIII")
LOOK = 4096
SEARCH = 1 << 20


@dataclass(frozen=True)
class Gap:
    """Bytes that are no frame: no header in them can be read, or, in `torn`, the first one of a frame cut short."""

    start: int
    end: int
    torn: Header | None = None


def encode_prelude(found: dict[str, Any]) -> bytes:
    text = padded_json(found)
    front = PRELUDE.pack(MAGIC, FORMAT, len(text), 0, 0)[:16]
    return front + struct.pack("<II", crc32(text, crc32(front)), 0) + text


def read_prelude(file: int) -> tuple[dict[str, Any], int] | None:
    """The prelude's JSON and the byte where frames begin, or None if it is damaged."""
    front = os.pread(file, PRELUDE.size, 0)
    if len(front) < PRELUDE.size:
        return None
    magic, version, length, crc, _ = PRELUDE.unpack(front)
    if magic != MAGIC or version != FORMAT or length > os.fstat(file).st_size:
        return None
    text = os.pread(file, length, PRELUDE.size)
    if len(text) != length or crc32(text, crc32(front[:16])) != crc:
        return None
    return json.loads(text), PRELUDE.size + length


def read_front(file: int, start: int, end: int) -> Found | None:
    """The frame that begins at `start`, if its first header is whole and it ends at or before `end`."""
    found = _first_header(file, start, end)
    return found if found and found.end <= end else None


def _first_header(file: int, start: int, end: int) -> Found | None:
    data = os.pread(file, min(LOOK, end - start), start)
    if len(data) < FRONT.size:
        return None
    needed = FRONT.size + FRONT.unpack_from(data)[1]
    if needed > len(data):
        if needed > end - start or data[:4] != FRONT_MAGIC:
            return None
        data = os.pread(file, needed, start)
    return decode_front(data, start, start)


def read_back(file: int, start: int, end: int) -> Found | None:
    """The frame that ends at `end`, from its second header, if it begins at or after `start`."""
    base = max(start, end - LOOK)
    data = os.pread(file, end - base, base)
    needed = BACK.size + (BACK.unpack_from(data, len(data) - BACK.size)[3] if len(data) >= BACK.size else 0)
    if len(data) < needed <= end - start:
        base = end - needed
        data = os.pread(file, needed, base)
    found = decode_back(data, end, base)
    return found if found and found.start >= start else None


def scan(file: int, start: int, end: int, *, after: int = -1) -> Iterator[Found | Gap]:
    """The frames from `start` to `end`, in order, with the gaps between them; their numbers lie above `after`.

    Records may hold anything, whole frames too (a copy of a log, say). So nothing is looked for inside a frame whose
    bounds are known from either of its headers; elsewhere a frame with an old number is no frame of this log.
    """
    while start < end:
        found = _first_header(file, start, end)
        if found and found.end > end:
            yield Gap(start, end, found.header)
            return
        found = found or _by_second_header(file, start, end)
        if found:
            yield found
            start, after = found.end, found.header.frame
        else:
            following = next_front(file, start + 8, end, after=after)
            yield from _damaged(file, start, following)
            start = following


def _by_second_header(file: int, start: int, end: int) -> Found | None:
    """The frame that begins at `start`, its first header being damaged: it ends where a second one leads back here."""
    for at in _occurrences(file, BACK_MAGIC, start + ENDS - 4, end):
        found = read_back(file, start, at + 4)
        if found and found.start == start:
            return found
    return None


def _damaged(file: int, start: int, end: int) -> Iterator[Found | Gap]:
    """What can be told of the bytes from `start` to `end`: frames from their second headers, and the gap before."""
    found = read_back(file, start, end)
    if found is None:
        yield Gap(start, end)
        return
    if found.start > start:
        yield from _damaged(file, start, found.start)
    yield found


def next_front(file: int, start: int, end: int, *, after: int = -1) -> int:
    """The first byte from `start` on where a frame whole at both ends begins, its number above `after`, or `end`."""
    for at in _occurrences(file, FRONT_MAGIC, start + -start % 8, end):
        found = read_front(file, at, end)
        if found and found.header.frame > after and read_back(file, at, found.end):
            return at
    return end


def _occurrences(file: int, magic: bytes, start: int, end: int) -> Iterator[int]:
    """Where `magic` stands in the file, a multiple of 8 after `start`, all of it before `end`."""
    for base in range(start, end, SEARCH):
        data = os.pread(file, min(SEARCH + len(magic) - 1, end - base), base)
        at = data.find(magic)
        while at >= 0:
            if at % 8 == 0:
                yield base + at
            at = data.find(magic, at + 1)


def read_exactly(file: int, length: int, at: int) -> bytes:
    """The bytes from `at` on, fewer only where the file ends. The system reads at most 2 GB at once."""
    pieces: list[bytes] = []
    while length > 0 and (data := os.pread(file, length, at)):
        pieces.append(data)
        length, at = length - len(data), at + len(data)
    return pieces[0] if len(pieces) == 1 else b"".join(pieces)


def read_block(file: int, found: Found, block: Block) -> bytes | None:
    """The bytes of a block in the frame's body, or None if they are not what was written."""
    data = read_exactly(file, block.bytes, found.body + block.start)
    return data if len(data) == block.bytes and crc32(data) == block.crc else None


def is_whole(file: int, found: Found) -> bool:
    """Whether both headers and every block in the body are what was written."""
    if not read_back(file, found.start, found.end) or os.fstat(file).st_size < found.end:
        return False
    if not read_front(file, found.start, found.end):
        return False
    return all(block.file is not None or read_block(file, found, block) is not None for block in found.header.blocks)
