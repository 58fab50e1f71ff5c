"""Windows in time: at every batch each view equals Spark batch over the rows that were not late; the late rows are in
topics of their own, and which they are depends on the log alone.
"""

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from itertools import product
from random import Random
from typing import Any

import pytest
from pyspark.sql import SparkSession

from penstock.engine.compile import compiled
from penstock.engine.source import read_topic
from penstock.engine.timing import marks_of
from penstock.model import pipeline_of
from tests.effort import SOAK
from tests.engine.conftest import Bench
from tests.engine.lateness import check_topics, late_of, missed_of
from tests.texts import refused

START = datetime(2024, 1, 1, tzinfo=UTC)
MICROSECOND = timedelta(microseconds=1)
PRODUCERS = ("one", "two")
DECLARED = """
    CREATE STREAM s (k INT, v BIGINT, at TIMESTAMP) WITH (event_time = 'at', watermark = '5 seconds');
    CREATE TABLE t (id INT PRIMARY KEY, name STRING);
"""
SUMS = "SELECT k, window.start, sum(v) AS n, count(*) AS rows FROM s GROUP BY k, window(at, '10 seconds')"
HOPS = "SELECT window, max(v) AS most FROM s WHERE v > 1 GROUP BY window(at, '20 seconds', '10 seconds', '3 seconds')"
STEPS = """SELECT w.end, sum(v) AS n FROM (SELECT window(at, '1 minute', '20 seconds') AS w, at, v FROM s)
    WHERE at >= date_trunc('MINUTE', w.end - INTERVAL 1 SECOND) GROUP BY w"""
KINDS = {"sums": SUMS, "hops": HOPS, "steps": STEPS}
SHOWN = {"": "", "_done": "emit = 'final'"}
LATE = {"": "", "_corrected": "late = 'correct', allowed_lateness = '12 seconds'", "_dropped": "late = 'drop'"}
VIEWS = {
    kind + shown + late: (", ".join(filter(None, (SHOWN[shown], LATE[late]))), KINDS[kind])
    for kind, shown, late in product(KINDS, SHOWN, LATE)
} | {
    "hopping_by_key": (
        "emit = 'final'",
        """SELECT k, sum(v) AS n, avg(v) AS mean, window, min(v) AS least FROM s
           GROUP BY window(at, '20 seconds', '5 seconds'), k""",
    ),
    "best_hop": (
        "emit = 'final'",
        """SELECT k, n, window, row_number() OVER (PARTITION BY window ORDER BY n DESC, k) AS place
           FROM (SELECT k, window, count(v) AS n FROM s WHERE v <> 2
                 GROUP BY k, window(at, '15 seconds', '5 seconds'))""",
    ),
    "named": (
        "",
        """SELECT name, window.end, collect_list(v) AS vs FROM s JOIN t ON k = id
           GROUP BY name, window(at, '10 seconds')""",
    ),
    "named_hopping": (
        "",
        """SELECT name, window.end, sum(v) AS n FROM s LEFT JOIN t ON k = id
           GROUP BY name, window(at, '20 seconds', '10 seconds')""",
    ),
    "best": (
        "emit = 'final'",
        """SELECT k, n, window, row_number() OVER (PARTITION BY window ORDER BY n DESC, k) AS place
           FROM (SELECT k, window, sum(v) AS n FROM s GROUP BY k, window(at, '10 seconds'))""",
    ),
    "most": (
        "emit = 'final'",
        """SELECT window, max(n) AS most
           FROM (SELECT k, window, sum(v) AS n FROM s GROUP BY k, window(at, '10 seconds')) GROUP BY window""",
    ),
    "minutes": (
        "emit = 'final'",
        """SELECT window(window, '1 minute').start, sum(n) AS n
           FROM (SELECT window, count(*) AS n FROM s GROUP BY window(at, '10 seconds'))
           GROUP BY window(window, '1 minute')""",
    ),
    "twice": (
        "emit = 'final'",
        """SELECT window.start, count(*) AS n FROM (SELECT at FROM s WHERE k = 1 UNION ALL SELECT at FROM s WHERE v > 3)
           GROUP BY window(at, '10 seconds')""",
    ),
    "both": (
        "emit = 'final'",
        """SELECT a.window, a.n, b.most FROM (SELECT window, count(*) AS n FROM s GROUP BY window(at, '10 seconds')) a
           LEFT JOIN (SELECT window, max(v) AS most FROM s WHERE k = 2 GROUP BY window(at, '10 seconds')) b
           ON a.window = b.window""",
    ),
    "over": ("", "SELECT k, sum(n) AS n FROM sums_done GROUP BY k"),
}
"""Each with its options and its query."""


