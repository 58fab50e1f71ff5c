"""TPC-H: each query as a view, against Spark computing it anew over the same rows as parquet files.

`python -m benchmarks.tpch [--scale 0.1] [--queries q01,q06] [--rounds 3]`. Per query, in one run: loading, the batch
after a refresh of 0.1 % of the rows, the recomputation, the size of the state. Folding the log into tables is reported
apart: a recomputation from the log would have to do it first.
"""

import argparse
import shutil
import statistics
import tempfile
import time
from dataclasses import replace
from pathlib import Path

from pyspark.sql import SparkSession

from benchmarks._report import report
from benchmarks.tpch.data import KEYS, Data
from benchmarks.tpch.shop import QUERIES, change, load, pipeline_text
from penstock.engine import read_topic, session
from penstock.engine.oracle import folded
from penstock.engine.run import Run, prepared
from penstock.log import Log
from penstock.model import pipeline_of

SHARE = 0.001
GOALS = {"twenty_times_faster": ">= 15", "least_times_faster": ">= 2"}


class Shop:
    """One log with the tables; queries are run over it one after the other."""

    def __init__(self, spark: SparkSession, folder: Path, scale: float) -> None:
        self.spark = spark
        self.folder = folder
        self.data = Data(scale)
        self.log = Log.open(folder / "log")
        load(self.log, self.data)

    def maintained(self, name: str, rounds: int) -> dict[str, float]:
        """Seconds of loading and of a refresh, and the bytes of the state."""
        loading = sum(self._batches(name, 500_000))
        for _ in range(rounds):
            change(self.log, self.data.refresh(SHARE))
        refreshing = statistics.median(self._batches(name, 1))
        home = self.folder / name
        state = sum(path.stat().st_size for path in home.rglob("*") if path.is_file())
        shutil.rmtree(home)
        return {f"{name}_load_s": loading, f"{name}_refresh_s": refreshing, f"{name}_state_mb": state / 1e6}

    def _batches(self, name: str, records: int) -> list[float]:
        """The seconds of each batch; a frame is never divided, so that with one record a batch is a frame."""
        pipeline = pipeline_of(pipeline_text([name], store="none"), name=name)
        pipeline = replace(pipeline, options=replace(pipeline.options, max_records_per_batch=records))
        home = self.folder / name
        run = Run(self.spark, self.log, home, prepared(self.spark, pipeline, self.log, home), lambda _: None)
        query = run.start(once=True)
        run.wait(query)
        return [p["durationMs"]["triggerExecution"] / 1000 for p in query.recentProgress if p["numInputRows"]]

    def write_parquet(self) -> float:
        """The tables as they stand now, as files; the seconds of folding the log into them."""
        begun = time.perf_counter()
        relations = {each.name: each for each in pipeline_of(pipeline_text(["q01"]), name="tables").relations}
        for name in KEYS:
            path = str(self.folder / "parquet" / name)
            folded(relations[name], read_topic(self.spark, self.log.folder, name)).write.parquet(path)
            self.spark.read.parquet(path).createOrReplaceTempView(name)
        return time.perf_counter() - begun

    def recomputed(self, name: str, rounds: int) -> float:
        taken = []
        for _ in range(rounds):
            begun = time.perf_counter()
            self.spark.sql(QUERIES[name]).write.format("noop").mode("overwrite").save()
            taken.append(time.perf_counter() - begun)
        return statistics.median(taken)


def measured(spark: SparkSession, folder: Path, scale: float, names: list[str], rounds: int) -> dict[str, float]:
    shop, figures = Shop(spark, folder, scale), {"scale": scale}
    for name in names:
        figures |= shop.maintained(name, rounds)
        print(f"{name}: loaded in {figures[f'{name}_load_s']:.1f} s, refreshed in {figures[f'{name}_refresh_s']:.2f} s")
    figures["folding_s"] = shop.write_parquet()
    for name in names:
        figures[f"{name}_recompute_s"] = shop.recomputed(name, rounds)
        figures[f"{name}_times_faster"] = figures[f"{name}_recompute_s"] / figures[f"{name}_refresh_s"]
    faster = [figures[f"{name}_times_faster"] for name in names]
    figures["twenty_times_faster"] = sum(each >= 20 for each in faster)
    figures["least_times_faster"] = min(faster)
    shop.log.close()
    return figures


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--scale", type=float, default=0.1)
    parser.add_argument("--queries", default=",".join(QUERIES))
    parser.add_argument("--rounds", type=int, default=5)
    asked = parser.parse_args()
    names = asked.queries.split(",")
    folder = Path(tempfile.mkdtemp(prefix="penstock-bench-", dir="."))
    try:
        with session("benchmark", conf={"spark.driver.memory": "6g"}) as spark:
            figures = measured(spark, folder, asked.scale, names, asked.rounds)
    finally:
        shutil.rmtree(folder)
    report("tpch" if names == list(QUERIES) else "tpch-quick", figures, GOALS)


if __name__ == "__main__":
    main()
