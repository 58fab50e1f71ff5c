"""Terms: on what a member takes part in a group."""

from dataclasses import dataclass
from datetime import timedelta
from typing import Literal

from penstock.errors import LogError
from penstock.log.consumers.source import End

Missing = Literal["fail", "earliest", "latest"]
"""What to do where the next offset of a group is not there (any more): refuse, or go on elsewhere."""
MICROSECOND = timedelta(microseconds=1)


def check_limit(limit: int) -> None:
    if limit < 1:
        raise LogError(f"{limit} is no limit", hint="Ask for 1 or more.")


@dataclass(frozen=True)
class Terms:
    """A member that is not heard of for a `session` is taken for dead. It is heard of by itself, for up to `patience`
    after its last poll. `start` is where a group begins that has committed nothing yet.
    """

    session: timedelta = timedelta(seconds=10)
    patience: timedelta = timedelta(minutes=5)
    start: End = "earliest"
    missing: Missing = "fail"

    def __post_init__(self) -> None:
        for name in ("session", "patience"):
            if getattr(self, name) < timedelta(milliseconds=10):
                raise LogError(
                    f"a {name} of {getattr(self, name)} is too short", hint="Choose 10 milliseconds or more."
                )
        if self.start not in ("earliest", "latest"):
            raise LogError(f'"{self.start}" is no start', hint='Say "earliest" or "latest".')
        if self.missing not in ("fail", "earliest", "latest"):
            raise LogError(f'"{self.missing}" is no way to go on', hint='Say "fail", "earliest" or "latest".')