@dataclass(frozen=True)
class Rule:
    """Which windows a row is in: their length, how far apart they are and when the first one starts, in seconds; and
    the length of the whole, where they cumulate within one. Rows with a lesser `v` are in none.
    """

    size: int
    step: int
    shift: int = 0
    whole: int = 0
    least: int = 0

    def ends(self, at: datetime) -> Iterator[datetime]:
        since = (at - START).total_seconds() - self.shift
        first = START + timedelta(seconds=since // self.step * self.step + self.shift + self.step)
        for each in range(self.size // self.step):
            end = first + timedelta(seconds=self.step * each)
            if not self.whole or self._whole(at) == self._whole(end - MICROSECOND):
                yield end

    def _whole(self, at: datetime) -> int:
        return (at - START) // timedelta(seconds=self.whole)


TUMBLING = Rule(10, 10)
RULES = {"sums": TUMBLING, "hops": Rule(20, 10, shift=3, least=2), "steps": Rule(60, 20, whole=60)}
RULES |= dict.fromkeys(("named", "best", "most", "minutes"), TUMBLING) | {"named_hopping": Rule(20, 10)}


def rule_of(view: str) -> Rule | None:
    """The plain rule of a view, if it has one of these."""
    kind = view.removesuffix("_corrected").removesuffix("_dropped").removesuffix("_done")
    return RULES.get(kind)


class Events:
    """Frames of a stream whose times go on, some of them late, and of the table beside it."""

    def __init__(self, random: Random) -> None:
        self._random = random
        self._now = START

    def frame(self) -> dict[str, list[Any]]:
        self._now += timedelta(seconds=self._random.choice([0, 1, 4, 12]))
        found: dict[str, list[Any]] = {"s": [self._event() for _ in range(self._random.randint(1, 6))]}
        if self._random.random() < 0.3:
            found["t"] = [{"id": self._random.randint(1, 3), "name": self._random.choice(["a", "b", None])}]
        return {topic: rows for topic, rows in found.items() if rows}

    def _event(self) -> dict[str, Any]:
        late = timedelta(milliseconds=self._random.choice([0, 500, 2_000, 6_000, 15_000, 40_000]))
        at = None if self._random.random() < 0.05 else self._now - late
        return {"k": self._random.choice([1, 2, 3, None]), "v": self._random.randint(0, 5), "at": at}

    def punctuation(self) -> datetime:
        return self._now + timedelta(seconds=self._random.randint(-10, 10))


@pytest.mark.spark
@pytest.mark.timeout(900)
@pytest.mark.parametrize("seed", range(30 if SOAK else 2))
def test_windows_equal_batch_over_what_was_not_late(bench: Callable[..., Bench], seed: int) -> None:
    """Every view is in one of the first two stories; in the second the stream has partitions, and its watermark waits
    for two producers.
    """
    random, is_wide = Random(seed), seed % 2 == 1
    wide = ", watermark_by = 'producer', partitions = 3" if is_wide else ""
    sql = DECLARED.replace("watermark = '5 seconds'", f"watermark = '5 seconds'{wide}") + "".join(
        f"CREATE VIEW {name} {f'WITH ({options})' if options else ''} AS {query};\n"
        for at, (name, (options, query)) in enumerate(VIEWS.items())
        if SOAK or at % 2 == seed % 2
    )
    events, shop = Events(random), bench(sql, max_records_per_batch=random.choice([1, 6]))
    for producer in PRODUCERS if is_wide else ():
        shop.log.producer(producer).join("s", START)
    for chapter in range(3):
        if chapter:
            shop.start(max_records_per_batch=random.choice([1, 10, 100]))
        for each in range(4):
            by: dict[str, Any] = {"producer": random.choice(PRODUCERS), "sequence": 4 * chapter + each}
            shop.log.append_all(events.frame(), **by if is_wide else {})
            if random.random() < 0.3:
                shop.log.punctuate("s", events.punctuation(), scope=random.choice(["", "test", "another"]))
        shop.drain()
        shop.check()
    check_late(shop)
    check_final(shop)


def check_late(shop: Bench) -> None:
    """Late rows, and how many of them each window missed, are those of the plain rule and of batch."""
    marks, counted = marks_of(shop.pipeline, shop.pipeline.relation("s")), missed_of(shop)
    records = read_topic(shop.spark, shop.log.folder, "s", **marks)
    rows = records.select("_partition", "_offset", "_watermark", "at", "v").collect()
    assert "over" not in shop.ready.compiled.late
    for view in shop.pipeline.views:
        if (rule := rule_of(view.name)) is None:
            continue
        missed = Counter(too_late(rows, rule, view.options.allowed_lateness))
        assert missed or view.options.late == "correct" or SOAK, view
        assert sum(batch.late[view.name] for batch in shop.batches) == missed.total(), view
        assert counted[view.name] == Counter(each[2:4] for each in missed.elements()), view
        if view.options.late != "drop":
            told = ("partition", "offset", "window_start", "window_end", "watermark", "late_by")
            values = late_of(shop, view.name)
            assert Counter(tuple(value[name] for name in told) for value in values) == missed, view
    assert check_topics(shop).keys() == {"the window was over"}


def too_late(rows: Sequence[Any], rule: Rule, allowed: timedelta) -> Iterator[tuple[Any, ...]]:
    """Each row's place with each window that it missed, the watermark that stood before it, and how late it was."""
    for row in rows:
        if row["at"] is None or row["_watermark"] is None or row["v"] < rule.least:
            continue
        watermark = row["_watermark"].replace(tzinfo=UTC)
        for end in rule.ends(row["at"].replace(tzinfo=UTC)):
            if end + allowed <= watermark:
                start, late_by = end - timedelta(seconds=rule.size), (watermark - end) // MICROSECOND
                yield row["_partition"], row["_offset"], start, end, watermark, late_by


def check_final(shop: Bench) -> None:
    """What is final comes once, and stays."""
    for view in [each.name for each in shop.pipeline.views]:
        options, _ = VIEWS[view]
        if "final" in options and "correct" not in options:
            for entry in shop.log.read(shop.ready.lineage.topic(view)):
                assert not entry.deleted and entry.replaces is None, (view, entry)


@pytest.mark.spark
@pytest.mark.parametrize(
    "query",
    [
        "SELECT name, window, count(*) AS n FROM s JOIN t ON k = id GROUP BY name, window(at, '10 seconds')",
        "SELECT k, count(*) AS n FROM s GROUP BY k",
        "SELECT sum(n) AS n FROM (SELECT window, count(*) AS n FROM s GROUP BY window(at, '10 seconds'))",
        "SELECT window, count(*) AS n FROM s GROUP BY window(at, '10 seconds') ORDER BY n DESC LIMIT 3",
        "SELECT * FROM changing",
    ],
)
def test_what_nothing_completes_cannot_wait(spark: SparkSession, query: str) -> None:
    with refused("engine/view-cannot-wait"):
        changing = "CREATE VIEW changing AS SELECT window, count(*) AS n FROM s GROUP BY window(at, '10 seconds');"
        compiled(spark, pipeline_of(f"{DECLARED}\nCREATE VIEW x WITH (emit = 'final') AS\n  {query};\n{changing}"))


@pytest.mark.spark
def test_a_stream_without_event_time_completes_nothing(spark: SparkSession) -> None:
    query = "SELECT window, count(*) AS n FROM s GROUP BY window(at, '10 seconds')"
    with refused("engine/final-without-event-time"):
        declared = "CREATE STREAM s (k BIGINT, at TIMESTAMP);\n"
        compiled(spark, pipeline_of(f"{declared}CREATE VIEW x WITH (emit = 'final') AS\n  {query};"))


@pytest.mark.spark
@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("nothing-is-late", "late = 'correct', allowed_lateness = '1 hour'"),
        ("nothing-is-late-to-drop", "late = 'drop'"),
    ],
)
def test_what_nothing_is_late_for_has_no_late_rows(spark: SparkSession, name: str, options: str) -> None:
    with refused(f"engine/{name}"):
        compiled(spark, pipeline_of(f"{DECLARED}\nCREATE VIEW x WITH ({options}) AS SELECT k, v FROM s WHERE v > 0;"))


