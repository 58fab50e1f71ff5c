"""Frames, preludes and marks are read back as they were written, and a flipped byte is never read as another value."""

from collections.abc import Iterator
from contextlib import contextmanager
from tempfile import TemporaryFile
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.log import Place
from penstock.log.frame import (
    ENDS,
    Block,
    Found,
    Header,
    Punctuation,
    decode_back,
    decode_front,
    encode,
    header_json,
    padded_json,
    padding,
    parse_header,
)
from penstock.log.mark import Mark, decode
from penstock.log.stretch import Gap, encode_prelude, is_whole, read_prelude, scan
from tests.effort import examples

counts = st.integers(0, 2**40)
times = st.integers(-(2**62), 2**62)
names = st.text(st.characters(exclude_categories=["Cs"]), max_size=8)
blocks = st.builds(
    Block,
    topic=names,
    partition=st.integers(0, 1023),
    schema=st.integers(0, 9),
    base=counts,
    count=counts,
    index=counts,
    bytes=counts,
    crc=st.integers(0, 2**32 - 1),
    start=counts,
    extras=st.sampled_from([(), ("_deleted",), ("_headers", "_replaces")]),
    times=st.none() | st.tuples(times, times),
    top=st.none() | times,
    uncorrected=st.integers(0, 9),
) | st.builds(
    Block,
    topic=names,
    partition=st.just(0),
    schema=st.just(0),
    base=counts,
    count=counts,
    index=counts,
    bytes=counts,
    crc=st.just(0),
    file=names,
)
headers = st.builds(
    Header,
    frame=counts,
    group=counts,
    at=times,
    blocks=st.lists(blocks, max_size=3).map(tuple),
    note=st.dictionaries(names, st.integers() | names, max_size=2),
    punctuation=st.lists(
        st.builds(
            Punctuation,
            topic=names,
            until=st.none() | times,
            scope=names,
            says=st.sampled_from(["", "joins", "leaves", "idle"]),
            partition=st.none() | st.integers(0, 1023),
            producer=st.none() | names,
        ),
        max_size=2,
    ).map(tuple),
    control=st.sampled_from([(), ({"epoch": {"name": "shop", "value": 3}},)]),
) | st.builds(Header, frame=counts, group=counts, at=times, producer=names, sequence=st.integers(-(2**62), 2**62))
bodies = st.binary(max_size=64).map(lambda data: data + b"\0" * padding(len(data)))
places = st.integers(0, 80).map(lambda eighths: eighths * 8)


@examples(40)
@given(headers)
def test_a_header_is_read_back_as_it_was_written(header: Header) -> None:
    assert parse_header(padded_json(header_json(header))) == header


@examples(40)
@given(headers, bodies, places)
def test_both_ends_of_a_frame_tell_the_same(header: Header, body: bytes, start: int) -> None:
    data = b"".join(encode(header, [body]))
    front, back = decode_front(data, start, start), decode_back(data, start + len(data), start)
    assert front == back
    assert front is not None and front.header == header
    assert front.end == start + len(data) and len(data) % 8 == 0
    assert data[front.body - start :][: len(body)] == body


@examples(40)
@given(headers, bodies, st.data())
def test_a_flipped_byte_leaves_one_end_whole_and_is_never_read_as_another_header(
    header: Header, body: bytes, data: st.DataObject
) -> None:
    frame = bytearray(b"".join(encode(header, [body])))
    frame[data.draw(st.integers(0, len(frame) - 1))] ^= data.draw(st.integers(1, 255))
    found = [decode_front(bytes(frame), 0), decode_back(bytes(frame), len(frame))]
    assert any(found)
    assert all(each is None or (each.header, each.start, each.end) == (header, 0, len(frame)) for each in found)


@examples(40)
@given(headers, bodies, st.data())
def test_a_frame_cut_short_has_no_whole_second_end(header: Header, body: bytes, data: st.DataObject) -> None:
    frame = b"".join(encode(header, [body]))
    cut = frame[: data.draw(st.integers(0, len(frame) - 1))]
    front = decode_front(cut, 0)
    assert decode_back(cut, len(cut)) is None
    assert front is None or front.end > len(cut)


@contextmanager
def in_file(data: bytes) -> Iterator[int]:
    with TemporaryFile() as file:
        file.write(data)
        file.flush()
        yield file.fileno()


