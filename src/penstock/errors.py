"""Errors that teach: what is wrong, what is there instead, what to do.

Every error that Penstock raises on purpose is a `PenstockError`. Its text is three parts: `primary` says what is wrong,
`detail` what was found, `hint` what to try. The command line prints them as they are, without a traceback.
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from difflib import get_close_matches

SECRETS = re.compile(r"""(?<=://)([^\s'":/@]*):[^\s'"]*@|([?&]password=|whsec_)[^\s'"&]*""")


@dataclass(frozen=True)
class Spot:
    """A place in what the user wrote: line and column count from 1, `text` is the whole line."""

    file: str
    line: int
    column: int
    text: str

    def __str__(self) -> str:
        return f"{self.file}:{self.line}:{self.column}"


class PenstockError(Exception):
    """Something that the user can understand and mend; `spot` shows the place in the user's file, if there is one."""

    def __init__(self, primary: str, *, detail: str = "", hint: str = "", spot: Spot | None = None) -> None:
        super().__init__(primary)
        self.primary = primary
        self.detail = detail
        self.hint = hint
        self.spot = spot

    def __str__(self) -> str:
        lines = [self.primary, *(_shown(self.spot) if self.spot else [])]
        if self.detail:
            lines.append(f"  detail: {self.detail}")
        if self.hint:
            lines.append(f"  hint:   {self.hint}")
        return "\n".join(lines)


class SchemaError(PenstockError):
    """A schema that cannot be read, or values that do not fit it."""


class LogError(PenstockError):
    """The log refused."""


class ConditionFailed(LogError):
    """An append's condition did not hold; nothing was written."""


class Fenced(LogError):
    """Who asked has lost what it holds to somebody else; nothing was written."""


class TopicFull(LogError):
    """The readers of `topic` are as far behind as its bound allows; nothing was written."""

    def __init__(self, primary: str, *, detail: str = "", hint: str = "", topic: str = "") -> None:
        super().__init__(primary, detail=detail, hint=hint)
        self.topic = topic


class DamagedLog(LogError):
    """Bytes of the log are not what was written; they are never returned as data."""


class RecordsGone(LogError):
    """Records that were asked for are kept no longer."""


class BadRecord(LogError):
    """What stands at a position of a topic is not a record of it: `position` is topic, partition and offset, `found`
    its key and value as they are.
    """

    def __init__(
        self,
        primary: str,
        *,
        detail: str,
        hint: str,
        position: tuple[str, int, int],
        found: tuple[bytes | None, bytes | None],
    ) -> None:
        super().__init__(primary, detail=detail, hint=hint)
        self.position = position
        self.found = found


class CaptureError(PenstockError):
    """What is outside of the log, and was to be bridged, is not as it should be."""


class ModelError(PenstockError):
    """A declaration that cannot be read, or makes no sense.

    Where a value refuses itself, `about` names the part of it that is wrong: whoever knows the file finds the spot.
    """

    def __init__(
        self, primary: str, *, detail: str = "", hint: str = "", spot: Spot | None = None, about: str = ""
    ) -> None:
        super().__init__(primary, detail=detail, hint=hint, spot=spot)
        self.about = about


class EngineError(PenstockError):
    """Spark, or what runs on it, could not do what was asked."""


class ViewError(PenstockError):
    """A view's store, or what was asked of it, is not as it should be."""


class BeingSent(ViewError):
    """Somebody else sends these dead letters; nothing was sent."""


class DamagedNote(ViewError):
    """What was written down about a sink cannot be read."""


class StoreUnavailable(ViewError):
    """The store cannot be read at all now, whatever is asked."""


class TooSlow(ViewError):
    """The answer took longer than there was time."""


class ServeError(PenstockError):
    """What was asked over HTTP, or how to serve it, makes no sense; `status` is HTTP's word for it."""

    def __init__(self, primary: str, *, detail: str = "", hint: str = "", status: int = 400) -> None:
        super().__init__(primary, detail=detail, hint=hint)
        self.status = status


class CommandError(PenstockError):
    """A command was given something that it cannot work with."""


def without_secrets(text: str) -> str:
    """The text with no password of an address in it, and no secret of a webhook."""
    return SECRETS.sub(lambda found: f"{found[2]}***" if found[2] else f"{found[1]}:***@", text)


def did_you_mean(word: str, known: Iterable[str], *, otherwise: str = "") -> str:
    """The hint that names the nearest known word, or `otherwise`."""
    close = get_close_matches(word, list(known), n=1)
    return f'Did you mean "{close[0]}"?' if close else otherwise


def _shown(spot: Spot, *, width: int = 100) -> list[str]:
    """The place, its line (of a very long one the part around the column) and a mark beneath the column."""
    if (safe := without_secrets(spot.text)) != spot.text:  # columns are no longer where they were
        return [f"  at:     {spot}", f"{'':10}{safe[:width].strip()}"]
    first = max(0, spot.column - 1 - width // 2) if len(spot.text) > width else 0
    before, after = "..." if first else "", "..." if len(spot.text) > first + width else ""
    line = before + spot.text[first : first + width].replace("\t", " ").rstrip() + after
    mark = " " * (len(before) + spot.column - 1 - first) + "^"
    return [f"  at:     {spot}", *(f"{'':10}{each}" for each in (line, mark) if line)]
