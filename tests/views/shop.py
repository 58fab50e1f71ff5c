"""A shop without an engine: it writes into the log what the engine of a pipeline writes, and knows what is right.

`folded` is the oracle: it reads a change topic record by record, in the plainest way.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from random import Random
from typing import Any

from penstock.log import Log, Record

Row = dict[str, Any]
Pair = tuple[Row | None, Row | None]
CITIES = ("Bern", "Basel", "Genf", None, "Zug", "")
NAMES = ("a", "b", "it's", "a/b=c", "Zürich")


@dataclass(frozen=True)
class Declared:
    schema: str
    key: tuple[str, ...] = ()
    store: str = "table"
    partition_by: tuple[str, ...] = ()
    index: tuple[tuple[str, ...], ...] = ()


VIEWS = {
    "spend": Declared("city STRING, orders BIGINT, spend DECIMAL(12,2)", key=("city",)),
    "names": Declared("name STRING, age INT"),
}
FILES = {
    "spend": replace(VIEWS["spend"], store="files"),
    "names": replace(VIEWS["names"], store="files", partition_by=("name",)),
}
"""Views that only grow."""


def spend(city: str | None, orders: int, amount: str = "1.00") -> Row:
    return {"city": city, "orders": orders, "spend": Decimal(amount)}


def name(name: str | None, age: int | None = None) -> Row:
    return {"name": name, "age": age}


class Shop:
    """A lineage of a pipeline, as the log sees it."""

    def __init__(
        self, log: Log, *, pipeline: str = "shop", lineage: int = 1, views: Mapping[str, Declared] = VIEWS
    ) -> None:
        self.log = log
        self.pipeline = pipeline
        self.lineage = lineage
        self.views = views
        self.batches = 0
        self.until: int | None = None
        """Up to which frame the next batch has read its sources, where that matters."""
        for view, declared in views.items():
            if declared.store != "none":
                log.create_topic(self.topic(view), declared.schema, key=declared.key, own=True)

    def topic(self, view: str) -> str:
        return f"{self.pipeline}.{self.lineage}.{view}"

    def announce(self) -> int:
        """Makes this the lineage that readers see."""
        views = {
            view: {
                "key": list(each.key),
                "store": each.store,
                "partition_by": list(each.partition_by),
                "index": [list(columns) for columns in each.index],
            }
            for view, each in self.views.items()
        }
        note = {"pipeline": self.pipeline, "current": self.lineage, "views": views, "reads": []}
        return self.log.append_all({}, producer=self.pipeline, sequence=self.lineage, note=note).frame

    def batch(self, **changes: Sequence[Pair]) -> int:
        """One batch: for each view the rows that leave and those that come."""
        rows = {self.topic(view): [self._record(view, *pair) for pair in pairs] for view, pairs in changes.items()}
        note = {
            "pipeline": self.pipeline,
            "lineage": self.lineage,
            "batch": self.batches,
            "from": self.batches,
            "until": self.batches + 1 if self.until is None else self.until,
        }
        producer = f"{self.pipeline}/{self.lineage}"
        frame = self.log.append_all(rows, producer=producer, sequence=self.batches, note=note).frame
        self.batches += 1
        return frame

    def _record(self, view: str, old: Row | None, new: Row | None) -> Record:
        key = self.views[view].key
        if new is not None:
            return Record(new, replaces=old)
        assert old is not None
        return Record({c: old[c] for c in key}, deleted=True, replaces=old) if key else Record(old, deleted=True)


class Story:
    """Random batches of a shop that always fit what was before; of a shop with files, rows only come."""

    def __init__(self, shop: Shop, seed: int) -> None:
        self._shop = shop
        self._random = Random(seed)
        self._spend: dict[str | None, Row] = {}
        self._names: list[Row] = []
        self._grows = shop.views["names"].store == "files"

    def go_on(self, batches: int, *, rows: int = 4) -> None:
        for _ in range(batches):
            self._shop.batch(**self._changes(self._random.randrange(rows + 1)))

    def _changes(self, rows: int) -> dict[str, list[Pair]]:
        if self._grows:
            came = [spend(f"{self._shop.batches}.{at}", at, f"{at}.25") for at in range(rows)]
            names = [name(self._random.choice(NAMES), self._random.choice([1, None])) for _ in range(rows)]
            return {"spend": [(None, row) for row in came], "names": [(None, row) for row in names]}
        cities = self._random.sample(CITIES, min(rows, len(CITIES)))
        changes = {"spend": [self._spent(city) for city in cities], "names": self._named(rows)}
        return {view: [pair for pair in pairs if pair != (None, None)] for view, pairs in changes.items()}

    def _spent(self, city: str | None) -> Pair:
        old = self._spend.pop(city, None)
        if self._random.random() < 0.3:
            return old, None
        new = self._spend[city] = spend(city, self._random.randrange(9), f"{self._random.randrange(9999)}.25")
        return old, new

    def _named(self, rows: int) -> list[Pair]:
        came = [name(self._random.choice("ab"), self._random.choice([1, None])) for _ in range(rows)]
        gone = [self._names.pop(self._random.randrange(len(self._names))) for _ in range(min(rows, len(self._names)))]
        gone = [row for row in gone if row not in came or self._names.append(row)]  # type: ignore[func-returns-value]
        self._names += came
        return [(None, row) for row in came] + [(row, None) for row in gone]


def counted(rows: Iterable[Mapping[str, Any]]) -> Counter[str]:
    """How often each row occurs."""
    return Counter(repr(dict(row)) for row in rows)


def folded(log: Log, topic: str, *, until: int | None = None) -> Counter[str]:
    """What a change topic adds up to, up to and with a frame."""
    keyed: dict[object, Any] = {}
    bag: Counter[str] = Counter()
    has_key = bool(log.topic(topic).key)
    for entry in log.read(topic):
        if until is not None and entry.place.frame > until:
            break
        assert isinstance(entry.value, dict)
        if has_key:
            keyed[entry.key] = None if entry.deleted else entry.value
        else:
            bag[repr(entry.value)] += -1 if entry.deleted else 1
    return counted(row for row in keyed.values() if row is not None) if has_key else +bag
