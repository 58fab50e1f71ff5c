"""How much is tried: a fixed few in every run, all or many more when PENSTOCK_SOAK is set."""

import os
import random
from collections.abc import Sequence
from typing import TypeVar

from hypothesis import settings

SOAK = bool(os.environ.get("PENSTOCK_SOAK"))
T = TypeVar("T")


def examples(few: int, *, steps: int = 50) -> settings:
    """So many random cases, and steps of a random story."""
    return settings(max_examples=few * 20 if SOAK else few, stateful_step_count=steps)


def sample(everything: Sequence[T], few: int, *, always: Sequence[T] = ()) -> list[T]:
    """A few of everything, the same in every run, and what is `always` among them."""
    if SOAK or few >= len(everything):
        return list(everything)
    return sorted({*random.Random(0).sample(list(everything), few), *always})  # type: ignore[type-var]
