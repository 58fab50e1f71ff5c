"""What paces are, in plain words: the least of those that count, after every event, never going back."""

from collections.abc import Iterable
from itertools import product
from typing import Any

from penstock.log.pace import NONE


class Model:
    """The plain rule: the least of those that count, after every event; what stands is the largest of these so far."""

    def __init__(self, delays: Iterable[int | None], scopes: Iterable[str], members: Iterable[str] = ()) -> None:
        self.members = dict.fromkeys(members, (NONE, NONE))
        self.resting: set[tuple[str, str]] = set()
        self.levels = dict.fromkeys(product(delays, scopes), NONE)

    def take(self, kind: str, member: str, *more: Any) -> None:
        announced, top = self.members.get(member, (NONE, NONE))
        if kind == "rest":
            self.resting |= {(member, more[0])} if member in self.members else set()
        elif kind in ("join", "leave") or member in self.members:
            self.resting = {each for each in self.resting if each[0] != member}
        if kind == "leave":
            self.members.pop(member, None)
        elif kind == "join" or (kind != "rest" and member in self.members):
            self.members[member] = (announced, max(top, *more)) if kind == "bring" else (max(announced, *more), top)
        for delay, scope in self.levels:
            self.levels[delay, scope] = max(self.levels[delay, scope], self.least(delay, scope))

    def least(self, delay: int | None, scope: str) -> int:
        count = [m for m in self.members if (m, "") not in self.resting and (m, scope) not in self.resting]
        return min((self.reached(member, delay) for member in count), default=NONE)

    def reached(self, member: str, delay: int | None) -> int:
        announced, top = self.members[member]
        return announced if delay is None or top == NONE else max(announced, top - delay)
