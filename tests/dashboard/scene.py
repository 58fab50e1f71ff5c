"""A shop to look at: a log with orders, readers and dead letters, views that change, and the diary of a run. What its
engine would write is written by hand, so that a browser finds it within a moment.
"""

import fcntl
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

from penstock.app.place import place_of
from penstock.app.sinks import redriven
from penstock.log import Log
from penstock.log.consumers import Delivering
from penstock.model import load_pipeline
from penstock.serve import Served, Settings
from penstock.serve.diary import Diary
from penstock.serve.server import serving
from penstock.views import SqliteStore, catch_up
from penstock.views.sinks.delivering import LETTERS, dead_topic
from tests.app.receivers import SECRET, Receiver, receiving
from tests.views.shop import Declared, Pair, Shop

PIPELINE = """
CREATE STREAM purchases (id BIGINT NOT NULL, city STRING, amount DECIMAL(10,2), at TIMESTAMP)
  WITH (event_time = 'at', watermark = '10 seconds', topic = 'orders');
CREATE VIEW spend WITH (webhook = '{webhook}', webhook_secrets = 'secrets')
  AS SELECT city, count(*) AS orders, sum(amount) AS spend FROM purchases GROUP BY city;
CREATE VIEW per_minute AS
  SELECT window(at, '1 minute') AS window, city, count(*) AS orders FROM purchases
  GROUP BY window(at, '1 minute'), city;
"""
COLUMNS = "id BIGINT NOT NULL, city STRING, amount DECIMAL(10,2), at TIMESTAMP"
VIEWS = {
    "spend": Declared("city STRING, orders BIGINT, spend DECIMAL(12,2)", key=("city",)),
    "per_minute": Declared(
        "`window` STRUCT<start: TIMESTAMP, `end`: TIMESTAMP>, city STRING, orders BIGINT", key=("window", "city")
    ),
}
START = datetime(2026, 3, 1, 12, tzinfo=UTC)
ORDERS = 120
MINUTE = timedelta(minutes=1)
CITIES = ("Bern", "Lima", "Oslo", "Rome")


def node(kind: str, title: str, detail: str, **more: Any) -> dict[str, Any]:
    at = f"#{title}" if kind == "operator" else f"{kind}:{title}"
    return {
        "id": at,
        "kind": kind,
        "title": title,
        "detail": detail,
        "level": None,
        "state": None,
        "warning": None,
        **more,
    }


PLAN: dict[str, Any] = {
    "name": "shop",
    "log": "shop/.penstock/log",
    "lineage": 1,
    "nodes": [
        node("source", "purchases", "stream (id, city, amount, at), event time at, watermark 10 seconds"),
        node("operator", "aggregate", "aggregate by city: count(1) AS orders, sum(amount) AS spend", level=1,
             state="unbounded: it grows with purchases",
             warning="the state of #1 is unbounded: it grows with purchases"),
        node("operator", "windows", "windows of 1 minute by city: count(1) AS orders", level=1,
             state="freed as time goes on"),
        node("view", "spend", "(city, orders, spend), key city; a table and its changes", level=0),
        node("view", "per_minute", "(window, city, orders), key window, city; a table and its changes", level=0),
    ],
    "edges": [
        ["source:purchases", "#aggregate"],
        ["source:purchases", "#windows"],
        ["#aggregate", "view:spend"],
        ["#windows", "view:per_minute"],
    ],
}  # fmt: skip


