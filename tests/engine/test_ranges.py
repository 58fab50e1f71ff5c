"""Sessions, joins within a range of time, sliding frames, windows over several streams: at every batch each view equals
Spark batch over the rows that were not late, whatever the cuts; state goes as time goes on.
"""

from collections import Counter
from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta
from itertools import product
from random import Random
from typing import Any

import pytest

from penstock.engine.source import other_streams, read_topic
from penstock.engine.timing import marks_of
from tests.effort import SOAK
from tests.engine.conftest import Bench
from tests.engine.lateness import check_topics, late_of, missed_of

START = datetime(2024, 1, 1, tzinfo=UTC)
PRODUCERS = ("one", "two")
DECLARED = """
    CREATE STREAM a (k INT, v BIGINT, at TIMESTAMP) WITH (event_time = 'at', watermark = '5 seconds');
    CREATE STREAM b (k INT, v BIGINT, at TIMESTAMP) WITH (event_time = 'at', watermark = '2 seconds');
    CREATE TABLE t (id INT PRIMARY KEY, name STRING);
"""
SESSIONS = """SELECT k, session_window AS w, count(*) AS n, max(v) AS most, collect_list(v) AS vs
    FROM a GROUP BY k, session_window(at, '4 seconds')"""
COUNTED = """SELECT k, session_window AS w, count(*) AS n, count(v) FILTER (WHERE v > 2) AS some, max(v) AS most,
    avg(v) AS mean FROM a GROUP BY k, session_window(at, '4 seconds')"""
UNNAMED = "SELECT count(v) FILTER (WHERE v > 4) AS n FROM a GROUP BY k, session_window(at, '4 seconds')"
GAPS = """SELECT session_window.start, session_window.end, sum(v) AS n
    FROM a GROUP BY session_window(at, CASE WHEN v > 3 THEN '8 seconds' ELSE '1 second' END)"""
NAMED = """SELECT name, session_window.start, count(*) AS n
    FROM a JOIN t ON k = id GROUP BY name, session_window(at, '4 seconds')"""
WITHIN = "a.k = b.k AND b.at >= a.at - INTERVAL 3 SECONDS AND b.at < a.at + INTERVAL 10 SECONDS"
PAIRS = "SELECT a.k, a.v, a.at, b.v AS bv, b.at AS b_at FROM a {} JOIN b ON " + WITHIN
ALONE = "SELECT * FROM a WHERE NOT EXISTS (SELECT 1 FROM b WHERE " + WITHIN + ")"
SLIDING = """SELECT k, at, v, sum(v) OVER w AS n, max(v) OVER w AS most, avg(v) OVER w AS mean,
    count(*) OVER w / 10 AS rate, percentile(v, 0.75) OVER w AS high, count(v) OVER
    (PARTITION BY k ORDER BY at RANGE BETWEEN INTERVAL 2 SECONDS PRECEDING AND INTERVAL 6 SECONDS FOLLOWING) AS around
    FROM a WINDOW w AS (PARTITION BY k ORDER BY at RANGE BETWEEN INTERVAL 10 SECONDS PRECEDING AND CURRENT ROW)"""
BOTH = """SELECT window.start, count(*) AS n, sum(v) AS total
    FROM (SELECT at, v FROM a UNION ALL SELECT at, v FROM b) GROUP BY window(at, '10 seconds')"""
FIRST = """SELECT * FROM (
    SELECT k, v, at, w.start AS begins, row_number() OVER (PARTITION BY w.start ORDER BY v, at, k) AS place
    FROM (SELECT *, window(at, '10 seconds') AS w FROM a)) WHERE place <= 2"""
MET = """SELECT l.w, l.k, l.v, r.v AS rv FROM (SELECT *, window(at, '10 seconds') AS w FROM a) l
    FULL JOIN (SELECT *, window(at, '10 seconds') AS w FROM b) r ON l.w = r.w AND l.k = r.k"""
CLICKS = f"""SELECT window.start, count(*) AS n, count(bv) AS met FROM ({PAIRS.format("LEFT")})
    GROUP BY window(at, '10 seconds')"""
