"""TPC-H: its 22 queries as views of one pipeline, through rounds of refresh, equal to Spark batch."""

from collections.abc import Callable

import pytest

from benchmarks.tpch.data import Data
from benchmarks.tpch.shop import QUERIES, change, load, pipeline_text
from tests.effort import SOAK
from tests.engine.conftest import Bench

pytestmark = [pytest.mark.spark, pytest.mark.timeout(3600)]
ROUNDS = 20
LOADING = 8
EVERY = 9
"""Of the batches; the last is among them."""


def test_all_queries_equal_batch_through_rounds_of_refresh(bench: Callable[..., Bench]) -> None:
    data = Data(0.01)
    text = pipeline_text(list(QUERIES)).replace(
        "sum(l_quantity) > 300", "sum(l_quantity) > 250"
    )  # few rows, few large orders
    shop = bench(text, max_records_per_batch=1)
    load(shop.log, data)
    for _ in range(ROUNDS):
        change(shop.log, data.refresh(0.001))
    shop.drain()
    shop.check(every=1 if SOAK else EVERY)
    assert len(shop.batches) == ROUNDS + LOADING
    assert (len(shop.batches) - 1) % EVERY == 0
    assert [view for view in QUERIES if not shop.content(view)] == []
