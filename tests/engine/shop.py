"""A shop: orders, customers that move, tags that come and go.

The views have an aggregate of a join, a view over it, a join without a key, a bag, windows that are shown when they are
complete, and sessions; some deletions find nothing, and become dead letters; some orders come too late.
"""

from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any, ClassVar

from pyspark.sql import SparkSession

from penstock.engine.oracle import Oracle
from penstock.engine.sinks import DEAD_LETTERS, late_rows
from penstock.log import Log, Record
from tests.engine.business import Business

DECLARATIONS = """
SET trigger_interval = '20 milliseconds';
SET shuffle_partitions = 2;
CREATE STREAM orders (id BIGINT, customer BIGINT, amount DECIMAL(10,2), at TIMESTAMP)
  WITH (event_time = 'at', watermark = '5 seconds');
CREATE TABLE customers (id BIGINT PRIMARY KEY, city STRING);
CREATE TABLE tags (customer BIGINT, tag STRING);
CREATE VIEW spend AS
  SELECT city, sum(amount) AS spend, count(*) AS orders, max(amount) AS largest
  FROM orders JOIN customers ON customer = customers.id GROUP BY city;
CREATE VIEW sizes AS SELECT orders, count(*) AS cities FROM spend GROUP BY orders;
CREATE VIEW tagged AS SELECT o.id, tag FROM orders o JOIN tags t ON o.customer = t.customer WHERE amount > 20;
CREATE VIEW popular AS SELECT tag, count(*) AS n FROM tags GROUP BY tag;
CREATE VIEW sold WITH (emit = 'final') AS
  SELECT window.start AS since, count(*) AS orders, max(amount) AS largest
  FROM orders GROUP BY window(at, '10 seconds');
CREATE VIEW visits AS
  SELECT customer, session_window.end AS until, count(*) AS orders
  FROM orders GROUP BY customer, session_window(at, '4 seconds');
"""
CUSTOMERS = 12
START = datetime(2024, 1, 1, tzinfo=UTC)


@dataclass
class Shop(Business):
    misses: int = 0
    _orders: int = 0
    _tags: list[dict[str, Any]] = field(default_factory=list)

    declarations = DECLARATIONS
    partitions: ClassVar[int] = 1
    """Of the orders."""
    punctual: ClassVar[tuple[str, ...]] = ("sold", "visits")
    """Views that rows may be late for, and that keep these."""

    def create_topics(self, log: Log) -> None:
        columns = "id BIGINT, customer BIGINT, amount DECIMAL(10,2), at TIMESTAMP"
        log.create_topic("orders", columns, event_time="at", partitions=self.partitions)
        log.create_topic("customers", "id BIGINT, city STRING", key="id")
        log.create_topic("tags", "customer BIGINT, tag STRING")

    def append(self, log: Log, frames: int = 1) -> None:
        for _ in range(frames):
            orders = [self._order() for _ in range(self.random.randrange(1, 4))]
            log.append_all({"orders": orders, "customers": self._moving(), "tags": self._tagging()})

    def _order(self) -> dict[str, Any]:
        self._orders += 1
        amount = Decimal(self.random.randrange(5000)) / 100
        late = self.random.choice([0, 0, 1, 3, 20])
        at = START + timedelta(seconds=self._orders - late)
        return {"id": self._orders, "customer": self.random.randrange(CUSTOMERS), "amount": amount, "at": at}

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

    def check_end(self, log: Log, spark: SparkSession, lineage: int = 1) -> None:
        super().check_end(log, spark, lineage)
        assert sum(1 for _ in log.read(self.topic(DEAD_LETTERS, lineage))) == self.misses
        oracle = Oracle(spark, self.pipeline, log.folder, self.batches(log, lineage)[-1].note["until"])
        for view in self.punctual:
            values: list[Any] = [entry.value for entry in log.read(self.topic(late_rows(view), lineage))]
            late = sorted((value["relation"], value["row"]) for value in values)
            assert late == sorted(oracle.late(view)), view