@dataclass
class Scene:
    """The shop, and the address at which it is served."""

    folder: Path
    log: Log
    shop: Shop
    diary: Diary
    receiver: Receiver
    url: str = ""

    @contextmanager
    def served(self, settings: Settings) -> Iterator[None]:
        home = self.folder / ".penstock"
        place, pipeline = place_of(self.folder), load_pipeline(self.folder)

        def resend(view: str, kind: str, limit: int, stop: Callable[[], bool]) -> int:
            return redriven(place, pipeline, self.log, view, kind=kind, limit=limit, stop=stop)[kind]

        served = Served(self.log, pipeline, place.store, home, sinks=place.sinks, resend=resend)
        with serving(served, settings) as at:
            self.url = at.url
            yield

    def batch(self, **changes: list[Pair]) -> None:
        """A batch that has read all that is in the log, is in the store and in the diary."""
        self.shop.until = self.log.mark().next_frame
        frame = self.shop.batch(**changes)
        with SqliteStore(self.folder / ".penstock/views.sqlite") as store:
            catch_up(self.log, "shop", store)
        self.diary.add([self._told(frame, {view: len(pairs) for view, pairs in changes.items()})])

    def _told(self, frame: int, changes: dict[str, int]) -> dict[str, Any]:
        batch = self.shop.batches - 1
        work = 0.05 + 0.02 * (batch % 4)
        return {
            "batch": batch,
            "frame": frame,
            "until": frame,
            "at": datetime.now(UTC).isoformat(),
            "seconds": work + 0.05,
            "phases": {"planning": 0.01, "computing": work, "appending": 0.02, "committing": 0.015, "storing": 0.005},
            "records": {"purchases": 30},
            "changes": changes,
            "late": {"per_minute": batch % 2},
            "letters": 0,
            "watermarks": {"purchases": (START + 5 * MINUTE).isoformat()},
            "state_bytes": 40_000 + 2_000 * batch,
        }


def order(number: int) -> dict[str, Any]:
    return {
        "id": number,
        "city": CITIES[number % 4],
        "amount": Decimal(f"{number % 7}.50"),
        "at": START + number * MINUTE / 20,
    }


def spend(city: str, orders: int) -> dict[str, Any]:
    return {"city": city, "orders": orders, "spend": Decimal(f"{orders * 3}.50")}


def minute(at: int, city: str, orders: int) -> dict[str, Any]:
    window = {"start": START + at * MINUTE, "end": START + (at + 1) * MINUTE}
    return {"window": window, "city": city, "orders": orders}


@contextmanager
def scene(folder: Path) -> Iterator[Scene]:
    """The shop, with some batches behind it, as if its run went on."""
    home = folder / ".penstock"
    (home / "lineages/1").mkdir(parents=True)
    (folder / "secrets").write_text(f"{SECRET}\n")
    with Log.open(home / "log") as log, open(home / "lock", "w") as lock, receiving() as receiver:
        (folder / "pipeline.sql").write_text(PIPELINE.format(webhook=receiver.url))
        fcntl.flock(lock, fcntl.LOCK_EX)
        log.create_topic("orders", COLUMNS, event_time="at")
        for first in range(0, ORDERS, 30):
            log.append("orders", [order(number) for number in range(first, first + 30)])
        _read(log)
        _give_up(log)
        diary = Diary(home / "lineages/1")
        diary.describe(PLAN)
        shop = Shop(log, views=VIEWS)
        shop.announce()
        made = Scene(folder, log, shop, diary, receiver)
        made.batch(
            spend=[(None, spend(city, 30)) for city in CITIES],
            per_minute=[
                (None, minute(at, city, 2 + (at * (n + 2)) % 7)) for at in range(6) for n, city in enumerate(CITIES)
            ],
        )
        for n in range(1, 12):
            made.batch(spend=[(spend("Bern", 29 + n), spend("Bern", 30 + n))])
        yield made


def _give_up(log: Log) -> None:
    """Two dead letters of a webhook."""
    topic = dead_topic("shop", "spend", "webhook")
    log.create_topic(topic, LETTERS, own=True)
    died = {"lineage": 1, "frame": 5, "number": 0, "attempts": 20, "reason": "It answered 500 Internal Server Error"}
    log.append(topic, [{"id": f"msg_{n}", "body": '{"type": "spend.inserted"}', **died} for n in range(2)])


def _read(log: Log) -> None:
    """A group that has read half of the orders, and a queue with three dead letters."""
    with log.group("billing").join("orders") as member:
        for _ in member.poll(limit=60):
            pass
        member.commit()
    queue = log.create_queue("parcels", "orders", Delivering(deliveries=2))
    with queue.worker() as worker:
        for message in worker.take(10):
            if message.entry.offset < 3:
                message.reject("the address cannot be found")
            else:
                message.acknowledge()
    assert isinstance(queue.letters(limit=1)[0].headers["penstock.reason"], bytes)
