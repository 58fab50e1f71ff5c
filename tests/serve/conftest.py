"""A shop whose answers are served over loopback: what its engine would write is written by hand."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from penstock.log import Log
from penstock.model import load_pipeline
from penstock.serve import Served, Settings
from penstock.serve.server import serving
from penstock.views import SqliteStore, catch_up
from tests.serve.client import Client
from tests.views.shop import Pair, Shop

PIPELINE = """
CREATE STREAM orders (id BIGINT NOT NULL, city STRING, amount DECIMAL(10,2), at TIMESTAMP)
  WITH (event_time = 'at', watermark = '10 seconds');
CREATE VIEW spend AS SELECT city, count(*) AS orders, sum(amount) AS spend FROM orders GROUP BY city;
"""


@dataclass
class Place:
    """A pipeline's folder, its log, and what stands for its engine."""

    folder: Path
    log: Log
    shop: Shop

    @property
    def store(self) -> Path:
        return self.folder / ".penstock/views.sqlite"

    @property
    def served(self) -> Served:
        return Served(self.log, load_pipeline(self.folder), self.store, self.folder / ".penstock")

    def batch(self, **changes: list[Pair]) -> int:
        """A batch that has read all that is in the log, and is in the store."""
        self.shop.until = self.log.mark().next_frame
        frame = self.shop.batch(**changes)
        self.keep()
        return frame

    def keep(self) -> None:
        with SqliteStore(self.store) as store:
            catch_up(self.log, "shop", store)


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Place]:
    folder = tmp_path / "shop"
    (folder / ".penstock").mkdir(parents=True)
    (folder / "pipeline.sql").write_text(PIPELINE)
    with Log.open(folder / ".penstock/log") as log:
        schema = "id BIGINT NOT NULL, city STRING, amount DECIMAL(10,2), at TIMESTAMP"
        log.create_topic("orders", schema, event_time="at")
        shop = Shop(log)
        shop.announce()
        yield Place(folder, log, shop)


@pytest.fixture
def client(place: Place) -> Iterator[Client]:
    place.keep()
    with serving(place.served, Settings(port=0)) as at:
        yield Client(at.url)
