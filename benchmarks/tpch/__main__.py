"""TPC-H: each query as a view, against Spark computing it anew over the same rows as parquet files.

`python -m benchmarks.tpch [--scale 1] [--queries q01,q06] [--warm 25] [--rounds 9] [--resume]`. Per query, in one run:
loading, the batch after a refresh of 0.1 % of the rows, the recomputation, the size of the state. Both sides are warm:
without a restart after loading, `--warm` rounds of refresh come before those that count, and `WARM_QUERIES`
recomputations, each over all rows, before those that count. Folding the log into tables is reported apart: a
recomputation from the log would have to do it first. Figures are written as they come, to tpch-partial.json; a query
that fails is left out. With `--resume` those of a run of the same size that was cut off are taken from there.
"""

import argparse
import copy
import shutil
import statistics
import sys
import tempfile
import time
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from pyspark.sql import SparkSession

from benchmarks._report import keep, kept, report
from benchmarks.tpch.data import KEYS, Data
from benchmarks.tpch.rounds import Rounds
from benchmarks.tpch.shop import QUERIES, change, load, pipeline_text
from penstock.engine import read_topic, session
from penstock.engine.oracle import folded
from penstock.engine.run import Run, prepared
from penstock.errors import PenstockError
from penstock.log import Log
from penstock.model import pipeline_of

SHARE = 0.001
LOADED_PER_BATCH = 500_000
WARM_QUERIES = 5
GOALS = {"twenty_times_faster": ">= 15", "least_times_faster": ">= 2"}
CONF = {"spark.driver.memory": "6g", "spark.sql.streaming.numRecentProgressUpdates": "10000"}
Figures = dict[str, float]


@dataclass(frozen=True)
class Size:
    """How large the tables are, how many rounds warm a side up, and how many count."""

    scale: float
    warm: int
    rounds: int


RECORD = Size(1, 25, 9)


class Shop:
    """The tables as they were loaded, in a log that is copied for every query: each finds the same rows."""

    def __init__(self, spark: SparkSession, folder: Path, scale: float) -> None:
        self.spark = spark
        self.folder = folder
        self.data = Data(scale)
        with Log.open(folder / "loaded") as log:
            load(log, self.data)

    def maintained(self, name: str, size: Size) -> Figures:
        """Seconds of loading and of a refresh, and the bytes of the state."""
        home, place = self.folder / name, self.folder / f"{name}-log"  # a reader may hold files of the log before
        shutil.copytree(self.folder / "loaded", place)
        try:
            with Log.open(place) as log:
                rounds = self.ran(name, log, home, size.warm + size.rounds)
            state = sum(path.stat().st_size for path in home.rglob("*") if path.is_file())
        finally:
            shutil.rmtree(place)
            shutil.rmtree(home, ignore_errors=True)
        refreshing = statistics.median(rounds.refreshing[size.warm :])
        return {
            f"{name}_load_s": sum(rounds.loading),
            f"{name}_first_refresh_s": rounds.refreshing[0],
            f"{name}_refresh_s": refreshing,
            f"{name}_state_mb": state / 1e6,
        }

    def ran(self, name: str, log: Log, home: Path, count: int) -> Rounds:
        """Loads, and goes on through so many rounds of refresh."""
        pipeline = pipeline_of(pipeline_text([name], store="none"), name=name)
        pipeline = replace(pipeline, options=replace(pipeline.options, max_records_per_batch=LOADED_PER_BATCH))
        data = copy.deepcopy(self.data)
        loaded = change(log, data.refresh(SHARE))  # of every table: the frame before may be nothing to the query
        rounds = Rounds(loaded, count, lambda: change(log, data.refresh(SHARE)))
        run = Run(self.spark, log, home, prepared(self.spark, pipeline, log, home), rounds.on_batch)
        query = run.start(once=False)
        run.wait(query, stop=lambda: rounds.are_over(query))
        return rounds

    def write_parquet(self) -> float:
        """The tables as files; the seconds of folding the log into them."""
        begun = time.perf_counter()
        relations = {each.name: each for each in pipeline_of(pipeline_text(["q01"]), name="tables").relations}
        for name in KEYS:
            path = str(self.folder / "parquet" / name)
            folded(relations[name], read_topic(self.spark, self.folder / "loaded", name)).write.parquet(path)
        return time.perf_counter() - begun

    def recomputed(self, name: str, rounds: int) -> float:
        """Over the files: planning a pipeline has given the tables' names to its own sources."""
        for table in KEYS:
            self.spark.read.parquet(str(self.folder / "parquet" / table)).createOrReplaceTempView(table)
        taken = []
        for _ in range(WARM_QUERIES + rounds):
            begun = time.perf_counter()
            self.spark.sql(QUERIES[name]).write.format("noop").mode("overwrite").save()
            taken.append(time.perf_counter() - begun)
        return statistics.median(taken[WARM_QUERIES:])


def measured(shop: Shop, names: list[str], size: Size, before: Figures) -> Figures:
    figures = {**asdict(size), **before, "folding_s": shop.write_parquet()}
    for name in (each for each in names if f"{each}_times_faster" not in before):
        try:
            figures |= shop.maintained(name, size)
        except PenstockError as error:
            print(f"{name} failed: {error}", file=sys.stderr, flush=True)
            continue
        figures[f"{name}_recompute_s"] = shop.recomputed(name, size.rounds)
        figures[f"{name}_times_faster"] = figures[f"{name}_recompute_s"] / figures[f"{name}_refresh_s"]
        keep("tpch", figures)
        said = {each: figures[f"{name}_{each}"] for each in ("load_s", "refresh_s", "recompute_s", "times_faster")}
        print(f"{name}: {', '.join(f'{each} {value:.2f}' for each, value in said.items())}", flush=True)
    return figures | goals(figures)


def goals(figures: Figures) -> Figures:
    faster = [value for name, value in figures.items() if name.endswith("_times_faster")]
    return {
        "twenty_times_faster": sum(each >= 20 for each in faster),
        "least_times_faster": min(faster, default=0.0),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--scale", type=float, default=RECORD.scale)
    parser.add_argument("--queries", default=",".join(QUERIES))
    parser.add_argument("--warm", type=int, default=RECORD.warm)
    parser.add_argument("--rounds", type=int, default=RECORD.rounds)
    parser.add_argument("--resume", action="store_true", help="go on where a run of this size was cut off")
    asked = parser.parse_args()
    size, names = Size(asked.scale, asked.warm, asked.rounds), asked.queries.split(",")
    before = kept("tpch") if asked.resume else {}
    if before and any(before[key] != value for key, value in asdict(size).items()):
        parser.error("the run that was cut off was of another size; run without --resume")
    folder = Path(tempfile.mkdtemp(prefix="penstock-bench-", dir=".")).absolute()
    try:
        with session("benchmark", conf=CONF) as spark:
            figures = measured(Shop(spark, folder, size.scale), names, size, before)
    finally:
        shutil.rmtree(folder)
    missing = [name for name in QUERIES if f"{name}_times_faster" not in figures]
    report("tpch" if size == RECORD and not missing else "tpch-quick", figures, GOALS)
    sys.exit(any(name in missing for name in names))


if __name__ == "__main__":
    main()
