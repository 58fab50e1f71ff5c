"""The demo: a shop's pipeline at work. Orders arrive, customers move, an order is taken back; three views follow.

It is the real thing in small: a folder with a `pipeline.sql`, its log, a run with its store following, and in the end
the judgement of Spark's batch engine.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from decimal import Decimal
from functools import partial
from itertools import count
from pathlib import Path
from random import Random
from time import monotonic, sleep
from typing import Any

from penstock.app.pipelines import Opened, Setting, Working, opened, working
from penstock.app.verifying import Verdict, verdicts
from penstock.engine.asked import told_since
from penstock.errors import ViewError
from penstock.log import Appended, Record
from penstock.log.protocol import OrderedLog
from penstock.views import ViewReader

PIPELINE = """\
CREATE TABLE orders (id BIGINT PRIMARY KEY, customer BIGINT, amount DECIMAL(10,2));
CREATE TABLE customers (id BIGINT PRIMARY KEY, name STRING, city STRING);

CREATE VIEW spend_by_city AS
  SELECT city, count(*) AS orders, sum(amount) AS spend
  FROM orders JOIN customers ON customer = customers.id
  GROUP BY city;

CREATE VIEW big_cities AS
  SELECT city, spend FROM spend_by_city WHERE spend >= 50;

CREATE VIEW total AS
  SELECT count(*) AS orders, sum(amount) AS spend FROM orders;
"""
NAMES = {1: "ann", 2: "bob", 3: "cleo"}
CITIES = ("Rome", "Oslo", "Lima", "Bern", "Kyiv")
POLL_SECONDS = 0.02
EVERY_SECONDS = 1.0
"""So often something happens in a shop that goes on."""


@dataclass(frozen=True)
class Step:
    """Something that happens in the shop, and the records that tell of it."""

    title: str
    records: Mapping[str, Sequence[Mapping[str, Any] | Record]]


@dataclass(frozen=True)
class Table:
    """What a view holds."""

    view: str
    columns: tuple[str, ...]
    key: tuple[str, ...]
    rows: tuple[Mapping[str, Any], ...]


def order(number: int, customer: int, amount: str) -> Mapping[str, Any]:
    return {"id": number, "customer": customer, "amount": Decimal(amount)}


def customer(number: int, city: str) -> Mapping[str, Any]:
    return {"id": number, "name": NAMES[number], "city": city}


STEPS = (
    Step(
        "Three customers, and their first orders.",
        {
            "customers": [customer(1, "Rome"), customer(2, "Oslo"), customer(3, "Rome")],
            "orders": [order(1, 1, "12.50"), order(2, 2, "30.00"), order(3, 3, "7.50")],
        },
    ),
    Step("More orders: sums rise, Oslo is a big city now.", {"orders": [order(4, 1, "20.00"), order(5, 2, "25.00")]}),
    Step("bob moves to Rome, and his orders go with him. The total stays.", {"customers": [customer(2, "Rome")]}),
    Step(
        "ann moves to Lima and orders there, in one transaction.",
        {"customers": [customer(1, "Lima")], "orders": [order(6, 1, "40.00")]},
    ),
    Step("Order 2 is taken back.", {"orders": [Record({"id": 2}, deleted=True)]}),
)


Happening = Mapping[str, Sequence[Mapping[str, Any] | Record]]


def happenings(seed: int = 1) -> Iterator[Happening]:
    """What happens in the shop after the steps, for ever: orders, now and then one that is taken back, or a move."""
    random = Random(seed)
    for number in count(7):
        bought = order(number, random.choice(list(NAMES)), f"{random.randrange(5, 60)}.{random.choice(('00', '50'))}")
        yield {"orders": [bought]}
        if number % 4 == 0:
            yield {"customers": [customer(random.choice(list(NAMES)), random.choice(CITIES))]}
        if number % 3 == 0:
            yield {"orders": [Record({"id": number - 2}, deleted=True)]}


class Play:
    """The pipeline under way."""

    def __init__(self, shop: Opened, at: Working) -> None:
        self.shop = shop
        self._at = at
        self._query = at.run.start(once=False)

    def views_after(self, step: Step) -> tuple[Table, ...]:
        """Lets the step happen, and waits until the store holds what follows from it."""
        done = self._at.log.append_all(step.records)
        assert isinstance(done, Appended), "its log lies in a folder"
        while not _has_read(self.shop.place.store, done.frame):
            if not self._query.isActive:
                self._at.run.wait(self._query)  # raises why
            sleep(POLL_SECONDS)
        return _views(self.shop)

    def verdicts(self) -> Iterator[Verdict]:
        """Ends the run; then what Spark's batch engine says of each view."""
        self._at.run.wait(self._query, stop=lambda: True)
        return verdicts(self.shop, self.shop.pipeline.views, self._at.log, self._at.spark)

    @property
    def log(self) -> OrderedLog:
        return self._at.log

    def go_on(self, stop: Callable[[], bool]) -> None:
        """Runs again, while things happen in the shop, until `stop` says so."""
        coming, due_at = happenings(), monotonic()
        query = self._query = self._at.run.start(once=False)

        def stopped() -> bool:
            nonlocal due_at
            self._at.chronicle.write(partial(told_since, query))
            if stop():  # no batch is cut off: Spark would tell of that
                return not query.status["isTriggerActive"]
            if monotonic() >= due_at:
                self._at.log.append_all(next(coming))
                due_at = monotonic() + EVERY_SECONDS
            return False

        self._at.run.wait(query, stop=stopped)


@contextmanager
def demo(folder: Path) -> Iterator[Play]:
    """The shop's pipeline at work, in an empty folder; when this is left, Spark is gone."""
    shop = _made(folder / "shop")
    with working(shop) as at:
        yield Play(shop, at)


def _made(folder: Path) -> Opened:
    folder.mkdir()
    (folder / "pipeline.sql").write_text(PIPELINE)
    return opened(folder, Setting(master="local[2]"))


def _has_read(store: Path, frame: int) -> bool:
    """Whether the store holds what follows from the records of the frame."""
    with suppress(ViewError), ViewReader(store) as reader:  # at first there is no store
        position = reader.position()
        return position is not None and position.until > frame
    return False


def _views(shop: Opened) -> tuple[Table, ...]:
    with ViewReader(shop.place.store) as reader:
        answers = [reader.rows(view.name) for view in shop.pipeline.views]
    return tuple(Table(each.view.name, each.view.schema.names, each.view.key, tuple(each)) for each in answers)
