"""What a bridge has done so far."""

from collections.abc import Callable
from dataclasses import dataclass


@dataclass
class Tally:
    """Messages that went over; those that were known already, or sent again; dead letters; messages without an id;
    messages that a full topic has left out.
    """

    messages: int = 0
    repeated: int = 0
    letters: int = 0
    nameless: int = 0
    dropped: int = 0


Told = Callable[[Tally], None]
Say = Callable[[str], None]
Stop = Callable[[], bool]