FUNNEL = f"""SELECT window.start, count(*) AS n FROM a JOIN b ON {WITHIN}
    JOIN b c ON b.k = c.k AND c.at BETWEEN b.at AND b.at + INTERVAL 6 SECONDS GROUP BY window(a.at, '10 seconds')"""
NUMBERED = """SELECT *, row_number() OVER (PARTITION BY w ORDER BY v, at, k) AS place
    FROM (SELECT *, window(at, '30 seconds') AS w FROM a)"""
NARROWER = (
    f"SELECT window.start, max(place) AS place, count(*) AS n FROM ({NUMBERED}) GROUP BY window(at, '10 seconds')"
)
MET_AGAIN = """SELECT window.start, count(*) AS n FROM (
    SELECT l.at FROM (SELECT *, window(at, '30 seconds') AS w FROM a) l
    JOIN (SELECT *, window(at, '30 seconds') AS w FROM b) r ON l.w = r.w AND l.k = r.k)
    GROUP BY window(at, '10 seconds')"""
FIRST_PAIRS = f"SELECT a.k, a.v, b.v AS bv FROM ({NUMBERED}) a JOIN b ON {WITHIN} WHERE place = 1"
ODD = f"SELECT * FROM a WHERE v > 3 OR NOT EXISTS (SELECT 1 FROM b WHERE {WITHIN})"
CHAIN = f"""SELECT a.k, a.at, b.at AS b_at, c.at AS c_at FROM a LEFT JOIN b ON {WITHIN}
    LEFT JOIN b c ON a.k = c.k AND c.v > 2 AND c.at BETWEEN a.at AND a.at + INTERVAL 2 SECONDS"""
APART = """SELECT a.k, a.at, b.at AS b_at FROM a RIGHT JOIN b
    ON a.k = b.k AND a.v < b.v AND b.at - INTERVAL 3 SECONDS >= a.at AND b.at <= a.at + INTERVAL 9 SECONDS"""
SUMS = "SELECT window AS w, sum(v) AS n FROM a GROUP BY window(at, '10 seconds')"
FINAL = "emit = 'final'"
CORRECT = "late = 'correct', allowed_lateness = '12 seconds'"
KINDS = {
    "sessions": SESSIONS,
    "counted": COUNTED,
    "lefts": PAIRS.format("LEFT"),
    "sliding": SLIDING,
    "both": BOTH,
    "first": FIRST,
    "met": MET,
}
SHOWN = {"": "", "_done": FINAL}
LATE = {"": "", "_corrected": CORRECT, "_dropped": "late = 'drop'"}
VIEWS = {
    kind + shown + late: (", ".join(filter(None, (SHOWN[shown], LATE[late]))), KINDS[kind])
    for kind, shown, late in product(KINDS, SHOWN, LATE)
} | {
    "unnamed": ("", UNNAMED),
    "gaps": ("", GAPS),
    "gaps_done": (FINAL, GAPS),
    "gaps_corrected": (CORRECT, GAPS),
    "named": ("", NAMED),
    "pairs": ("", PAIRS.format("")),
    "rights_done": (FINAL, PAIRS.format("RIGHT")),
    "all_corrected": (CORRECT, PAIRS.format("FULL")),
    "all_done": (FINAL, PAIRS.format("FULL")),
    "alone": ("", ALONE),
    "alone_done": (FINAL, ALONE),
    "clicks_done": (FINAL, CLICKS),
    "funnel": (FINAL, FUNNEL),
    "narrower": (FINAL, NARROWER),
    "met_again": (FINAL, MET_AGAIN),
    "first_pairs": (FINAL, FIRST_PAIRS),
    "odd": (FINAL, ODD),
    "chain": (FINAL, CHAIN),
    "apart": (FINAL, APART),
    "sums_corrected": (CORRECT, SUMS),
    "over_corrected": (FINAL, "SELECT w.start, sum(n) AS n FROM sums_corrected GROUP BY w"),
    "over": (FINAL, "SELECT w.end, count(*) AS n FROM sessions_done GROUP BY w.end"),
}
"""Each with its options and its query."""
READ = {"over": "sessions_done", "over_corrected": "sums_corrected"}
"""What views over views read."""
RULES: dict[str, tuple[str, int | None]] = {
    **dict.fromkeys(("sessions", "counted", "gaps", "sliding"), ("a", None)),
    **dict.fromkeys(("pairs", "lefts", "rights", "all"), ("ab", None)),
    "both": ("ab", 10),
    "first": ("a", 10),
    "met": ("ab", 10),
}
"""By the kinds of views, the streams whose rows may be late for one, and the length of its windows in seconds."""


