"""Values as text: every value has one text that gives it back, and what does not fit is refused."""

import math
from typing import Any

import hypothesis.strategies as st
import pyarrow as pa
import pytest
from hypothesis import given

from penstock.schema import Type, arrow_type, parse_type
from penstock.text import BASE64, Unfit, csv_text, reader, text_reader, writer

SCALARS = {
    "BOOLEAN": st.booleans(),
    "TINYINT": st.integers(-(2**7), 2**7 - 1),
    "BIGINT": st.integers(-(2**63), 2**63 - 1),
    "FLOAT": st.floats(width=32),
    "DOUBLE": st.floats(),
    "DECIMAL(9,3)": st.decimals(-999999, 999999, places=3),
    "STRING": st.text(st.characters(codec="utf-8")).filter(bool),
    "BINARY": st.binary(min_size=1),
    "DATE": st.dates(),
    "TIMESTAMP": st.datetimes(timezones=st.timezones()),
    "TIMESTAMP_NTZ": st.datetimes(),
}


@st.composite
def typed_values(draw: st.DrawFn) -> tuple[Type, Any]:
    """A type, and a value of it or NULL; also of arrays, maps and structs of such."""
    name = draw(st.sampled_from(sorted(SCALARS)))
    one = st.none() | SCALARS[name]
    shapes: dict[str, st.SearchStrategy[Any]] = {
        name: one,
        f"ARRAY<{name}>": st.lists(one, max_size=3),
        f"MAP<STRING, {name}>": st.dictionaries(st.text("abc"), one, max_size=3).map(lambda found: list(found.items())),
        f"STRUCT<x: {name}, y: ARRAY<{name}>>": st.fixed_dictionaries({"x": one, "y": st.none() | st.lists(one)}),
    }
    shape = draw(st.sampled_from(sorted(shapes)))
    return parse_type(shape), draw(shapes[shape])


def stored(type_: Type, value: Any) -> Any:
    """The value as the log gives it back."""
    try:
        return pa.scalar(value, arrow_type(type_))
    except (pa.ArrowInvalid, OverflowError, ValueError):
        return None


@given(typed_values())
def test_a_value_comes_back_from_its_text(case: tuple[Type, Any]) -> None:
    type_, value = case
    kept = stored(type_, value)
    if kept is None:
        return
    text = writer(type_)(kept.as_py())
    for again in (reader(type_)(text), text_reader(type_)(csv_text(text))):
        assert pa.scalar(again, arrow_type(type_)).equals(kept) or repr(again) == repr(kept.as_py())


@pytest.mark.parametrize(
    ("type_", "given_"),
    [
        ("BOOLEAN", "yes"),
        ("BOOLEAN", 1),
        ("TINYINT", 128),
        ("INT", 1.0),
        ("INT", True),
        ("INT", "1_000"),
        ("BIGINT", "12.0"),
        ("FLOAT", 1e39),
        ("DOUBLE", "1e999"),
        ("DOUBLE", "inf"),
        ("DECIMAL(4,2)", "100"),
        ("DECIMAL(4,2)", "0.001"),
        ("DECIMAL(4,2)", "NaN"),
        ("STRING", 5),
        ("BINARY", "0"),
        ("BINARY", 5),
        ("DATE", "2024-02-30"),
        ("DATE", "2024-01-01T00:00:00"),
        ("TIMESTAMP", "noon"),
        ("TIMESTAMP", "2024-01-01T00:00:00.0000001"),
        ("TIMESTAMP_NTZ", "2024-01-01T00:00:00Z"),
        ("ARRAY<INT>", {}),
        ("ARRAY<INT>", "[]"),
        ("MAP<STRING, INT>", [1]),
        ("STRUCT<x: INT>", {"y": 1}),
        ("STRUCT<x: INT>", [1]),
    ],
)
def test_what_does_not_fit_is_refused(type_: str, given_: object) -> None:
    with pytest.raises(Unfit):
        reader(parse_type(type_))(given_)


@pytest.mark.parametrize(
    ("type_", "given_", "want"),
    [
        ("DOUBLE", 3, 3.0),
        ("DOUBLE", "-infinity", -math.inf),
        ("MAP<INT, STRING>", {"1": "a"}, [(1, "a")]),
        ("MAP<INT, STRING>", [[1, "a"]], [(1, "a")]),
        ("STRUCT<x: INT, y: INT>", {"y": 1}, {"x": None, "y": 1}),
    ],
)
def test_what_fits_is_taken(type_: str, given_: object, want: object) -> None:
    assert reader(parse_type(type_))(given_) == want


def test_a_float_is_shown_as_short_as_it_is() -> None:
    assert writer(parse_type("FLOAT"))(pa.scalar(0.1, pa.float32()).as_py()) == 0.1


def test_bytes_are_hexadecimal_or_base64_wherever_they_stand() -> None:
    type_ = parse_type("ARRAY<STRUCT<b: BINARY>>")
    assert writer(type_)([{"b": b"\x00\xff"}]) == [{"b": "00ff"}]
    assert writer(type_, BASE64)([{"b": b"\x00\xff"}]) == [{"b": "AP8="}]
    assert reader(type_, BASE64)([{"b": "AP8="}]) == [{"b": b"\x00\xff"}]
    with pytest.raises(Unfit):
        reader(type_, BASE64)([{"b": "A?P8="}])


def test_a_map_that_has_a_key_twice_keeps_both() -> None:
    type_ = parse_type("MAP<STRING, INT>")
    pairs = [("a", 1), ("a", 2)]
    assert reader(type_)(writer(type_)(pairs)) == pairs