@pytest.mark.spark
def test_state_goes_when_windows_are_over(bench: Callable[..., Bench]) -> None:
    """What is left is how far the clocks have come, once for each slot."""
    sums = "SELECT k, window.start, sum(v) AS n, max(v) AS most FROM s GROUP BY k, window(at, '10 seconds')"
    shop = bench(f"""{DECLARED}
        CREATE VIEW filling AS {sums};
        CREATE VIEW done WITH (emit = 'final') AS {sums};""")
    times = [START + timedelta(seconds=seconds) for seconds in (1, 12, 3)]
    shop.append({"s": [{"k": key, "v": key, "at": at} for key in range(2000) for at in times]})
    shop.drain()
    assert entries(shop) > 200
    shop.log.punctuate("s", START + timedelta(seconds=20))
    shop.drain()
    shop.check()
    assert entries(shop) == 2 * 64
    assert len(shop.content("done")) == len(shop.content("filling")) == 4000


@pytest.mark.spark
def test_slices_stay_for_the_last_window_that_needs_them(bench: Callable[..., Bench]) -> None:
    query = "SELECT k, window, sum(v) AS n FROM s GROUP BY k, window(at, '20 seconds', '5 seconds')"
    shop = bench(f"{DECLARED} CREATE VIEW hops WITH (emit = 'final') AS {query};")
    shop.append({"s": [{"k": key, "v": key, "at": START + timedelta(seconds=2)} for key in range(2000)]})
    shop.drain()
    for seconds, windows in ((4, 0), (5, 1), (15, 3), (19, 3)):
        shop.log.punctuate("s", START + timedelta(seconds=seconds))
        shop.drain()
        shop.check()
        assert len(shop.content("hops")) == 2000 * windows
        assert entries(shop) > 200
    shop.log.punctuate("s", START + timedelta(seconds=20))
    shop.drain()
    shop.check()
    assert len(shop.content("hops")) == 2000 * 4
    assert entries(shop) == 64


