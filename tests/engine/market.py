"""A shop at a market: its orders, visitors that look around before them, and prices whose history is kept.

The views wait for time in every way there is: windows in slices, frames that slide, joins within a range and as of a
time, windows and sessions that late rows correct, late rows that are only counted.
"""

from collections import Counter
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any

from pyspark.sql import SparkSession

from penstock.engine.batches import Committed
from penstock.engine.lineage import Lineage
from penstock.engine.run import Run, prepared
from penstock.engine.sinks import late_rows
from penstock.log import Log, Record
from tests.engine.shop import CUSTOMERS, START, Shop
from tests.views.shop import folded

CORRECT = "late = 'correct', allowed_lateness = '6 seconds'"
DECLARATIONS = f"""
CREATE STREAM looks (customer BIGINT, at TIMESTAMP) WITH (event_time = 'at', watermark = '3 seconds');
CREATE TABLE prices (customer BIGINT PRIMARY KEY, price BIGINT, since TIMESTAMP)
  WITH (event_time = 'since', history = 'all_prices', watermark = '4 seconds');
CREATE VIEW hops WITH (emit = 'final') AS
  SELECT customer % 3 AS part, window.end AS until, count(*) AS orders, sum(amount) AS spend, max(id) AS last
  FROM orders GROUP BY customer % 3, window(at, '12 seconds', '3 seconds');
CREATE VIEW hops_corrected WITH ({CORRECT}) AS
  SELECT window.end AS until, count(*) AS orders, max(id) AS last
  FROM orders GROUP BY window(at, '8 seconds', '4 seconds');
CREATE VIEW sold_corrected WITH (emit = 'final', {CORRECT}) AS
  SELECT window.start AS since, count(*) AS orders FROM orders GROUP BY window(at, '10 seconds');
CREATE VIEW visits_corrected WITH (emit = 'final', {CORRECT}) AS
  SELECT customer % 2 AS part, session_window AS visit, count(*) AS orders, max(id) AS last
  FROM orders GROUP BY customer % 2, session_window(at, '2 seconds');
CREATE VIEW rolling WITH (emit = 'final') AS
  SELECT id, sum(amount) OVER last AS spend, count(*) OVER last AS orders FROM orders
  WINDOW last AS (PARTITION BY customer % 2 ORDER BY at RANGE BETWEEN INTERVAL 5 SECONDS PRECEDING AND CURRENT ROW);
CREATE VIEW looked WITH (emit = 'final') AS
  SELECT o.id, l.at FROM orders o LEFT JOIN looks l
  ON o.customer = l.customer AND l.at BETWEEN o.at - INTERVAL 6 SECONDS AND o.at;
CREATE VIEW priced WITH (emit = 'final') AS
  SELECT id, price FROM orders o LEFT ASOF JOIN all_prices p
  MATCH_CONDITION (o.at >= p.since) ON o.customer = p.customer;
CREATE VIEW dropped WITH (emit = 'final', late = 'drop') AS
  SELECT window.end AS until, count(*) AS orders FROM orders GROUP BY window(at, '5 seconds');
"""


def _late(log: Log, pipeline: str, lineage: int) -> Counter[str]:
    """How many rows came too late for each view, as the frames of all batches say."""
    counted = Counter[str]()
    for header in log.frames():
        if (header.note.get("pipeline"), header.note.get("lineage")) == (pipeline, lineage):
            counted.update(header.note.get("late", {}))
    return counted


@dataclass
class Market(Shop):
    declarations = Shop.declarations + DECLARATIONS
    punctual = (*Shop.punctual, "hops", "hops_corrected", "sold_corrected", "visits_corrected", "rolling", "looked")

    def create_topics(self, log: Log) -> None:
        super().create_topics(log)
        log.create_topic("looks", "customer BIGINT, at TIMESTAMP", event_time="at")
        log.create_topic("prices", "customer BIGINT, price BIGINT, since TIMESTAMP", key="customer", event_time="since")

    def append(self, log: Log, frames: int = 1) -> None:
        for _ in range(frames):
            super().append(log)
            log.append_all(
                {"looks": [self._look() for _ in range(self.random.randrange(1, 3))], "prices": [self._price()]}
            )

    def _at(self) -> datetime:
        return START + timedelta(seconds=self._orders - self.random.choice([0, 0, 1, 2, 15]))

    def _look(self) -> dict[str, Any]:
        return {"customer": self.random.randrange(CUSTOMERS), "at": self._at()}

    def _price(self) -> dict[str, Any] | Record:
        row = {"customer": self.random.randrange(CUSTOMERS), "price": self.random.randrange(9), "since": self._at()}
        return Record(row, deleted=self.random.random() < 0.2)

    def check_end(self, log: Log, spark: SparkSession, lineage: int = 1) -> None:
        """Also a run that nobody killed, in steps of its own, has found all that, and left the same out."""
        super().check_end(log, spark, lineage)
        undisturbed = self._undisturbed(log, spark)
        for name in [*(view.name for view in self.pipeline.views), *map(late_rows, self.punctual)]:
            assert folded(log, undisturbed.topic(name)) == folded(log, self.topic(name, lineage)), name
        counted = _late(log, undisturbed.pipeline, undisturbed.number)
        assert _late(log, self.pipeline.name, lineage) == counted and counted["dropped"] > 0

    def _undisturbed(self, log: Log, spark: SparkSession) -> Lineage:
        known, session = self.pipeline, spark.newSession()
        steps = replace(known.options, max_records_per_batch=50)
        home = self.folder.with_name("undisturbed")
        ready = prepared(session, replace(known, name=home.name, options=steps), log, home)
        done = list[Committed]()
        run = Run(session, log, home, ready, done.append)
        run.wait(run.start(once=True))
        assert len(done) not in (1, len(self.batches(log)))
        return ready.lineage
