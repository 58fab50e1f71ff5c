"""Joins that are corrected for a limited time: at every batch each view equals Spark batch over the versions that
count, whatever the cuts; what is over is not kept.
"""

from collections import Counter
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from random import Random
from typing import Any

import pytest
from pyspark.sql import SparkSession

from penstock.engine.compile import compiled
from penstock.engine.explain import explained
from penstock.engine.plantext import plan_text
from penstock.engine.query import Query, Tuning
from penstock.log import Record
from penstock.model import pipeline_of
from tests.effort import SOAK
from tests.engine.conftest import Bench, QuickOracle
from tests.engine.lateness import check_topics, late_of
from tests.texts import assert_golden, refused

START = datetime(2024, 1, 1, tzinfo=UTC)
DECLARED = """
    CREATE STREAM a (k INT, v BIGINT, at TIMESTAMP)
      WITH (event_time = 'at', watermark = '5 seconds', retain = '10 seconds');
    CREATE STREAM b (k INT, v BIGINT, at TIMESTAMP) WITH (event_time = 'at', watermark = '2 seconds');
    CREATE STREAM c (k INT, v BIGINT);
    CREATE TABLE t (id INT PRIMARY KEY, g INT, name STRING);
    CREATE TABLE bag (g INT, name STRING);
"""
VIEWS = {
    "named": "SELECT k, v, name FROM a JOIN t ON k = id",
    "turned": "SELECT k, v, name FROM t JOIN a ON k = id",
    "mirrored": "SELECT k, v, at, name FROM t RIGHT JOIN a ON k = id",
    "named_or_not": "SELECT k, v, name FROM a LEFT JOIN t ON k = id",
    "grouped": "SELECT k, v, t.id, name FROM a LEFT JOIN t ON k = g AND v < 4 AND name > 'm'",
    "bagged": "SELECT k, v, bag.name, t.name AS other FROM a JOIN bag ON k = bag.g LEFT JOIN t ON v = id",
    "known": "SELECT * FROM a WHERE k IN (SELECT g FROM t WHERE name = 'x')",
    "unknown": "SELECT * FROM a WHERE NOT EXISTS (SELECT 1 FROM t WHERE g = k AND id <= v)",
    "odd": "SELECT * FROM a WHERE v > 3 OR EXISTS (SELECT 1 FROM t WHERE id = k)",
    "met": "SELECT a.k, a.v, a.at, b.v AS bv, b.at AS b_at FROM a JOIN b ON a.k = b.k",
    "met_or_not": "SELECT a.k, a.v, b.v AS bv FROM a LEFT JOIN b ON a.k = b.k AND a.v <= b.v",
    "alone": "SELECT * FROM a WHERE NOT EXISTS (SELECT 1 FROM c WHERE a.k = c.k)",
    "counted": """SELECT name, window.start, count(*) AS n, sum(v) AS total
        FROM a LEFT JOIN t ON k = id GROUP BY name, window(at, '10 seconds')""",
    "by_name": """SELECT name, count(*) AS n, max(v) AS most
        FROM (SELECT k, v FROM a WHERE v > 0) JOIN t ON k = id GROUP BY name""",
}
OPTIONS = {"met": "retain = '4 seconds'"}


def declared(views: dict[str, str]) -> str:
    made = [
        f"CREATE VIEW {name} {f'WITH ({OPTIONS[name]})' if name in OPTIONS else ''} AS {query};\n"
        for name, query in views.items()
    ]
    done = f"CREATE VIEW counted_done WITH (emit = 'final') AS {views['counted']};\n" if "counted" in views else ""
    return DECLARED + "".join(made) + done


class Events:
    """Frames of streams whose times go on, some of them late, and of tables beside them."""

    def __init__(self, random: Random) -> None:
        self._random = random
        self._now = START
        self._bag: list[dict[str, Any]] = []

    def frame(self) -> dict[str, list[Any]]:
        self._now += timedelta(seconds=self._random.choice([0, 1, 4, 12]))
        found: dict[str, list[Any]] = {
            name: [self._event() for _ in range(self._random.randint(least, 3))] for name, least in (("a", 1), ("b", 0))
        }
        found["c"] = [{"k": self._random.randint(1, 3), "v": 1} for _ in range(self._random.choice([0, 0, 0, 1]))]
        found["t"] = [self._row() for _ in range(self._random.randint(0, 3))]
        found["bag"] = [self._thing() for _ in range(self._random.randint(0, 2))]
        names = list(found)
        self._random.shuffle(names)  # the order of topics within a frame is the order of places
        return {topic: found[topic] for topic in names if found[topic]}

    def _event(self) -> dict[str, Any]:
        late = timedelta(milliseconds=self._random.choice([0, 500, 4_000, 6_000, 15_000, 40_000]))
        at = None if self._random.random() < 0.05 else self._now - late
        return {"k": self._random.choice([1, 2, 3, None]), "v": self._random.randint(0, 5), "at": at}

    def _row(self) -> Any:
        key = {"id": self._random.randint(1, 3)}
        if self._random.random() < 0.3:
            return Record(key, deleted=True)
        return {**key, "g": self._random.choice([1, 2, None]), "name": self._random.choice(["x", "y", None])}

    def _thing(self) -> Any:
        row = {"g": self._random.randint(1, 2), "name": self._random.choice(["x", "y"])}
        return Record(row, deleted=self._random.random() < 0.4)

    def punctuation(self) -> datetime:
        return self._now + timedelta(seconds=self._random.randint(-10, 15))


