"""The mark: how far the journal is committed, which is how far readers may read.

Written after each sync and before the append is acknowledged, never synced itself: after a power failure it may lag
behind the journal, never lead.
"""

import os
import struct
from dataclasses import dataclass
from pathlib import Path
from zlib import crc32

LAYOUT = struct.Struct("<8sQQQ")
SIZE = LAYOUT.size + 8
MAGIC = b"PSTKMARK"
TRIES = 1000


@dataclass(frozen=True)
class Mark:
    stretch: int
    end: int
    next_frame: int

    def encode(self) -> bytes:
        data = LAYOUT.pack(MAGIC, self.stretch, self.end, self.next_frame)
        return data + struct.pack("<II", crc32(data), 0)


def decode(data: bytes) -> Mark | None:
    if (
        len(data) != SIZE
        or data[:8] != MAGIC
        or struct.unpack_from("<I", data, LAYOUT.size)[0] != crc32(data[: LAYOUT.size])
    ):
        return None
    return Mark(*LAYOUT.unpack_from(data)[1:])


def read_mark(path: Path) -> Mark | None:
    """The mark, or None if there is none to trust. One that is being written is read again."""
    try:
        file = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except FileNotFoundError:
        return None
    try:
        for _ in range(TRIES):
            if mark := decode(os.pread(file, SIZE, 0)):
                return mark
        return None
    finally:
        os.close(file)
