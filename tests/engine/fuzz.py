"""Random nested queries until the time is over: `make fuzz MINUTES=30`. The seed of a story that fails is named."""

import os
from collections.abc import Callable
from random import SystemRandom
from time import monotonic

import pytest

from tests.engine.conftest import Bench
from tests.engine.nested_stories import tell

MINUTES = float(os.environ.get("MINUTES", "10"))
pytestmark = [pytest.mark.spark, pytest.mark.timeout(0)]


def test_nested_queries_equal_batch_while_there_is_time(bench: Callable[..., Bench]) -> None:
    over_at, told = monotonic() + 60 * MINUTES, 0
    while told == 0 or monotonic() < over_at:
        seed = SystemRandom().randrange(2**32)
        print(f"story {told}: seed {seed}", flush=True)
        tell(bench, seed)
        told += 1
