"""Bytes in Avro's encoding, read from front to back, and what may be wrong with them."""

from collections.abc import Iterator


class NotAvro(Exception):
    """The bytes are not what the schema says."""


class Misfit(Exception):
    """A value does not fit its column: the type that it should have, and where it lies inside the field."""

    def __init__(self, wanted: str, path: str = "") -> None:
        super().__init__(f"it is not {'an' if wanted[0] in 'AEIOU' else 'a'} {wanted}")
        self.wanted, self.path = wanted, path

    def under(self, path: str) -> "Misfit":
        return Misfit(self.wanted, path + self.path)


BROKEN = "its value is not Avro of its schema"


class Encoded:
    """Bytes in Avro's encoding, read from front to back."""

    def __init__(self, data: bytes, at: int = 0) -> None:
        self.data, self.at = data, at

    @property
    def is_done(self) -> bool:
        return self.at == len(self.data)

    def take(self, count: int) -> bytes:
        if count < 0 or count > len(self.data) - self.at:
            raise NotAvro(BROKEN)
        self.at += count
        return self.data[self.at - count : self.at]

    def long(self) -> int:
        value = shift = 0
        while True:
            byte = self.take(1)[0]
            value |= (byte & 127) << shift
            if byte < 128:
                break
            shift += 7
            if shift > 63:
                raise NotAvro(BROKEN)
        value &= (1 << 64) - 1
        return (value >> 1) ^ -(value & 1)

    def boolean(self) -> bool:
        found = self.take(1)[0]
        if found > 1:
            raise NotAvro(BROKEN)
        return found == 1

    def counts(self) -> Iterator[int]:
        """The numbers of elements of the blocks of an array or a map. An element has at least one byte."""
        while count := self.long():
            if count < 0:
                self.long()
            if abs(count) > len(self.data) - self.at:
                raise NotAvro(BROKEN)
            yield abs(count)


def long_bytes(value: int) -> bytes:
    rest = (value << 1) ^ (value >> 63)
    rest &= (1 << 64) - 1
    found = bytearray()
    while rest > 127:
        found.append(rest & 127 | 128)
        rest >>= 7
    found.append(rest)
    return bytes(found)
