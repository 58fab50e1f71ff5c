"""Errors that teach: what is wrong, what is there instead, what to do.

Every error that Penstock raises on purpose is a `PenstockError`. Its text is three parts: `primary` says what is wrong,
`detail` what was found, `hint` what to try. The command line prints them as they are, without a traceback.
"""

from collections.abc import Iterable
from difflib import get_close_matches


class PenstockError(Exception):
    """Something that the user can understand and mend."""

    def __init__(self, primary: str, *, detail: str = "", hint: str = "") -> None:
        super().__init__(primary)
        self.primary = primary
        self.detail = detail
        self.hint = hint

    def __str__(self) -> str:
        lines = [self.primary]
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


class DamagedLog(LogError):
    """Bytes of the log are not what was written; they are never returned as data."""


class EngineError(PenstockError):
    """Spark, or what runs on it, could not do what was asked."""


def did_you_mean(word: str, known: Iterable[str], *, otherwise: str = "") -> str:
    """The hint that names the nearest known word, or `otherwise`."""
    close = get_close_matches(word, list(known), n=1)
    return f'Did you mean "{close[0]}"?' if close else otherwise
