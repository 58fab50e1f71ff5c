"""A shop with a pipeline in a folder: records that come in, and what must be true of the log and the store.

Everything random comes from a seed. The views have an aggregate of a join, a view over it, a join without a key, and a
bag; some deletions find nothing, and become dead letters.
"""

import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from copy import deepcopy
from dataclasses import dataclass, field
from decimal import Decimal
from pathlib import Path
from random import Random
from typing import Any

from pyspark.sql import SparkSession

from penstock.engine.oracle import Oracle
from penstock.engine.sinks import DEAD_LETTERS
from penstock.log import Log, Record
from penstock.log.frame import Header
from penstock.model import Pipeline, load_pipeline
from penstock.views import ViewReader
from tests.views.shop import counted, folded

DECLARATIONS = """
SET trigger_interval = '20 milliseconds';
SET shuffle_partitions = 2;
CREATE STREAM orders (id BIGINT, customer BIGINT, amount DECIMAL(10,2));
CREATE TABLE customers (id BIGINT PRIMARY KEY, city STRING);
CREATE TABLE tags (customer BIGINT, tag STRING);
CREATE VIEW spend AS
  SELECT city, sum(amount) AS spend, count(*) AS orders, max(amount) AS largest
  FROM orders JOIN customers ON customer = customers.id GROUP BY city;
CREATE VIEW sizes AS SELECT orders, count(*) AS cities FROM spend GROUP BY orders;
CREATE VIEW tagged AS SELECT o.id, tag FROM orders o JOIN tags t ON o.customer = t.customer WHERE amount > 20;
CREATE VIEW popular AS SELECT tag, count(*) AS n FROM tags GROUP BY tag;
"""
# Snapshots, and what cleans up after them, come every few batches instead of every few minutes. The compiler that pays
# for long runs costs short ones more than it gives.
SETTINGS: Mapping[str, str] = {
    "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
    "spark.sql.streaming.minBatchesToRetain": "2",
    "spark.sql.streaming.stateStore.maintenanceInterval": "300ms",
    "spark.sql.streaming.stateStore.minDeltasForSnapshot": "2",
}
CUSTOMERS = 12


@dataclass
class Shop:
    folder: Path
    random: Random
    settings: Mapping[str, str]
    misses: int = 0
    _orders: int = 0
    _tags: list[dict[str, Any]] = field(default_factory=list)

    @staticmethod
    def made(folder: Path, seed: int, settings: Mapping[str, str] = SETTINGS) -> "Shop":
        folder.mkdir(parents=True)
        shop = Shop(folder, Random(seed), settings)
        shop.declare(max_records_per_batch=8)
        return shop

    def copied(self, folder: Path) -> "Shop":
        """The same shop in another folder; from now on, they go their own ways."""
        shutil.copytree(self.folder, folder)
        shop = deepcopy(self)
        shop.folder = folder
        return shop

    def declare(self, *, max_records_per_batch: int) -> None:
        settings = {"max_records_per_batch": str(max_records_per_batch), **self.settings}
        text = "".join(f"SET '{name}' = '{value}';\n" for name, value in settings.items())
        (self.folder / "pipeline.sql").write_text(text + DECLARATIONS)

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

    @contextmanager
    def opened(self) -> Iterator[Log]:
        with Log.open(self.home / "log") as log:
            log.create_topic("orders", "id BIGINT, customer BIGINT, amount DECIMAL(10,2)")
            log.create_topic("customers", "id BIGINT, city STRING", key="id")
            log.create_topic("tags", "customer BIGINT, tag STRING")
            yield log

    def append(self, log: Log, frames: int = 1) -> None:
        """Frames with a few records each."""
        for _ in range(frames):
            orders = [self._order() for _ in range(self.random.randrange(1, 4))]
            log.append_all({"orders": orders, "customers": self._moving(), "tags": self._tagging()})

    def _order(self) -> dict[str, Any]:
        self._orders += 1
        amount = Decimal(self.random.randrange(5000)) / 100
        return {"id": self._orders, "customer": self.random.randrange(CUSTOMERS), "amount": amount}

    def _moving(self) -> list[dict[str, Any] | Record]:
        customer = self.random.randrange(CUSTOMERS)
        if self.random.random() < 0.2:
            return [Record({"id": customer}, deleted=True)]
        return [{"id": customer, "city": self.random.choice(["Bern", "Basel", "Genf", None])}]

    def _tagging(self) -> list[dict[str, Any] | Record]:
        chance = self.random.random()
        if chance < 0.1:
            self.misses += 1
            return [Record({"customer": 0, "tag": "never given"}, deleted=True)]
        if chance < 0.4 and self._tags:
            return [Record(self._tags.pop(self.random.randrange(len(self._tags))), deleted=True)]
        self._tags.append({"customer": self.random.randrange(CUSTOMERS), "tag": self.random.choice("abc")})
        return [self._tags[-1]]

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
        assert sum(1 for _ in log.read(self.topic(DEAD_LETTERS, lineage))) == self.misses
