"""What a batch costs on a cluster: 1, 2 and 4 executors of one core, and the model from which others are planned.

`python -m benchmarks.scale [--quick]`. A standalone cluster of its own on this machine, an embedded log that all its
processes see. Plans of one and of four levels, with few and with many partitions, over small and large batches. With
one executor all tasks run one after the other, which gives the costs of the model; two and four are held against what
it predicts. Where there are fewer cores than executors they show what more executors cost, and not what they bring.
"""

import argparse
import math
import os
import shutil
import statistics
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import product
from pathlib import Path

import numpy as np
from pyspark.sql import SparkSession

from benchmarks._report import keep, report
from benchmarks.engine import EVENTS, benched, per_batch, random_events
from penstock.engine import session
from services.spark import spark_cluster_in

EXECUTORS = (1, 2, 4)
LEVELS, PARTITIONS = (1, 4), (2, 8)
KEYS, WARM = 50_000, 4
CONF = {"spark.executor.memory": "1g", "spark.executor.cores": "1"}


@dataclass(frozen=True)
class Job:
    """A batch: over how many levels, in how many partitions, of how many rows."""

    levels: int
    partitions: int
    rows: int

    @property
    def name(self) -> str:
        return f"levels_{self.levels}_partitions_{self.partitions}_rows_{self.rows}"

    def sql(self) -> str:
        """Each level counts the answer of the one before under another key."""
        views = ["CREATE VIEW v1 WITH (store = 'none') AS SELECT k, count(*) AS n1 FROM events GROUP BY k;"]
        views += [
            f"CREATE VIEW v{at} WITH (store = 'none') AS SELECT n{at - 1}, count(*) AS n{at} FROM v{at - 1} "
            f"GROUP BY n{at - 1};"
            for at in range(2, self.levels + 1)
        ]
        return EVENTS + "".join(views)


@dataclass(frozen=True)
class Model:
    """Milliseconds: of every batch, of a level, of a partition of a level, of a row."""

    batch: float
    level: float
    partition: float
    row: float

    def predicted(self, job: Job, slots: int) -> float:
        """A level's tasks come in waves, and rows are spread over all slots."""
        waves = math.ceil(job.partitions / slots)
        return self.batch + job.levels * (self.level + waves * self.partition) + job.rows * self.row / slots


def fitted(took: Mapping[Job, float]) -> Model:
    """The model that is nearest to what was measured in one slot, where tasks come one after the other."""
    terms = [[1, job.levels, job.levels * job.partitions, job.rows] for job in took]
    found, *_ = np.linalg.lstsq(np.array(terms, dtype=float), np.array(list(took.values())), rcond=None)
    return Model(*map(float, found))


def jobs(large: int) -> list[Job]:
    """Many rows go through one level; through several they would be fewer behind each."""
    small = [Job(levels, partitions, 1000) for levels, partitions in product(LEVELS, PARTITIONS)]
    return small + [Job(1, partitions, large) for partitions in PARTITIONS]


@dataclass(frozen=True)
class Size:
    """How large the large batches are, how many batches a job has, how often it is run after it was once for warmth."""

    large: int
    batches: int
    rounds: int


def measured(master: str, folder: Path, size: Size) -> dict[Job, float]:
    """Milliseconds of a batch of each job: the median of the rounds, and of the batches after the first few."""
    found: dict[Job, list[float]] = {job: [] for job in jobs(size.large)}
    with session("scale", master=master, conf=CONF) as spark:
        for at in range(size.rounds + 1):
            print(f"{master}: round {at} of {size.rounds} ...", flush=True)
            for job, times in found.items():
                times.append(run(spark, folder, job, size.batches))
    return {job: statistics.median(times[1:]) for job, times in found.items()}


def run(spark: SparkSession, folder: Path, job: Job, batches: int) -> float:
    spark.conf.set("spark.sql.shuffle.partitions", job.partitions)
    with benched(spark, folder / "bench") as bench:
        bench.log.create_topic("events", "k BIGINT, v BIGINT")
        for seed in range(batches):
            bench.log.append("events", random_events(job.rows, KEYS, seed))
        return 1000 * per_batch(bench.penstock(job.name, job.sql(), job.rows), WARM)


def scaled(folder: Path, size: Size) -> dict[str, float]:
    figures: dict[str, float] = {}
    local = measured("local[1]", folder, size)
    model: Model | None = None
    for executors in EXECUTORS:
        cluster = spark_cluster_in(folder / f"{executors}", workers=executors, dies_with_us=True)
        cluster.start()
        try:
            took = measured(cluster.url, folder, size)
        finally:
            cluster.stop()
        if model is None:
            model = fitted(took)
            figures |= {f"{name}_ms": getattr(model, name) for name in ("batch", "level", "partition")}
            figures |= {"row_us": 1000 * model.row}
            figures |= {f"local_{job.name}_ms": local[job] for job in took}
        for job, milliseconds in took.items():
            figures[f"executors_{executors}_{job.name}_ms"] = milliseconds
            figures[f"executors_{executors}_{job.name}_against_model"] = milliseconds / model.predicted(job, executors)
        keep("scale", figures)
    return figures


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="smaller; for a look, not for the record")
    quick = parser.parse_args().quick
    folder = Path(tempfile.mkdtemp(prefix="penstock-bench-", dir=".")).absolute()
    try:
        figures = scaled(folder, Size(20_000, 8, 1) if quick else Size(200_000, 16, 3))
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    if (cores := os.cpu_count() or 1) < max(EXECUTORS):
        print(f"{cores} cores for up to {max(EXECUTORS)} executors and the driver: this shows overhead, not speed-up.")
    report("scale-quick" if quick else "scale", figures, {})


if __name__ == "__main__":
    main()
