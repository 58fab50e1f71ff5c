"""Lines: the text of a file or a pipe, line by line, that knows where it is.

Keeps the number of the line, the bytes passed and a running checksum. `idle` says whether the next line would
have to be waited for: whoever collects lines can then hand on what it has.
"""

import select
from collections import deque
from typing import BinaryIO, Self
from zlib import crc32

from penstock.errors import CommandError

CHUNK = 1 << 16


class Lines:
    def __init__(self, file: BinaryIO, name: str) -> None:
        self.name = name
        self.number = 0
        self.bytes = 0
        self.crc = 0
        self._file = file
        self._whole: deque[bytes] = deque()
        self._rest = b""

    def __iter__(self) -> Self:
        return self

    def __next__(self) -> str:
        while not self._whole:
            if not self._read_on():
                raise StopIteration
        line = self._whole.popleft()
        self.number += 1
        self.bytes += len(line)
        self.crc = crc32(line, self.crc)
        return self._decoded(line)

    @property
    def spot(self) -> str:
        """Where we are, for an error's text."""
        return f"{self.name}, line {self.number}"

    def idle(self) -> bool:
        """Whether nothing more can be read at once."""
        if self._whole:
            return False
        try:
            return not select.select([self._file], [], [], 0)[0]
        except (OSError, ValueError):  # not something that the system can wait for
            return False

    def _read_on(self) -> bool:
        """Takes in what is there, waiting for it if need be; false at the end."""
        data: bytes = self._file.read1(CHUNK)  # type: ignore[attr-defined]
        if not data:
            self._whole.extend([self._rest] if self._rest else ())
            self._rest = b""
            return bool(self._whole)
        *whole, self._rest = (self._rest + data).split(b"\n")
        self._whole.extend(line + b"\n" for line in whole)
        return True

    def _decoded(self, line: bytes) -> str:
        try:
            return line.decode("utf-8-sig" if self.number == 1 else "utf-8")
        except UnicodeDecodeError as error:
            raise CommandError(
                f"{self.name} is not UTF-8 text",
                detail=f"Line {self.number}, byte {error.start + 1}: {error.reason}.",
                hint="Convert it, for instance with iconv; Arrow files are read with --format arrow.",
            ) from None
