"""A business with a pipeline in a folder: what comes in, and what must be true of the log and the store.

Everything random comes from a seed.
"""

import shutil
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from copy import deepcopy
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import ClassVar, Self

from pyspark.sql import SparkSession

from penstock.engine.oracle import Oracle
from penstock.log import Log
from penstock.log.frame import Header
from penstock.model import Pipeline, load_pipeline
from penstock.views import ViewReader
from tests.views.shop import counted, folded

# Snapshots, and what cleans up after them, come every few batches instead of every few minutes. The compiler that pays
# for long runs costs short ones more than it gives.
SETTINGS: Mapping[str, str] = {
    "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
    "spark.sql.streaming.minBatchesToRetain": "2",
    "spark.sql.streaming.stateStore.maintenanceInterval": "300ms",
    "spark.sql.streaming.stateStore.minDeltasForSnapshot": "2",
}


@dataclass
class Business(ABC):
    folder: Path
    random: Random
    settings: Mapping[str, str]

    declarations: ClassVar[str]

    @classmethod
    def made(cls, folder: Path, seed: int, settings: Mapping[str, str] = SETTINGS) -> Self:
        folder.mkdir(parents=True)
        business = cls(folder, Random(seed), settings)
        business.declare(max_records_per_batch=8)
        return business

    def copied(self, folder: Path) -> Self:
        """The same in another folder; from now on, they go their own ways."""
        shutil.copytree(self.folder, folder)
        copy = deepcopy(self)
        copy.folder = folder
        return copy

    def declare(self, *, max_records_per_batch: int) -> None:
        settings = {"max_records_per_batch": str(max_records_per_batch), **self.settings}
        text = "".join(f"SET '{name}' = '{value}';\n" for name, value in settings.items())
        (self.folder / "pipeline.sql").write_text(text + self.declarations)

    @property
    def pipeline(self) -> Pipeline:
        return load_pipeline(self.folder)

    @property
    def home(self) -> Path:
        return self.folder / ".penstock"

    @property
    def store(self) -> Path:
        return self.home / "views.sqlite"

    @property
    def lineage(self) -> Path:
        return self.home / "lineages" / "1"

    def topic(self, view: str, lineage: int = 1) -> str:
        return f"{self.folder.name}.{lineage}.{view}"

    # What comes in

    @abstractmethod
    def create_topics(self, log: Log) -> None:
        """Those that the pipeline reads."""

    @abstractmethod
    def append(self, log: Log, frames: int = 1) -> None:
        """Frames with a few records each."""

    @contextmanager
    def opened(self) -> Iterator[Log]:
        with Log.open(self.home / "log") as log:
            self.create_topics(log)
            yield log

    # What must be true

    def batches(self, log: Log, lineage: int = 1) -> list[Header]:
        """The frames of the batches: each number is there once, and each begins to read where the one before ended."""
        found = [header for header in log.frames() if header.producer == f"{self.folder.name}/{lineage}"]
        starts = [0, *(header.note["until"] for header in found)]
        assert [header.note["batch"] for header in found] == list(range(len(found)))
        assert [header.note["from"] for header in found] == starts[:-1]
        return found

    def check_store(self, log: Log) -> int:
        """The store holds what the topics add up to at its position; the last batch that it has taken, -1 for none."""
        if not self.store.exists():
            return -1
        with ViewReader(self.store) as reader:
            position = reader.position()
            answers = {view.name: reader.rows(view.name) for view in reader.views()}
        if position is None or position.batch is None:
            return -1
        for view, answer in answers.items():
            assert counted(answer) == folded(log, self.topic(view, position.lineage), until=position.frame), view
        return position.batch

    def check_end(self, log: Log, spark: SparkSession, lineage: int = 1) -> None:
        """Everything that came in was read, once: the topics add up to what Spark says, and the store holds that."""
        last = self.batches(log, lineage)[-1].note
        topics = {relation.topic for relation in self.pipeline.relations}
        unread = [each.frame for each in log.frames(last["until"]) if any(b.topic in topics for b in each.blocks)]
        assert (unread, self.check_store(log)) == ([], last["batch"])
        oracle = Oracle(spark, self.pipeline, log.folder, last["until"])
        for view in self.pipeline.views:
            wanted = counted(oracle.rows(view.name).to_pylist())
            assert folded(log, self.topic(view.name, lineage)) == wanted, view.name
