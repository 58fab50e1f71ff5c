"""Where readers are at work: on which log, with which facts, by which clock."""

from collections.abc import Callable
from dataclasses import dataclass

from penstock.log.consumers.facts import Facts
from penstock.log.consumers.source import Source


@dataclass(frozen=True)
class Site:
    source: Source
    facts: Facts
    clock: Callable[[], int]
    """Microseconds since 1970."""