@pytest.mark.spark
@pytest.mark.timeout(900)
@pytest.mark.parametrize("seed", range(30 if SOAK else 1))
def test_what_is_retained_equals_batch_over_what_counts(bench: Callable[..., Bench], seed: int) -> None:
    random = Random(seed)
    events, shop = Events(random), bench(declared(VIEWS), max_records_per_batch=random.choice([1, 6]))
    for chapter in range(3):
        if chapter:
            shop.start(max_records_per_batch=random.choice([1, 10, 100]))
        for _ in range(3):
            shop.append(events.frame())
            if random.random() < 0.3:
                shop.log.punctuate(random.choice("ab"), events.punctuation(), scope=random.choice(["", "test"]))
        shop.drain()
        shop.check()
    check_late(shop)


def check_late(shop: Bench) -> None:
    """What came too late is what batch says."""
    assert check_topics(shop)["beyond retain"]
    oracle = QuickOracle(shop.spark, shop.pipeline, shop.log.folder, shop.log.mark().next_frame)
    assert oracle.concerned("named")


@pytest.mark.spark
def test_cuts_do_not_show(bench: Callable[..., Bench]) -> None:
    """One run reads frame by frame, the other all at once: the same answers, and the same too late."""
    names = ("grouped", "unknown", "met", "counted")
    pipeline = declared({name: VIEWS[name] for name in names})
    shops = [bench(pipeline, max_records_per_batch=size) for size in (1, 1000)]
    for shop in shops:
        events = Events(Random(7))
        for _ in range(12):
            shop.append(events.frame())
        shop.drain()
        shop.check(every=100)
    step_by_step, at_once = shops
    assert len(step_by_step.batches) > 6 > len(at_once.batches)
    for name in names:
        assert step_by_step.content(name)
        assert rows_of(step_by_step.content(name)) == rows_of(at_once.content(name)), name
        assert rows_of(late_of(step_by_step, name)) == rows_of(late_of(at_once, name)), name
    assert sum(sum(batch.late.values()) for batch in step_by_step.batches) == sum(
        sum(batch.late.values()) for batch in at_once.batches
    )


@pytest.mark.spark
def test_a_batch_has_not_more_frames_than_operators_are_told_of(
    bench: Callable[..., Bench], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every frame may be a step of a watermark, and all slots of the join are told of each."""
    monkeypatch.setattr("penstock.engine.run.STEPS", 3)
    shop = bench(declared({"named": VIEWS["named"]}))
    for second in range(8):
        at = START + timedelta(seconds=second)
        shop.append({"a": [{"k": 1, "v": second, "at": at}], "t": [{"id": 1, "g": 1, "name": str(second)}]})
    shop.drain()
    shop.check()
    assert len(shop.batches) == 3
    assert len(shop.content("named")) == 8


def rows_of(rows: list[Any]) -> Counter[str]:
    return Counter(map(repr, rows))


@pytest.mark.spark
def test_what_is_over_is_not_kept(bench: Callable[..., Bench]) -> None:
    """What is left is the table, the clocks, and for every key when its first row was over."""
    shop = bench(declared({name: VIEWS[name] for name in ("named_or_not", "met")}))
    rows = [{"k": key, "v": key, "at": START + timedelta(milliseconds=key)} for key in range(1000)]
    shop.append({"a": [*rows, rows[1], rows[1]], "b": rows, "t": [{"id": 1, "g": 1, "name": "x" * 100}]})
    shop.drain()
    before = size(shop)
    for stream in "ab":
        shop.log.punctuate(stream, START + timedelta(seconds=11))
    shop.drain()
    shop.check()
    marks = 1000 * 3 * (8 + 16 + 16)
    assert size(shop) < marks < before / 2
    shop.append({"t": [{"id": 1, "g": 1, "name": "y"}], "b": [{"k": 7, "v": 0, "at": START}]})
    shop.drain()
    shop.check()
    assert {value["relation"] for value in late_of(shop, "named_or_not")} == {"t"}
    assert {value["relation"] for value in late_of(shop, "met")} == {"b"}
    oracle = QuickOracle(shop.spark, shop.pipeline, shop.log.folder, shop.log.mark().next_frame)
    assert [oracle.concerned(view) for view in ("named_or_not", "met")] == [3, 1]


def size(shop: Bench) -> int:
    """How many bytes the states of all levels have."""
    found = 0
    for level in range(shop.ready.query.stages):
        state = shop.spark.read.format("statestore").option("path", str(shop.ready.lineage.checkpoint))
        pages = state.option("operatorId", level).option("stateVarName", "pages").load()
        found += int(pages.selectExpr("sum(length(user_map_value.value)) AS n").collect()[0].n or 0)
    return found


@pytest.mark.spark
def test_explain_says_how_long_rows_are_kept(spark: SparkSession) -> None:
    pipeline = pipeline_of(declared({name: VIEWS[name] for name in ("named", "met", "alone")}), name="shop")
    plan = compiled(spark, pipeline)
    text = plan_text(explained(pipeline, plan, Query(spark, plan.graph, Tuning()).layout))
    assert_golden("engine/explain-retain", text)


@pytest.mark.spark
def test_what_retain_says_nothing_about_is_refused(spark: SparkSession) -> None:
    query = "SELECT k, count(*) AS n FROM a FULL JOIN t ON k = id GROUP BY k"
    with refused("engine/retain-of-nothing"):
        compiled(spark, pipeline_of(f"{DECLARED} CREATE VIEW v WITH (retain = '1 day') AS {query};"))
