"""Names of groups and queues, and whether the log has heard of them.

The log remembers in an epoch of that name that a group or a queue was made: odd while it is there. So a name that the
facts do not know and the log does is one whose facts were lost: to begin anew without a word would lose records, or
bring all of them again.
"""

import re

from penstock.errors import LogError
from penstock.log.consumers.facts import NAME as FILE
from penstock.log.consumers.source import Source

NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._-]{0,99}")


def check_name(kind: str, name: str) -> None:
    if not isinstance(name, str) or not NAME.fullmatch(name):
        raise LogError(
            f'"{name}" is not the name of a {kind}',
            hint="Letters, digits, dot, dash and underscore, at most 100, not beginning with dot or dash.",
        )


def remember(source: Source, kind: str, name: str) -> None:
    if not _is_remembered(source, kind, name):
        source.raise_epoch(f"{kind} {name}")


def forget(source: Source, kind: str, name: str) -> None:
    if _is_remembered(source, kind, name):
        source.raise_epoch(f"{kind} {name}")


def check_not_lost(source: Source, kind: str, name: str, *, hint: str) -> None:
    """Refuses where the log remembers what the facts have forgotten."""
    if _is_remembered(source, kind, name):
        raise LogError(
            f'how far {kind} "{name}" has read was lost',
            detail=f'The log remembers the {kind}; "{source.folder / FILE}" does not.',
            hint=f"Restore that file from a copy, or {hint}",
        )


def _is_remembered(source: Source, kind: str, name: str) -> bool:
    return source.epoch(f"{kind} {name}") % 2 == 1
