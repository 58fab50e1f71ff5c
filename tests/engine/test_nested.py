"""Random queries out of all constructs, nested up to four, equal to Spark batch after every batch.

A few fixed seeds; `make fuzz MINUTES=30` goes on with others.
"""

from collections.abc import Callable
from random import Random

import pytest

from tests.engine.conftest import Bench
from tests.engine.nested import SHAPES, Nest
from tests.engine.nested_stories import VIEWS, tell


@pytest.mark.spark
@pytest.mark.timeout(900)
@pytest.mark.parametrize("seed", range(3))
def test_nested_queries_equal_batch(bench: Callable[..., Bench], seed: int) -> None:
    tell(bench, seed)


def test_the_seeds_use_every_construct() -> None:
    told = set[str]()
    for seed in range(3):
        nest = Nest(Random(seed))
        for _ in range(VIEWS):
            nest.query(3)
        told |= nest.told
    assert told == {shape.__name__ for shape in SHAPES}
