"""Cases: what a case file says, as values; and what came of one."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from penstock.errors import Spot

Row = tuple[Any, ...]
"""Values as the file has them, in the order of the columns."""
Weighted = tuple[int, Row]


@dataclass(frozen=True)
class Step:
    """What is fed, by relation, and what then must hold, by view; `number` counts from 1. By stream, `watermark` is the
    time to which it has come after that.
    """

    number: int
    spot: Spot
    feed: Mapping[str, tuple[Weighted, ...]] = field(default_factory=dict)
    want: Mapping[str, tuple[Row, ...]] = field(default_factory=dict)
    changes: Mapping[str, tuple[Weighted, ...]] = field(default_factory=dict)
    late: Mapping[str, tuple[Row, ...]] = field(default_factory=dict)
    watermark: Mapping[str, str] = field(default_factory=dict)
    restart: bool = False
    crash: bool = False

    @property
    def views(self) -> tuple[str, ...]:
        """The views that the step looks at."""
        return tuple(dict.fromkeys([*self.want, *self.changes, *self.late]))


@dataclass(frozen=True)
class Case:
    """A pipeline with its steps, or with the `error` that it must be refused with."""

    name: str
    spot: Spot
    pipeline: str
    steps: tuple[Step, ...] = ()
    error: str | None = None
    options: Mapping[str, Any] = field(default_factory=dict)
    tags: tuple[str, ...] = ()
    origin: str = ""


@dataclass(frozen=True)
class Outcome:
    """How a case ended; `reason` is empty where it passed."""

    case: Case
    reason: str
    seconds: float

    @property
    def passed(self) -> bool:
        return not self.reason
