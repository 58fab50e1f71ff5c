"""State growth: the same change over ten times the base data: a join with an aggregate, extremes, the first rows.

`python -m benchmarks.growth [--quick]`. Both bases span the same numbers, the smaller one has every tenth of them; the
changes are rows that both have, spread over all of them. Sides alternate within one run; the time of a batch is what
Spark's progress reports for it, the batch's frame in the log included.
"""

import argparse
import shutil
import statistics
import tempfile
from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
from pyspark.sql import SparkSession

from benchmarks._report import report
from benchmarks.engine import Bench, benched, per_batch, ratio
from penstock.engine import session

TABLES = """
    CREATE TABLE orders (id BIGINT PRIMARY KEY, customer BIGINT, shop BIGINT, amount BIGINT);
    CREATE TABLE customers (id BIGINT PRIMARY KEY, city BIGINT);"""
QUERIES = {
    "join": """SELECT city, sum(amount) AS spend, count(*) AS orders
               FROM orders JOIN customers ON customer = customers.id GROUP BY city""",
    "extremes": "SELECT shop, min(amount) AS least, max(amount) AS most FROM orders GROUP BY shop",
    "top": "SELECT id, amount FROM orders ORDER BY amount DESC, id LIMIT 100",
}
GOALS = {f"{name}_growth": "<= 1.5" for name in QUERIES}
SIDES = {"small": 10, "large": 1}
"""Each with the distance between its numbers."""
CHANGED, BATCHES, WARM, LOADED = 1000, 14, 5, 100_000


@dataclass(frozen=True)
class Base:
    """The rows that are there before anything changes: orders up to `end`, a tenth as many customers."""

    end: int
    step: int

    def load(self, bench: Bench) -> None:
        customers = np.arange(0, self.end // 10, self.step)
        bench.log.create_topic("customers", "id BIGINT NOT NULL, city BIGINT", key="id")
        bench.log.create_topic("orders", "id BIGINT NOT NULL, customer BIGINT, shop BIGINT, amount BIGINT", key="id")
        bench.log.append("customers", pa.record_batch({"id": customers, "city": customers // 10 % 1000}))
        for ids in np.array_split(np.arange(0, self.end, self.step), max(1, self.end // self.step // LOADED)):
            bench.log.append("orders", orders(ids, ids // 100 * 10 + ids % 10, np.random.default_rng(len(ids))))


def orders(ids: np.ndarray, customers: np.ndarray, chance: np.random.Generator) -> pa.RecordBatch:
    amounts = chance.integers(0, 1_000_000, len(ids))
    return pa.record_batch({"id": ids, "customer": customers, "shop": ids // 10 % 1000, "amount": amounts})


def change(end: int, seed: int) -> pa.RecordBatch:
    """Orders that are in both bases get another customer and another amount."""
    chance, step = np.random.default_rng(seed), SIDES["small"]
    ids = step * chance.choice(end // step, CHANGED, replace=False)
    return orders(ids, step * chance.integers(0, end // step // 10, CHANGED), chance)


def measured(benches: Mapping[str, Bench], end: int, rounds: int) -> dict[str, float]:
    found: dict[str, dict[str, list[float]]] = {name: {side: [] for side in SIDES} for name in QUERIES}
    for each in range(rounds):
        for number in range(BATCHES):
            for bench in benches.values():
                bench.log.append("orders", change(end, 1000 + each * BATCHES + number))
        for name in QUERIES:
            for side, bench in benches.items():
                found[name][side].append(per_batch(drained(bench, name, CHANGED), WARM))
    figures: dict[str, float] = {}
    for name, times in found.items():
        figures |= {f"{name}_{side}_ms": 1000 * statistics.median(times[side]) for side in SIDES}
        figures[f"{name}_growth"] = ratio(times["large"], times["small"])
    return figures


def drained(bench: Bench, name: str, rows_per_batch: int) -> list[tuple[int, float]]:
    """What each batch took."""
    sql = f"{TABLES} CREATE VIEW answer WITH (store = 'topic') AS {QUERIES[name]};"
    return bench.penstock(name, sql, rows_per_batch)


def growth(spark: SparkSession, folder: Path, end: int, rounds: int) -> dict[str, float]:
    with ExitStack() as stack:
        benches = {side: stack.enter_context(benched(spark, folder / side)) for side in SIDES}
        for side, bench in benches.items():
            Base(end, SIDES[side]).load(bench)
            for name in QUERIES:
                print(f"{name}, {end // SIDES[side]:,} rows ...", flush=True)
                drained(bench, name, LOADED)
        return measured(benches, end, rounds)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="smaller; for a look, not for the record")
    quick = parser.parse_args().quick
    folder = Path(tempfile.mkdtemp(prefix="penstock-bench-", dir="."))
    try:
        with session("benchmark", conf={"spark.driver.memory": "4g"}) as spark:
            figures = growth(spark, folder, 100_000 if quick else 1_000_000, 1 if quick else 5)
    finally:
        shutil.rmtree(folder)
    report("growth-quick" if quick else "growth", figures, GOALS)


if __name__ == "__main__":
    main()