class Events:
    """Frames of two streams whose times go on, some of them late, and of the table beside them."""

    def __init__(self, random: Random) -> None:
        self._random = random
        self._now = START

    def frame(self) -> dict[str, list[Any]]:
        self._now += timedelta(seconds=self._random.choice([0, 1, 4, 12]))
        found: dict[str, list[Any]] = {
            name: [self._event() for _ in range(self._random.randint(least, 4))] for name, least in (("a", 1), ("b", 0))
        }
        if self._random.random() < 0.3:
            found["t"] = [{"id": self._random.randint(1, 2), "name": self._random.choice(["x", "y", None])}]
        return {topic: rows for topic, rows in found.items() if rows}

    def _event(self) -> dict[str, Any]:
        late = timedelta(milliseconds=self._random.choice([0, 500, 1_000, 4_000, 6_000, 15_000, 40_000]))
        at = None if self._random.random() < 0.05 else self._now - late
        return {"k": self._random.choice([1, 2, None]), "v": self._random.randint(0, 5), "at": at}

    def punctuation(self) -> datetime:
        return self._now + timedelta(seconds=self._random.randint(-10, 5))


def chosen(seed: int) -> dict[str, tuple[str, str]]:
    """Every view is in one of two stories that follow each other."""
    half = [name for at, name in enumerate(VIEWS) if SOAK or at % 2 == seed % 2]
    needed = {READ[name] for name in half if name in READ}
    return {name: VIEWS[name] for name in VIEWS if name in half or name in needed}


def declared(views: dict[str, tuple[str, str]]) -> str:
    return DECLARED + "".join(
        f"CREATE VIEW {name} {f'WITH ({options})' if options else ''} AS {query};\n"
        for name, (options, query) in views.items()
    )


@pytest.mark.spark
@pytest.mark.timeout(900)
@pytest.mark.parametrize("seed", range(30 if SOAK else 2))
def test_ranges_equal_batch_over_what_was_not_late(bench: Callable[..., Bench], seed: int) -> None:
    """In every second story both streams have partitions: the watermark of one waits for them, that of the other for
    two producers.
    """
    random, is_wide, sql = Random(seed), seed % 2 == 1, declared(chosen(seed))
    for delay, way in (("5", "partition"), ("2", "producer")) if is_wide else ():
        marks = f"watermark = '{delay} seconds'"
        sql = sql.replace(marks, f"{marks}, watermark_by = '{way}', partitions = 2")
    events, shop = Events(random), bench(sql, max_records_per_batch=random.choice([1, 6]))
    for producer in PRODUCERS if is_wide else ():
        shop.log.producer(producer).join("b", START)
    for chapter in range(3):
        if chapter:
            shop.start(max_records_per_batch=random.choice([1, 10, 100]))
        for each in range(4 if is_wide else 3):
            by: dict[str, Any] = {"producer": random.choice(PRODUCERS), "sequence": 4 * chapter + each}
            shop.log.append_all(events.frame(), **by if is_wide else {})
            if random.random() < 0.3:
                shop.log.punctuate(random.choice("ab"), events.punctuation(), scope=random.choice(["", "test"]))
        shop.drain()
        shop.check()
    check_late(shop)
    check_final(shop)


