"""The mark: how far the journal is committed, which is how far readers may read.

Written after each sync and before the append is acknowledged, never synced itself: after a power failure it may lag
behind the journal, never lead. `cut` is another number whenever recovery has cut off bytes or replaced a stretch:
whoever sees it change forgets what it has read.
"""

import os
import struct
from dataclasses import dataclass
from pathlib import Path
from zlib import crc32

LAYOUT = struct.Struct("<8sQQQI")
SIZE = LAYOUT.size + 4
MAGIC = b"PSTKMARK"
TRIES = 1000


@dataclass(frozen=True)
class Mark:
    stretch: int
    end: int
    next_frame: int
    cut: int

    def encode(self) -> bytes:
        data = LAYOUT.pack(MAGIC, self.stretch, self.end, self.next_frame, self.cut)
        return data + struct.pack("<I", crc32(data))


def decode(data: bytes) -> Mark | None:
    if (
        len(data) != SIZE
        or data[:8] != MAGIC
        or struct.unpack_from("<I", data, LAYOUT.size)[0] != crc32(data[: LAYOUT.size])
    ):
        return None
    return Mark(*LAYOUT.unpack_from(data)[1:])


def new_cut(old: int | None = None) -> int:
    """A number that no open handle has seen."""
    while (cut := int.from_bytes(os.urandom(4))) == old:
        pass
    return cut


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
