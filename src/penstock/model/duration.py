"""Durations as people write them: '10 seconds', '1 hour 30 minutes'.

Units have a fixed length; months and years have none and are refused. Nothing finer than a microsecond.
"""

import re
from datetime import timedelta

from penstock.errors import ModelError, did_you_mean

UNITS = {
    "week": timedelta(weeks=1),
    "day": timedelta(days=1),
    "hour": timedelta(hours=1),
    "minute": timedelta(minutes=1),
    "second": timedelta(seconds=1),
    "millisecond": timedelta(milliseconds=1),
    "microsecond": timedelta(microseconds=1),
}
FORM = "Write it as '10 seconds' or '1 hour 30 minutes'."
PART = re.compile(r"\s*(\d+)\s*([A-Za-z]+)\s*")


def parse_duration(text: str) -> timedelta:
    """'1 hour 30 minutes'  =>  timedelta(minutes=90)"""
    at, total = 0, timedelta(0)
    while found := PART.match(text, at):
        try:
            total += int(found[1]) * _unit(found[2], text)
        except OverflowError:
            raise ModelError(f'"{text}" is too long', hint="A duration has at most 999999999 days.") from None
        at = found.end()
    if at < len(text) or not text.strip():
        raise ModelError(f'"{text}" is no duration', hint=FORM)
    return total


def duration_text(duration: timedelta) -> str:
    """timedelta(minutes=90)  =>  '1 hour 30 minutes'"""
    parts = []
    for name, unit in UNITS.items():
        count, duration = divmod(duration, unit)
        if count:
            parts.append(f"{count} {name}{'s' if count > 1 else ''}")
    return " ".join(parts) or "0 seconds"


def _unit(word: str, text: str) -> timedelta:
    name = word.lower().removesuffix("s")
    if name in ("month", "year", "quarter"):
        raise ModelError(
            f'"{text}" is no duration', detail=f"A {name} has no fixed length.", hint="Write it in days or weeks."
        )
    if name not in UNITS:
        known = [f"{unit}s" for unit in UNITS]
        raise ModelError(
            f'"{text}" is no duration',
            detail=f'The units are {", ".join(known)}; "{word}" is none of them.',
            hint=did_you_mean(word, known, otherwise=FORM),
        )
    return UNITS[name]