def frame(number: int, body: bytes = b"") -> bytes:
    return b"".join(encode(Header(frame=number, group=number, at=0), [body]))


def scanned(data: bytes) -> list[Found | Gap]:
    with in_file(data) as file:
        return list(scan(file, 0, len(data)))


def numbers(data: bytes) -> list[int | tuple[int, int]]:
    """What a scan finds: numbers of frames, bounds of gaps."""
    return [(each.start, each.end) if isinstance(each, Gap) else each.header.frame for each in scanned(data)]


def prelude_in(data: bytes) -> tuple[dict[str, Any], int] | None:
    with in_file(data) as file:
        return read_prelude(file)


def test_a_scan_finds_every_frame_and_says_where_it_finds_none() -> None:
    one, two, three = frame(1), frame(2, b"x" * 8), frame(3)
    lost = bytes(len(two))
    assert numbers(one + lost + three) == [1, (len(one), len(one) + len(lost)), 3]


@pytest.mark.parametrize("ends", ["front", "back", "both", "tail"])
def test_a_frame_inside_a_record_is_never_taken_for_one_of_the_log(ends: str) -> None:
    outer = bytearray(frame(5, frame(3) + frame(4)))
    if ends in ("front", "both"):
        outer[5] ^= 1
    if ends in ("back", "both"):
        outer[-5] ^= 1
    data = frame(4) + bytes(outer) + frame(6)
    data = data[: -len(frame(6)) - 8] if ends == "tail" else data
    gap = (len(frame(4)), len(frame(4)) + len(outer))
    assert numbers(data) == {"both": [4, gap, 6], "tail": [4, (gap[0], len(data))]}.get(ends, [4, 5, 6])


def test_a_torn_frame_tells_what_it_would_have_held() -> None:
    data = frame(1) + frame(2, b"x" * 800)[:-8]
    *_, last = scanned(data)
    assert isinstance(last, Gap)
    assert last.torn == Header(frame=2, group=2, at=0)


def test_a_header_longer_than_one_look_is_found_from_both_ends() -> None:
    header = Header(frame=1, group=1, at=0, note={"long": "x" * 20_000})
    data = b"".join(encode(header, [b"y" * 16]))
    with in_file(data + frame(2)) as file:
        first, _ = scan(file, 0, len(data) + len(frame(2)))
        assert isinstance(first, Found) and first.header == header and is_whole(file, first)


@examples(40)
@given(st.dictionaries(names, names | st.integers(), max_size=5))
def test_a_prelude_is_read_back_as_it_was_written(found: dict[str, object]) -> None:
    data = encode_prelude(found)
    assert prelude_in(data + b"more") == (found, len(data))
    assert len(data) % 8 == 0


@examples(40)
@given(st.data())
def test_a_flipped_byte_of_a_prelude_is_never_read_as_another(data: st.DataObject) -> None:
    prelude = bytearray(encode_prelude({"identity": "x", "topics": {}}))
    prelude[data.draw(st.integers(0, len(prelude) - 1))] ^= data.draw(st.integers(1, 255))
    found = prelude_in(bytes(prelude))
    assert found is None or found[0] == {"identity": "x", "topics": {}}


@examples(40)
@given(st.builds(Mark, stretch=counts, end=counts, next_frame=counts, cut=st.integers(0, 2**32 - 1)), st.data())
def test_a_mark_is_read_back_and_a_flipped_byte_is_never_read_as_another(mark: Mark, data: st.DataObject) -> None:
    assert decode(mark.encode()) == mark
    assert decode(mark.encode()[:-1]) is None
    flipped = bytearray(mark.encode())
    flipped[data.draw(st.integers(0, len(flipped) - 1))] ^= data.draw(st.integers(1, 255))
    assert decode(bytes(flipped)) in (None, mark)


@examples(40)
@given(st.integers(0, 2**39 - 1), st.integers(0, 2**24 - 1))
def test_a_place_is_one_number_that_orders_as_frames_and_indexes_do(frame_: int, index: int) -> None:
    place = Place(frame_, index)
    assert Place.of(int(place)) == place
    assert int(Place(frame_)) <= int(place) < int(Place(frame_ + 1)) <= 2**63


def test_an_empty_frame_is_only_its_ends() -> None:
    text = encode(Header(0, 0, 0), [])[1]
    assert len(frame(0)) == ENDS + 2 * len(text)
