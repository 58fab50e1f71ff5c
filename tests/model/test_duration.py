"""Durations are read as people write them, and written so that they are read back."""

from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.errors import ModelError
from penstock.model.duration import duration_text, parse_duration


@pytest.mark.parametrize(
    ("text", "duration"),
    [
        ("10 seconds", timedelta(seconds=10)),
        ("1 hour 30 minutes", timedelta(minutes=90)),
        ("500 milliseconds", timedelta(milliseconds=500)),
        ("1 WEEK 1 Day", timedelta(days=8)),
        ("2microseconds", timedelta(microseconds=2)),
        ("0 seconds", timedelta(0)),
    ],
)
def test_a_duration_is_numbers_with_units(text: str, duration: timedelta) -> None:
    assert parse_duration(text) == duration


@pytest.mark.parametrize(
    "text", ["", " ", "10", "seconds", "1.5 seconds", "-1 second", "1 month", "3 furlongs", f"{10**12} days"]
)
def test_anything_else_is_refused(text: str) -> None:
    with pytest.raises(ModelError):
        parse_duration(text)


@given(st.timedeltas(min_value=timedelta(0)))
def test_what_was_written_is_read_back(duration: timedelta) -> None:
    assert parse_duration(duration_text(duration)) == duration
