"""Pace: how far those that bring the records of a topic have come, be it its partitions or its producers.

Each of them has reached the largest event time that it brought and, if later, what it announced: before that it brings
nothing any more. All have reached the least of what each has. Who is idle does not count, until it brings something
again. What all have reached never goes back: before anybody comes, goes, rests or returns, what stood is kept as a
peak. The delay that readers stay behind event times is theirs, so a peak holds for every delay.

`kernel/src/penstock/kernel/log/Pace.scala` says the same; docs/formats/log.md has the rules.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

NONE = -(1 << 63)
"""No time; less than every time."""


@dataclass(frozen=True)
class Reached:
    """What one has announced, and the largest event time that it brought."""

    announced: int = NONE
    top: int = NONE

    def level(self, delay: int | None) -> int:
        return self.announced if delay is None or self.top == NONE else max(self.announced, self.top - delay)

    def onward(self, *, announced: int = NONE, top: int = NONE) -> "Reached":
        return Reached(max(self.announced, announced), max(self.top, top))

    def is_beneath(self, other: "Reached") -> bool:
        return self.announced <= other.announced and self.top <= other.top


Peak = tuple[Reached, ...]
"""Those that could be the least for some delay."""


@dataclass
class Pace:
    """Members by name; idle ones, and peaks, by scope. A scope in which nobody ever rested has those of scope ""."""

    members: dict[str, Reached] = field(default_factory=dict)
    idle: dict[str, set[str]] = field(default_factory=dict)
    peaks: dict[str, list[Peak]] = field(default_factory=dict)

    def bring(self, member: str, top: int) -> None:
        """A member brought records; others than members are not looked at."""
        self._go_on(member, Reached(top=top))

    def announce(self, member: str, until: int) -> None:
        self._go_on(member, Reached(announced=until))

    def join(self, member: str, until: int = NONE) -> None:
        self._remember()
        self._wake(member)
        self.members[member] = self.members.get(member, Reached()).onward(announced=until)

    def leave(self, member: str) -> None:
        self._remember()
        self._wake(member)
        self.members.pop(member, None)

    def rest(self, member: str, scope: str) -> None:
        """The member is idle for a scope."""
        if member not in self.members:
            return
        if scope not in self.idle:
            self.idle[scope] = set()
            self.peaks.setdefault(scope, list(self.peaks.get("", ())))
        self._remember()
        self.idle[scope].add(member)

    def is_idle(self, member: str, scope: str) -> bool:
        return any(member in self.idle.get(each, ()) for each in ("", scope))

    def level(self, delay: int | None, scope: str) -> int:
        """What all have reached so far, for readers who stay `delay` behind event times."""
        peaks = self.peaks.get(scope, self.peaks.get("", []))
        return max(least(each, delay) for each in (*peaks, self._active(scope)))

    def _go_on(self, member: str, reached: Reached) -> None:
        if member not in self.members:
            return
        if any(member in idle for idle in self.idle.values()):
            self._remember()
            self._wake(member)
        self.members[member] = self.members[member].onward(announced=reached.announced, top=reached.top)

    def _wake(self, member: str) -> None:
        for idle in self.idle.values():
            idle.discard(member)

    def _active(self, scope: str) -> Peak:
        return tuple(reached for member, reached in self.members.items() if not self.is_idle(member, scope))

    def _remember(self) -> None:
        for scope in {"", *self.idle}:
            peak, peaks = lowest(self._active(scope)), self.peaks.get(scope, [])
            if peak and peak[0] != Reached() and not any(is_below(peak, each) for each in peaks):
                self.peaks[scope] = [*(each for each in peaks if not is_below(each, peak)), peak]


def least(peak: Iterable[Reached], delay: int | None) -> int:
    return min((reached.level(delay) for reached in peak), default=NONE)


def lowest(reached: Iterable[Reached]) -> Peak:
    """Those beneath which no other is."""
    found: list[Reached] = []
    for each in sorted(reached, key=lambda one: (one.announced, one.top)):
        if not found or each.top < found[-1].top:
            found.append(each)
    return tuple(found)


def is_below(one: Peak, other: Peak) -> bool:
    """Whether `other` is at least as far for every delay."""
    return all(any(low.is_beneath(high) for low in one) for high in other)


def pace_json(pace: Pace) -> dict[str, Any]:
    """All but the members."""
    return {
        "idle": {scope: sorted(idle) for scope, idle in pace.idle.items()},
        "peaks": {scope: [[reached_json(r) for r in peak] for peak in peaks] for scope, peaks in pace.peaks.items()},
    }


def pace_of(members: Mapping[str, Reached], found: Mapping[str, Any]) -> Pace:
    idle = {scope: set(each) for scope, each in found["idle"].items()}
    peaks = {scope: [tuple(map(reached_of, peak)) for peak in each] for scope, each in found["peaks"].items()}
    return Pace(dict(members), idle, peaks)


def reached_json(reached: Reached) -> list[int | None]:
    return [time_json(reached.announced), time_json(reached.top)]


def reached_of(found: Sequence[int | None]) -> Reached:
    return Reached(time_of(found[0]), time_of(found[1]))


def time_json(time: int) -> int | None:
    return None if time == NONE else time


def time_of(found: int | None) -> int:
    return NONE if found is None else found
