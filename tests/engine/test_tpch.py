"""TPC-H: its 22 queries as views of one pipeline, and alone, through rounds of refresh, equal to Spark batch.

A soak compares after every batch, and every query alone; how much it has compared is in results/tpch.json, which it
writes when all was equal.
"""

import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from benchmarks import _report
from benchmarks.tpch.__main__ import Shop, Size, measured
from benchmarks.tpch.data import Data
from benchmarks.tpch.shop import QUERIES, change, load, pipeline_text
from penstock.log import Log
from tests.effort import SOAK
from tests.engine.conftest import Bench

pytestmark = [pytest.mark.spark, pytest.mark.timeout(3600)]
RESULTS = Path(__file__).parent / "results" / "tpch.json"
SCALE, ROUNDS, LOADING = 0.01, 20, 8
SAMPLE = (LOADING, LOADING + ROUNDS // 2, LOADING + ROUNDS - 1)
"""Of the batches: the first round, one of the middle, the last."""
ALONE = tuple(QUERIES) if SOAK else ("q13",)
ALONE_SCALE, ALONE_ROUNDS = (SCALE, ROUNDS) if SOAK else (0.002, 2)


@pytest.fixture(scope="module")
def record() -> Iterator[dict[str, int]]:
    """How many batches of which pipeline were compared; after a soak of all of them it becomes the result."""
    compared: dict[str, int] = {}
    yield compared
    if SOAK and len(compared) == len(QUERIES) + 1:
        RESULTS.write_text(json.dumps({"scale": SCALE, "rounds": ROUNDS, "batches equal": compared}, indent=1) + "\n")


def refreshed(bench: Callable[..., Bench], queries: Sequence[str], scale: float, rounds: int) -> Bench:
    """A pipeline of these queries, loaded and refreshed: each frame is a batch."""
    data = Data(scale)
    text = pipeline_text(list(queries)).replace(
        "sum(l_quantity) > 300", "sum(l_quantity) > 250"
    )  # few rows, few large orders
    shop = bench(text, max_records_per_batch=1)
    load(shop.log, data)
    for _ in range(rounds):
        change(shop.log, data.refresh(0.001))
    shop.drain()
    return shop


def test_all_queries_equal_batch_through_rounds_of_refresh(bench: Callable[..., Bench], record: dict[str, int]) -> None:
    shop = refreshed(bench, list(QUERIES), SCALE, ROUNDS)
    batches = len(shop.batches)
    shop.check(only=range(batches) if SOAK else SAMPLE)
    assert (batches, shop.checked) == (LOADING + ROUNDS, batches if SOAK else len(SAMPLE))
    assert [view for view in QUERIES if not shop.content(view)] == []
    record["all"] = shop.checked


@pytest.mark.parametrize("query", ALONE)
def test_a_query_alone_equals_batch_after_every_round(
    query: str, bench: Callable[..., Bench], record: dict[str, int]
) -> None:
    shop = refreshed(bench, [query], ALONE_SCALE, ALONE_ROUNDS)
    batches = len(shop.batches)
    shop.check(only=range(batches - ALONE_ROUNDS - 1, batches))
    assert shop.checked == 1 + ALONE_ROUNDS  # as it was loaded, and after every round
    assert shop.content(query)
    record[query] = shop.checked


def test_rounds_follow_one_another_in_one_run(spark: SparkSession, tmp_path: Path) -> None:
    shop = Shop(spark, tmp_path, 0.001)
    with Log.open(tmp_path / "loaded") as log:
        loaded = log.mark().next_frame
        rounds = shop.ran("q06", log, tmp_path / "q06", 3)
        frames = list(log.frames(loaded))
        refreshes = [header.frame for header in frames if any(block.topic == "orders" for block in header.blocks)]
        batches = [header.note for header in frames if "until" in header.note]
    assert len(rounds.refreshing) == 3 and len(rounds.loading) == len(batches) - 3
    assert len(refreshes) == 4  # the first one ends the loading
    assert [note["from"] <= frame < note["until"] for note, frame in zip(batches[-4:], refreshes, strict=True)] == [
        True
    ] * 4


def test_figures_are_written_as_they_come_and_taken_up_again(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(_report, "RESULTS", tmp_path / "results")
    size, before = Size(0.001, warm=1, rounds=2), {"q01_refresh_s": 0.5, "q01_times_faster": 3.0}
    assert _report.kept("tpch") == {}
    figures = measured(Shop(spark, tmp_path, 0.001), ["q01", "q06"], size, before)
    assert figures.items() >= {**before, **asdict(size)}.items() and "q01_load_s" not in figures
    assert _report.kept("tpch").items() >= before.items()
    kept = json.loads((tmp_path / "results" / "tpch-partial.json").read_text())["figures"]
    assert kept.items() <= {name: round(value, 4) for name, value in figures.items()}.items()
    assert figures["q06_times_faster"] == figures["q06_recompute_s"] / figures["q06_refresh_s"]
    assert kept["q06_load_s"] > 0 and kept["q06_first_refresh_s"] > 0 and figures["twenty_times_faster"] == 0
