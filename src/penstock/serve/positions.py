"""Positions as text: what an append answers, what an answer carries, what a reader of changes has seen.

57      an append's: the number of its frame
1.12    an answer's: lineage 1, and the frame of its last batch
12:3    a change's, as the id of an event: the fourth of frame 12; 12 alone: all of them
"""

import re
from dataclasses import dataclass
from typing import Any

from penstock.errors import ServeError
from penstock.log import Place
from penstock.views import Position

NUMBER = r"(0|[1-9][0-9]{0,14})"
PATTERN = rf"^({NUMBER}\.)?{NUMBER}$"
"""Of the positions that `after` and `at` take."""
EVENT = re.compile(rf"{NUMBER}(?::{NUMBER})?")


@dataclass(frozen=True)
class Asked:
    """A position that somebody gave: with a lineage an answer's, without one an append's."""

    frame: int
    lineage: int | None = None

    def __str__(self) -> str:
        return str(self.frame) if self.lineage is None else f"{self.lineage}.{self.frame}"


def asked(text: str) -> Asked:
    if re.fullmatch(PATTERN, text) is None:
        raise ServeError(f'"{text[:60]}" is no position', hint="Give one that an answer, or an append, has told.")
    lineage, sign, frame = text.rpartition(".")
    return Asked(int(frame), int(lineage) if sign else None)


def place_after(event: str) -> Place:
    """Where whoever has seen this event goes on."""
    found = EVENT.fullmatch(event)
    if found is None:
        raise ServeError(f'"{event[:60]}" is not the id of an event', hint="Give the last one that you have seen.")
    return Place(int(found[1]) + 1) if found[2] is None else Place(int(found[1]), int(found[2]) + 1)


def text_of(position: Position) -> str:
    return f"{position.lineage}.{position.frame}"


def fields_of(position: Position) -> dict[str, Any]:
    return {
        "position": text_of(position),
        "log": position.log,
        "lineage": position.lineage,
        "frame": position.frame,
        "batch": position.batch,
        "until": position.until,
    }