def check_late(shop: Bench) -> None:
    """A row is late where all streams that meet had gone beyond its time, or its window, and beyond what is allowed.
    What views of other kinds left out is what batch says.
    """
    rows, counted = {stream: stamped(shop, stream, other) for stream, other in ("ab", "ba")}, missed_of(shop)
    for view in shop.pipeline.views:
        kind, _, rest = view.name.partition("_")
        if kind not in RULES or not {*rest.split("_")} <= {"", "done", "corrected", "dropped"}:
            continue
        streams, length = RULES[kind]
        wanted = Counter(
            (stream, row["_partition"], row["_offset"])
            for stream in streams
            for row in rows[stream]
            if is_late(row["at"], row[3 : 3 + len(streams)], length, view.options.allowed_lateness)
        )
        assert wanted or view.options.late == "correct" or SOAK, view
        assert sum(batch.late[view.name] for batch in shop.batches) == wanted.total(), view
        assert counted[view.name].total() == wanted.total(), view
        assert ((None, None) in counted[view.name]) == (length is None and bool(wanted)), view
        if view.options.late != "drop":
            told = ("relation", "partition", "offset")
            values = late_of(shop, view.name)
            assert Counter(tuple(value[name] for name in told) for value in values) == wanted, view
    assert check_topics(shop).keys() == {"the window was over", "its time was over"}


def stamped(shop: Bench, stream: str, other: str) -> list[Any]:
    """The stream's rows, each with its place and the watermarks that stood before it."""
    relation = shop.pipeline.relation(stream)
    marks, others = marks_of(shop.pipeline, relation), other_streams(relation, shop.pipeline)
    records = read_topic(shop.spark, shop.log.folder, stream, streams=others, **marks)
    return records.select("_partition", "_offset", "at", "_watermark", f"`_watermark of {other}`").collect()


def is_late(at: datetime | None, stamps: Sequence[datetime | None], length: int | None, allowed: timedelta) -> bool:
    """The rule; `length` is that of windows, in seconds, where there are any."""
    if at is None or None in stamps:
        return False
    over = at + timedelta(microseconds=1)
    if length is not None:
        start = START.replace(tzinfo=None)
        over = start + ((at - start) // timedelta(seconds=length) + 1) * timedelta(seconds=length)
    return all(over + allowed <= stamp for stamp in stamps if stamp is not None)


def check_final(shop: Bench) -> None:
    """What is final comes once, and stays."""
    for view in [each.name for each in shop.pipeline.views]:
        options, _ = VIEWS[view]
        if FINAL in options and CORRECT not in options:
            for entry in shop.log.read(shop.ready.lineage.topic(view)):
                assert not entry.deleted and entry.replaces is None, (view, entry)


@pytest.mark.spark
def test_state_goes_as_time_goes_on(bench: Callable[..., Bench]) -> None:
    """What is left is how far the clocks have come, once for each slot and operator. What may be corrected stays until
    then.
    """
    kept = (
        "sessions",
        "sessions_done",
        "counted",
        "counted_done",
        "gaps_done",
        "pairs",
        "lefts_done",
        "all_done",
        "alone_done",
        "sliding",
        "sliding_done",
        "first_done",
        "met_done",
        "both",
    )
    corrected = ("sessions_corrected", "counted_done_corrected", "all_corrected", "sliding_done_corrected")
    shop = bench(declared({name: VIEWS[name] for name in (*kept, *corrected, "both_corrected")}))
    times = [START + timedelta(seconds=seconds) for seconds in (1, 12, 3)]
    rows = [{"k": key, "v": key, "at": at} for key in range(300) for at in times]
    shop.append({"a": rows, "b": rows})
    shop.drain()
    before = entries(shop)
    assert all(count > 64 for count in before.values()), before
    clocks = {operator.id for operator in shop.ready.compiled.graph.operators if operator.parts.get("closing")}
    left = []
    for seconds in (23, 300):
        for stream in "ab":
            shop.log.punctuate(stream, START + timedelta(seconds=seconds))
        shop.drain()
        left.append(sum(entries(shop).values()) - 64 * len(clocks))
    shop.check(every=2)
    assert left[0] > 64 * len((*corrected, "both_corrected"))
    assert left[1] == 0


def entries(shop: Bench) -> dict[int, int]:
    """How many entries the state of each level has."""
    found = {}
    for level in range(shop.ready.query.stages):
        state = shop.spark.read.format("statestore").option("path", str(shop.ready.lineage.checkpoint))
        found[level] = state.option("operatorId", level).option("stateVarName", "pages").load().count()
    return found