@pytest.mark.spark
def test_open_windows_are_counted_also_where_nothing_came(bench: Callable[..., Bench]) -> None:
    shop = bench(f"""{DECLARED}
        CREATE VIEW filling AS {SUMS};
        CREATE VIEW hops WITH (emit = 'final') AS
          SELECT k, window, sum(v) AS n FROM s GROUP BY k, window(at, '20 seconds', '5 seconds');
        CREATE VIEW visits AS SELECT k, sum(v) AS n FROM s GROUP BY k, session_window(at, '4 seconds');
        CREATE VIEW listed WITH (late = 'correct', allowed_lateness = '2 seconds') AS
          SELECT k, collect_list(v) AS vs FROM s GROUP BY k, session_window(at, '4 seconds');""")
    times = [START + timedelta(seconds=seconds) for seconds in (1, 11, 21)]
    shop.append({"s": [{"k": key, "v": 1, "at": at} for key in range(50) for at in times]})
    shop.drain()
    # Of the sessions that begin at 1, 11 and 21 seconds the watermark, 16, has passed two, and the second by a second.
    assert shop.batches[-1].open == {"filling": 2, "hops": 5, "visits": 50, "listed": 100}
    shop.append({"s": [{"k": 1, "v": 1, "at": START + timedelta(seconds=16.5)}]})
    shop.drain()
    assert shop.batches[-1].open == {"filling": 2, "hops": 5, "visits": 51, "listed": 101}
    shop.append({"s": [{"k": 1, "v": 1, "at": START + timedelta(seconds=20)}]})  # it joins two
    shop.drain()
    assert shop.batches[-1].open == {"filling": 2, "hops": 5, "visits": 50, "listed": 100}
    shop.start()
    shop.log.punctuate("s", START + timedelta(seconds=26))
    shop.drain()
    assert shop.batches[-1].open == {"filling": 1, "hops": 3, "visits": 0, "listed": 50}
    shop.log.punctuate("s", START + timedelta(seconds=30))
    shop.drain()
    assert shop.batches[-1].open == {"filling": 0, "hops": 2, "visits": 0, "listed": 0}


def entries(shop: Bench) -> int:
    """How many entries the state has."""
    state = shop.spark.read.format("statestore").option("path", str(shop.ready.lineage.checkpoint))
    return state.option("operatorId", 0).option("stateVarName", "pages").load().count()
